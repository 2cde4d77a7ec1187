import { builder } from '../graphql/builder.ts';
import type { EventView } from '../graphql/refs.ts';
import { MessageNode, RunNode, ThreadNode, TimelineEventInterface } from '../graphql/refs.ts';
import { visibleRun } from '../runs/views.graphql.ts';
import { changeOf, ScratchpadChangeUnion } from '../scratchpads/subscription.graphql.ts';
import type { MessageEvent } from '../timeline/events.ts';
import { DeliveryEndEnum } from '../timeline/subscription.graphql.ts';
import { eventView } from '../timeline/views.graphql.ts';
import type { InboxDelivery } from './deliveries.ts';

const InboxChannelEnum = builder.enumType('InboxChannel', {
  description: 'What kind of thing an inbox is given. The platform chooses it, never a sender.',
  values: {
    CONTROL: {
      description:
        'Told at once, also while work is in flight: see `notice`. Nothing to acknowledge. It counts as told once the next delivery is asked for; whoever lost its connection looks at its threads and runs when it comes back.',
    },
    MESSAGE: {
      description:
        'Messages of one thread, in order; nothing else of that thread comes until they are acknowledged.',
    },
    OBSERVATION: {
      description: 'What one may see besides, as a digest every few seconds, and at least once.',
    },
  } as const,
});

export const InboxDeliveryObject = builder.objectRef<InboxDelivery>('InboxDelivery').implement({
  description: 'Something that an inbox gives to its agent or unit.',
  fields: (t) => ({
    deliveryId: t.id({
      nullable: true,
      description:
        'Of MESSAGE: acknowledge it, alone or with the answer. Another one each time it is handed out.',
      resolve: ({ deliveryId }) => deliveryId,
    }),
    channel: t.expose('channel', { type: InboxChannelEnum, description: 'What kind of thing it is.' }),
    thread: t.field({
      type: ThreadNode,
      nullable: true,
      description: 'The thread it is about, as this participant sees it; null for a digest.',
      resolve: ({ threadId, viewerId }, _args, context) =>
        threadId === null ? null : context.loaders.look.load({ threadId, viewerId }),
    }),
    run: t.field({
      type: RunNode,
      nullable: true,
      description: 'The run that a notice is about, where this participant may see it.',
      resolve: ({ runId, viewerId }, _args, context) => visibleRun(context, runId, viewerId),
    }),
    deletedThreadId: t.id({
      nullable: true,
      description: 'A thread of this participant’s that was deleted.',
      resolve: ({ deletedThreadId }) => deletedThreadId,
    }),
    events: t.field({
      type: [TimelineEventInterface],
      description:
        'Of MESSAGE the messages, oldest first; of CONTROL the change or retraction it tells of; of OBSERVATION at most 200 and a few MiB, of each thread in order.',
      resolve: ({ events, viewerId }) => events.map((event) => eventView(event, viewerId)),
    }),
    changes: t.field({
      type: [ScratchpadChangeUnion],
      description: 'Of OBSERVATION: what became of the scratchpads of this participant’s threads.',
      resolve: ({ changes }) => changes.map(changeOf).filter((change) => change !== null),
    }),
    cursor: t.expose('upTo', {
      type: 'Cursor',
      nullable: true,
      description:
        'Of MESSAGE: the position of its last message, for `upTo` of an acknowledgement. No place to resume an inbox from.',
    }),
    pendingCount: t.int({
      description:
        'Messages by others in the thread that are not acknowledged, those of this delivery included; 0 without a thread.',
      resolve: async ({ pendingCount, threadId, viewerId }, _args, context) => {
        if (pendingCount !== null || threadId === null) return pendingCount ?? 0;
        return (await context.loaders.look.load({ threadId, viewerId }))?.unreadCount ?? 0;
      },
    }),
    attempt: t.exposeInt('attempt', {
      description: '1 for the first; one more each time the lease before ran out.',
    }),
    leaseExpiresAt: t.expose('leaseExpiresAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'Of MESSAGE: when it is handed out again unless it is acknowledged or extended; while the stream that took it is open the server extends it, for an hour at most.',
    }),
    notice: t.exposeString('notice', {
      nullable: true,
      description:
        'Of CONTROL, a stable word: REMOVED, READDED, RUN_ASSIGNED, RUN_CANCELLED (also of a run that expired), MEMORY_POLICY_CHANGED, THREAD_DELETED, MESSAGE_RETRACTED; in the last payload of a stream the same word as `ended`, TAKEN_OVER for example. Of OBSERVATION, MORE where not all of it fitted: the rest comes with the next. Behind the word there may be `: ` and a text for people, such as the reason. More words may come.',
    }),
    ended: t.expose('ended', {
      type: DeliveryEndEnum,
      nullable: true,
      description: 'Why the stream ends with this payload; null while it goes on.',
    }),
  }),
});

interface PendingMessages {
  readonly count: number;
  readonly messages: readonly EventView<MessageEvent>[];
}

export const PendingObject = builder.objectRef<PendingMessages>('Pending').implement({
  description: 'What waits for an agent or unit in one thread.',
  fields: (t) => ({
    count: t.exposeInt('count', {
      description: 'Messages by others that are not acknowledged, those in hand included.',
    }),
    messages: t.field({
      type: [MessageNode],
      description: 'The first of them, oldest first. The cursor of any may be acknowledged with `upTo`.',
      resolve: ({ messages }) => [...messages],
    }),
  }),
});
