import { builder } from '../graphql/builder.ts';
import { AS } from '../graphql/pageArgs.ts';
import { ScratchpadEntryNode, ScratchpadNode, viewedBy } from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { badInput } from '../shared/errors.ts';
import { DeliveryEndEnum } from '../timeline/subscription.graphql.ts';
import { ScratchpadContentObject } from './content.graphql.ts';
import type { ScratchpadChange, ScratchpadDelivery } from './deliveries.ts';
import { requirePad } from './views.graphql.ts';

/** A change, and for whom it is. */
interface ChangeView<Change extends ScratchpadChange = ScratchpadChange> {
  readonly threadId: string;
  readonly scratchpadId: string;
  readonly viewerId: string | null;
  readonly change: Change;
}
type Of<Change> = Change extends ScratchpadChange ? ChangeView<Change> : never;
type OfKind<Kind extends ScratchpadChange['kind']> = Of<Extract<ScratchpadChange, { kind: Kind }>>;
type Cleared = OfKind<'CONTENT_CLEARED' | 'ENTRIES_CLEARED'>;

const TYPENAME = {
  CREATED: 'ScratchpadCreated',
  ENTRY: 'EntryAppended',
  CONTENT: 'ContentUpdated',
  CONTENT_CLEARED: 'ContentCleared',
  ENTRIES_CLEARED: 'EntriesCleared',
  RESET: 'ScratchpadReset',
  DELETED: 'ScratchpadDeleted',
} as const satisfies Record<ScratchpadChange['kind'], string>;

const PAD_ID = 'Of which scratchpad.';
const padIdOf = ({ scratchpadId }: ChangeView): string => scratchpadId;

const ScratchpadCreated = builder.objectRef<OfKind<'CREATED'>>('ScratchpadCreated').implement({
  description: 'The thread has a scratchpad now.',
  fields: (t) => ({
    scratchpad: t.field({
      type: ScratchpadNode,
      description: 'The scratchpad.',
      resolve: (view, _args, context) => requirePad(context, view, view.viewerId),
    }),
  }),
});

const EntryAppended = builder.objectRef<OfKind<'ENTRY'>>('EntryAppended').implement({
  description: 'An entry was appended.',
  fields: (t) => ({
    scratchpadId: t.id({ description: PAD_ID, resolve: padIdOf }),
    entry: t.field({
      type: ScratchpadEntryNode,
      description: 'The entry.',
      resolve: (view) => viewedBy(view, { __typename: 'ScratchpadEntry' as const, entry: view.change.entry }),
    }),
  }),
});

const ContentUpdated = builder.objectRef<OfKind<'CONTENT'>>('ContentUpdated').implement({
  description: 'The working body was written. The newest is always told, not necessarily each between.',
  fields: (t) => ({
    scratchpadId: t.id({ description: PAD_ID, resolve: padIdOf }),
    content: t.field({
      type: ScratchpadContentObject,
      description: 'The body.',
      resolve: (view) => viewedBy(view, { scratchpadId: padIdOf(view), content: view.change.content }),
    }),
  }),
});

const CLEARED_BY = 'Who did it; null for the user.';

const ContentCleared = builder.objectRef<Cleared>('ContentCleared').implement({
  description: 'The working body was emptied.',
  fields: (t) => ({
    scratchpadId: t.id({ description: PAD_ID, resolve: padIdOf }),
    actor: t.field({
      type: ParticipantNode,
      nullable: true,
      description: CLEARED_BY,
      resolve: ({ change: { actorId } }, _args, context) =>
        actorId === null ? null : context.loaders.participant.load(actorId),
    }),
  }),
});

const EntriesCleared = builder.objectRef<Cleared>('EntriesCleared').implement({
  description: 'All entries up to here were removed.',
  fields: (t) => ({
    scratchpadId: t.id({ description: PAD_ID, resolve: padIdOf }),
    actor: t.field({
      type: ParticipantNode,
      nullable: true,
      description: CLEARED_BY,
      resolve: ({ change: { actorId } }, _args, context) =>
        actorId === null ? null : context.loaders.participant.load(actorId),
    }),
  }),
});

const ScratchpadReset = builder.objectRef<OfKind<'RESET'>>('ScratchpadReset').implement({
  description:
    'What was known of content and entries no longer holds: they expired, or were lost in the store. Forget them; what is there now follows.',
  fields: (t) => ({
    scratchpad: t.field({
      type: ScratchpadNode,
      description: 'The scratchpad.',
      resolve: (view, _args, context) => requirePad(context, view, view.viewerId),
    }),
  }),
});

const ScratchpadDeleted = builder.objectRef<OfKind<'DELETED'>>('ScratchpadDeleted').implement({
  description: 'The scratchpad was deleted, with all that was in it.',
  fields: (t) => ({ scratchpadId: t.id({ description: 'The id it had.', resolve: padIdOf }) }),
});

export const ScratchpadChangeUnion = builder.unionType('ScratchpadChange', {
  description: 'What happened to a scratchpad. More may come: ignore what you do not know.',
  types: [
    ScratchpadCreated,
    EntryAppended,
    ContentUpdated,
    ContentCleared,
    EntriesCleared,
    ScratchpadReset,
    ScratchpadDeleted,
  ],
  resolveType: ({ change }) => TYPENAME[change.kind],
});

/** The change that a delivery brings; null where it brings none. */
export const changeOf = (delivery: ScratchpadDelivery): Of<ScratchpadChange> | null => {
  const { change, scratchpadId, threadId } = delivery;
  return change === null || scratchpadId === null
    ? null
    : (viewedBy(delivery, { change, scratchpadId, threadId }) as Of<ScratchpadChange>);
};

const ScratchpadDeliveryObject = builder.objectRef<ScratchpadDelivery>('ScratchpadDelivery').implement({
  description: 'Where the reader stands now, and what brought it there.',
  fields: (t) => ({
    cursor: t.expose('cursor', {
      type: 'Cursor',
      description: 'Resume after this position; also in `extensions.cursor`.',
    }),
    scratchpadId: t.id({
      nullable: true,
      description: 'The scratchpad; null while the thread has none.',
      resolve: ({ scratchpadId }) => scratchpadId,
    }),
    change: t.field({
      type: ScratchpadChangeUnion,
      nullable: true,
      description: 'The change; null in the first payload.',
      resolve: changeOf,
    }),
    ended: t.expose('ended', {
      type: DeliveryEndEnum,
      nullable: true,
      description: 'Why the stream ends with this payload; null while it goes on.',
    }),
  }),
});

builder.subscriptionField('scratchpad', (t) =>
  t.field({
    type: ScratchpadDeliveryObject,
    description:
      'A scratchpad from `after` on, as the viewer may see it: each entry that is still there, once, in order; of the body always the newest; what was cleared, and when all was lost. The first payload comes at once: its change is null and its cursor is the start. Errors: NOT_FOUND, FORBIDDEN, INVALID_CURSOR, BAD_USER_INPUT, UNAVAILABLE.',
    args: {
      scratchpadId: t.arg.id({ description: 'The scratchpad; this or threadId.' }),
      threadId: t.arg.id({
        description: 'Its thread; this or scratchpadId. Where the thread has none yet, it is waited for.',
      }),
      as: t.arg.id({ description: AS }),
      after: t.arg({
        type: 'Cursor',
        description:
          'Start after this position: Scratchpad.end, or the cursor of a delivery or a mutation. Absent: at the present end.',
      }),
    },
    subscribe: (_root, args, context) => {
      const { services, session, signal, lastEventId } = context;
      if (session === null) throw badInput('Subscriptions need a transport that streams: WebSocket or SSE.');
      return services.followScratchpad(session, { ...args, after: lastEventId ?? args.after }, signal);
    },
    resolve: (delivery, _args, context) => {
      const { change, ownerId } = delivery;
      // What hangs on one change is read once for everybody whom it is delivered to in this moment.
      if (change !== null) context.loaders = context.services.loadersOf(change, ownerId, () => context.actor);
      return delivery;
    },
  }),
);
