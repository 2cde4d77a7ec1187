import { builder } from '../graphql/builder.ts';
import { AS } from '../graphql/pageArgs.ts';
import { EVENT_TYPENAME, TimelineEventInterface, viewedBy } from '../graphql/refs.ts';
import { badInput } from '../shared/errors.ts';
import type { TimelineDelivery } from './follow.ts';
import { TimelineEventTypeEnum } from './timeline.graphql.ts';

export const DeliveryEndEnum = builder.enumType('DeliveryEnd', {
  description: 'Why a stream ends. More may come.',
  values: {
    THREAD_DELETED: { description: 'The thread was deleted: there is nothing to come back to.' },
    SCRATCHPAD_DELETED: { description: 'The scratchpad was deleted: there is nothing to come back to.' },
    TAKEN_OVER: { description: 'Another stream has the inbox now: do not come back for it.' },
    CREDENTIAL_ENDED: { description: 'The credential expired or was revoked: come back with a fresh one.' },
    RUN_CLOSED: {
      description: 'The run has ended, and its tokens with it: there is nothing to come back to.',
    },
    SERVER_DRAINING: { description: 'This server stops: come back at once, to another.' },
  } as const,
});

const TimelineDeliveryObject = builder.objectRef<TimelineDelivery>('TimelineDelivery').implement({
  description: 'Where the reader stands now, and what brought it there.',
  fields: (t) => ({
    cursor: t.expose('cursor', {
      type: 'Cursor',
      description: 'Resume after this position; also in `extensions.cursor`.',
    }),
    event: t.field({
      type: TimelineEventInterface,
      nullable: true,
      description: 'The event; null in the first payload and in the last.',
      resolve: (delivery) => {
        const { event } = delivery;
        return event && viewedBy(delivery, { __typename: EVENT_TYPENAME[event.type], event });
      },
    }),
    ended: t.expose('ended', {
      type: DeliveryEndEnum,
      nullable: true,
      description: 'Why the stream ends with this payload; null while it goes on.',
    }),
    deletedThreadId: t.id({
      nullable: true,
      description: 'The thread that was deleted.',
      resolve: ({ ended, threadId }) => (ended === 'THREAD_DELETED' ? threadId : null),
    }),
  }),
});

builder.subscriptionField('timeline', (t) =>
  t.field({
    type: TimelineDeliveryObject,
    description:
      'Every event of a thread that the viewer may see, exactly once, in order, from `after` on. The first payload comes at once: its event is null and its cursor is the start. Errors: NOT_FOUND, FORBIDDEN, INVALID_CURSOR.',
    args: {
      threadId: t.arg.id({ required: true, description: 'The thread.' }),
      as: t.arg.id({ description: AS }),
      after: t.arg({
        type: 'Cursor',
        description: 'Start after this position, of any age. Absent: at the present end.',
      }),
      types: t.arg({ type: [TimelineEventTypeEnum], description: 'Only events of these types.' }),
    },
    subscribe: (_root, args, context) => {
      const { services, session, signal, lastEventId } = context;
      if (session === null) throw badInput('Subscriptions need a transport that streams: WebSocket or SSE.');
      return services.followTimeline(session, { ...args, after: lastEventId ?? args.after }, signal);
    },
    resolve: (delivery, _args, context) => {
      // What hangs on one event is read once for everybody whom it is delivered to in this moment.
      const { event } = delivery;
      if (event !== null)
        context.loaders = context.services.loadersOf(event, event.ownerId, () => context.actor);
      return delivery;
    },
  }),
);
