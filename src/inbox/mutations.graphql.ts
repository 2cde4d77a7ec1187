import { builder } from '../graphql/builder.ts';
import { ACT_AS } from '../graphql/pageArgs.ts';
import { notFound } from '../shared/errors.ts';
import type { MessageEvent } from '../timeline/events.ts';
import { eventView } from '../timeline/views.graphql.ts';
import { handedDelivery, type InboxDelivery } from './deliveries.ts';
import { refusePerson } from './holding.ts';
import { InboxDeliveryObject, PendingObject } from './inbox.graphql.ts';

const TakePendingInput = builder.inputType('TakePendingInput', {
  description: 'How much of an inbox to take, and how long to wait for it.',
  fields: (t) => ({
    as: t.id({ description: ACT_AS }),
    threadId: t.id({ description: 'Of this thread only.' }),
    max: t.int({
      description:
        'At most so many deliveries of messages, each of another thread: 1 to 200, default 1. Notices come besides.',
    }),
    batch: t.int({ description: 'At most so many messages in each: 1 to 200, default 1.' }),
    onlyMentions: t.boolean({ description: 'Only messages that mention it. Default false.' }),
    waitSeconds: t.int({
      description:
        'Where there is nothing yet, wait so long: 0 to 30, default 0. A server that stops answers at once.',
    }),
  }),
});

const ExtendLeaseInput = builder.inputType('ExtendLeaseInput', {
  description: 'Which delivery to keep, and how long.',
  fields: (t) => ({
    deliveryId: t.id({ required: true, description: 'A delivery in flight.' }),
    as: t.id({ description: ACT_AS }),
    seconds: t.int({
      required: true,
      description: 'From now on, 0 to 3,600. 0 gives it back: it may be handed out again at once.',
    }),
  }),
});

const TakePendingPayload = builder
  .objectRef<{ readonly deliveries: readonly InboxDelivery[] }>('TakePendingPayload')
  .implement({
    description: 'What was taken.',
    fields: (t) => ({
      deliveries: t.field({
        type: [InboxDeliveryObject],
        description: 'Notices first, then messages of different threads; empty where the wait was in vain.',
        resolve: ({ deliveries }) => [...deliveries],
      }),
    }),
  });

const ExtendLeasePayload = builder
  .objectRef<{ readonly leaseExpiresAt: string | null }>('ExtendLeasePayload')
  .implement({
    description: 'Until when it is kept.',
    fields: (t) => ({
      leaseExpiresAt: t.expose('leaseExpiresAt', {
        type: 'DateTime',
        nullable: true,
        description: 'When it is handed out again; null where it was given back.',
      }),
    }),
  });

builder.mutationFields((t) => ({
  takePending: t.field({
    type: TakePendingPayload,
    description:
      'Takes from the inbox of an agent or unit, waiting for something if asked to: the same leases as Subscription.inbox. Notices count as told once the next call comes. Errors: BAD_USER_INPUT, FORBIDDEN, NOT_FOUND, PARTICIPANT_NOT_ACTIVE (in threadId), RATE_LIMITED (a hundred wait already).',
    args: { input: t.arg({ type: TakePendingInput, required: true, description: 'How much.' }) },
    resolve: async (_root, { input }, { services, actor, signal }) => {
      const { inbox, given } = await services.inbox.take(actor, input, signal);
      return { deliveries: given.map((one) => handedDelivery(inbox.participantId, one)) };
    },
  }),
  extendLease: t.field({
    type: ExtendLeasePayload,
    description:
      'Keeps a delivery for longer, or gives it back. One that was handed out again since is CONFLICT, and so is one that ran out where the participant has `concurrentThreads: false` and another in hand. Errors: CONFLICT, NOT_FOUND, BAD_USER_INPUT, FORBIDDEN.',
    args: { input: t.arg({ type: ExtendLeaseInput, required: true, description: 'How long.' }) },
    resolve: (_root, { input }, { services, actor }) => services.inbox.extendLease(actor, input),
  }),
}));

builder.queryField('peekPending', (t) =>
  t.field({
    type: PendingObject,
    description:
      'What waits for an agent or unit in a thread, without taking it. Nothing while it is removed. Errors: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT.',
    args: {
      threadId: t.arg.id({ required: true, description: 'The thread.' }),
      as: t.arg.id({ description: ACT_AS }),
      first: t.arg.int({ description: 'At most so many messages: 1 to 200, default 50.' }),
    },
    resolve: async (_root, { threadId, as, first }, context) => {
      const { loaders, services, actor } = context;
      const { participantId: viewerId } = services.inbox.requireInboxOf(actor, { threadId, as });
      const [participant, look] = await Promise.all([
        loaders.participant.load(viewerId),
        loaders.look.load({ threadId, viewerId }),
      ]);
      if (participant === null || look === null) throw notFound('Thread');
      refusePerson(participant);
      const seqs = await services.inbox.pending(look, first);
      const read = await Promise.all(seqs.map((seq) => loaders.eventAt.load({ threadId, seq })));
      const messages = read.filter((event): event is MessageEvent => event?.type === 'MESSAGE');
      return {
        count: look.member?.state === 'ACTIVE' ? look.unreadCount : 0,
        messages: messages.map((event) => eventView(event, viewerId)),
      };
    },
  }),
);
