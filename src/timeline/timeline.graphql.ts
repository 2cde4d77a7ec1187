import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { type EventView, ThreadNode, TimelineEventInterface, TimelineObject } from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { timelineCursor } from '../shared/cursors.ts';
import { LogGone } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import { bytesOfEvents, type TimelineEvent } from './events.ts';
import type { Look } from './look.ts';
import { readPage } from './reads.ts';
import { cursorOf, eventView, requireParticipant, visibleEvent } from './views.graphql.ts';

export const TimelineEventTypeEnum = builder.enumType('TimelineEventType', {
  description: 'Kinds of timeline events. More may come: ignore what you do not know.',
  values: {
    MESSAGE: { description: 'Somebody said something.' },
    PARTICIPANT_STATE_CHANGED: { description: 'A member was removed or re-added.' },
    RETRACTION: { description: 'A sender took a message back; the message stays readable.' },
    SYSTEM: { description: 'Recorded by the platform: the opening, a continuation.' },
  } as const,
});

export const TimelineEventEdge = builder.edgeObject({
  type: TimelineEventInterface,
  name: 'TimelineEventEdge',
  description: 'An event and where it stands.',
});

const TimelineEventConnection = builder.connectionObject(
  {
    type: TimelineEventInterface,
    name: 'TimelineEventConnection',
    description: 'A page of a timeline, ascending.',
  },
  TimelineEventEdge,
);

/** One stretch in which the viewer was active, as of a look. */
interface WindowView {
  readonly look: Look;
  readonly after: number;
  readonly end: number | null;
}

const VisibilityWindow = builder.objectRef<WindowView>('VisibilityWindow').implement({
  description: 'One stretch in which the viewer was active: what happened in it, it sees.',
  fields: (t) => ({
    from: t.field({
      type: 'DateTime',
      description: 'The opening of the thread, or the re-add.',
      resolve: async ({ look, after }, _args, context) =>
        (await eventAtSeq(context, look, Math.max(after, 1))).at,
    }),
    until: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'The removal; null while it goes on.',
      resolve: async ({ look, end }, _args, context) =>
        end === null ? null : (await eventAtSeq(context, look, end)).at,
    }),
    after: t.field({
      type: 'Cursor',
      description: 'Just before its first event: the start of the thread, or the re-add.',
      resolve: async ({ look, after }, _args, context) =>
        after === 0
          ? timelineCursor(look.threadId, 0, null)
          : cursorOf(await eventAtSeq(context, look, after)),
    }),
    end: t.field({
      type: 'Cursor',
      nullable: true,
      description: 'Its last event, the removal; null while it goes on.',
      resolve: async ({ look, end }, _args, context) =>
        end === null ? null : cursorOf(await eventAtSeq(context, look, end)),
    }),
  }),
});

const eventAtSeq = async (context: GraphQLContext, look: Look, seq: number): Promise<TimelineEvent> => {
  const event = await context.loaders.eventAt.load({ threadId: look.threadId, seq });
  if (event === null) throw new LogGone('Thread', look.threadId);
  return event;
};

TimelineObject.implement({
  description: 'One viewer’s view of a thread’s record; without a viewer (API key, no `as`) the full record.',
  fields: (t) => ({
    id: t.id({
      description: 'Of thread and viewer together: two viewers’ timelines are two objects.',
      resolve: (look) => `${look.threadId}:${look.viewerId ?? 'owner'}`,
    }),
    thread: t.field({
      type: ThreadNode,
      description: 'The thread, as the same viewer sees it.',
      resolve: (look) => look,
    }),
    viewer: t.field({
      type: ParticipantNode,
      nullable: true,
      description: 'Whose view this is; null for the user’s full record.',
      resolve: (look, _args, context) =>
        look.viewerId === null ? null : requireParticipant(context, look.viewerId),
    }),
    windows: t.field({
      type: [VisibilityWindow],
      description: 'When the viewer was active, oldest first.',
      resolve: (look) => look.windows.map((window) => ({ look, ...window })),
    }),
    events: t.field({
      type: TimelineEventConnection,
      nullable: true,
      description:
        'The events the viewer may see, ascending. Without `first` and `last`: the newest end. Errors: BAD_USER_INPUT, INVALID_CURSOR.',
      args: {
        first: t.arg.int({
          description: 'At most so many from the beginning, or after `after`: 1 to 200, default 50.',
        }),
        after: t.arg({ type: 'Cursor', description: 'Only what comes after this position.' }),
        last: t.arg.int({
          description: 'At most so many from the end, or before `before`: 1 to 200, default 50.',
        }),
        before: t.arg({ type: 'Cursor', description: 'Only what comes before this position.' }),
        types: t.arg({ type: [TimelineEventTypeEnum], description: 'Only events of these types.' }),
      },
      resolve: async (look, args, context) => {
        const { events, ...flags } = await context.loaders.portions.take(
          () => readPage(context.services.database, look, args),
          (page) => bytesOfEvents(page.events),
        );
        // Messages and their retractions name each other by position: those on the page are not read again.
        for (const event of events)
          context.loaders.eventAt.prime({ threadId: event.threadId, seq: event.seq }, event);
        const edges = events.map((event) => ({
          cursor: cursorOf(event),
          node: eventView(event, look.viewerId),
        }));
        return {
          edges,
          pageInfo: {
            ...flags,
            startCursor: edges[0]?.cursor ?? null,
            endCursor: edges.at(-1)?.cursor ?? null,
          },
        };
      },
    }),
    event: t.field({
      type: TimelineEventInterface,
      nullable: true,
      description: 'One event of this thread, if the viewer may see it.',
      args: { id: t.arg.id({ required: true, description: 'Its id.' }) },
      resolve: async (look, { id }, context): Promise<EventView | null> => {
        const view = isId('Event', id) ? await visibleEvent(context, id, look.viewerId) : null;
        return view?.event.threadId === look.threadId ? view : null;
      },
    }),
    end: t.field({
      type: 'Cursor',
      description: 'The last position the viewer may see: subscribe after it and nothing is missed.',
      resolve: (look) => timelineCursor(look.threadId, look.end.seq, look.end.id),
    }),
  }),
});
