import { builder } from '../graphql/builder.ts';
import { ACT_AS } from '../graphql/pageArgs.ts';
import { badInput } from '../shared/errors.ts';
import { InboxDeliveryObject } from './inbox.graphql.ts';

builder.subscriptionField('inbox', (t) =>
  t.field({
    type: InboxDeliveryObject,
    description:
      'The inbox of an agent or unit: notices at once, messages of each thread one after the other as they are acknowledged, and a digest of the rest. It has no cursor: what was not acknowledged comes again. A second stream takes the inbox over: the first one is told and ends, and what it has in hand stays its own until the lease ends. Errors: FORBIDDEN, NOT_FOUND, BAD_USER_INPUT.',
    args: {
      as: t.arg.id({ description: ACT_AS }),
      batch: t.arg.int({
        description: 'At most so many messages of a thread in one delivery: 1 to 200, default 1.',
      }),
      standby: t.arg.boolean({
        description: 'Wait until nobody has the inbox, instead of taking it over. Default false.',
      }),
      onlyMentions: t.arg.boolean({
        description:
          'Only messages that mention it are delivered; the others are observations. Default false.',
      }),
    },
    subscribe: (_root, args, { services, session, signal }) => {
      if (session === null) throw badInput('Subscriptions need a transport that streams: WebSocket or SSE.');
      return services.followInbox(session, args, signal);
    },
    resolve: (delivery) => delivery,
  }),
);
