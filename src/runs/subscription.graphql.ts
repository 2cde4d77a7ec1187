import { builder } from '../graphql/builder.ts';
import { RunNode } from '../graphql/refs.ts';
import { badInput } from '../shared/errors.ts';
import { DeliveryEndEnum } from '../timeline/subscription.graphql.ts';
import type { RunDelivery } from './follow.ts';
import { runView } from './views.graphql.ts';

const RunDeliveryObject = builder.objectRef<RunDelivery>('RunDelivery').implement({
  description: 'A run as it is now, and what goes on in it.',
  fields: (t) => ({
    run: t.field({
      type: RunNode,
      description: 'The run.',
      resolve: ({ run, viewerId }) => runView(run, viewerId),
    }),
    activity: t.expose('activity', {
      type: 'JSON',
      nullable: true,
      description:
        'What its participants are doing: `{ operation, state, tool, activity, entry, run_id, assistant_id, origin }`. Told once, best effort, never again.',
    }),
    ended: t.expose('ended', {
      type: DeliveryEndEnum,
      nullable: true,
      description: 'Why the stream ends with this payload; null while it goes on.',
    }),
  }),
});

builder.subscriptionField('run', (t) =>
  t.field({
    type: RunDeliveryObject,
    description:
      'A run: the first payload, at once, is the run as it is; then each state it comes to, of several in a moment the last, until it has ended (RUN_CLOSED). Activity comes between, best effort and outside the promise of delivery. Errors: NOT_FOUND.',
    args: { runId: t.arg.id({ required: true, description: 'The run.' }) },
    subscribe: (_root, args, { services, session, signal }) => {
      if (session === null) throw badInput('Subscriptions need a transport that streams: WebSocket or SSE.');
      return services.followRun(session, args, signal);
    },
    resolve: (delivery) => delivery,
  }),
);
