import { builder } from '../graphql/builder.ts';
import { AS } from '../graphql/pageArgs.ts';
import { ThreadNode } from '../graphql/refs.ts';
import { badInput } from '../shared/errors.ts';
import { DeliveryEndEnum } from '../timeline/subscription.graphql.ts';
import type { ThreadsDelivery } from './follow.ts';

const ThreadsDeliveryObject = builder.objectRef<ThreadsDelivery>('ThreadsDelivery').implement({
  description: 'One of the viewer’s threads reads otherwise than before.',
  fields: (t) => ({
    thread: t.expose('thread', {
      type: ThreadNode,
      nullable: true,
      description: 'The thread as it reads now.',
    }),
    deletedThreadId: t.id({
      nullable: true,
      description: 'A thread of the viewer’s that was deleted.',
      resolve: ({ deletedThreadId }) => deletedThreadId,
    }),
    ended: t.expose('ended', {
      type: DeliveryEndEnum,
      nullable: true,
      description: 'Why the stream ends with this payload; null while it goes on.',
    }),
  }),
});

builder.subscriptionField('threads', (t) =>
  t.field({
    type: ThreadsDeliveryObject,
    description:
      'Says when what the viewer reads in Query.threads changes: at most one payload per thread and second. State, not a log, and outside the promise of delivery: after a reconnect, query `threads` again. In the first payload thread and deletedThreadId are null.',
    args: { as: t.arg.id({ description: AS }) },
    subscribe: (_root, args, { services, session, signal }) => {
      if (session === null) throw badInput('Subscriptions need a transport that streams: WebSocket or SSE.');
      return services.followThreads(session, args, signal);
    },
    resolve: (delivery, _args, context) => {
      if (delivery.thread !== null) context.loaders.look.prime(delivery.thread, delivery.thread);
      return delivery;
    },
  }),
);
