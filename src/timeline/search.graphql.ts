import { builder } from '../graphql/builder.ts';
import { AS, pageArgs } from '../graphql/pageArgs.ts';
import { MessageNode } from '../graphql/refs.ts';
import { bytesOfEvents } from './events.ts';
import { visibleOnly } from './views.graphql.ts';

const MessageEdge = builder.edgeObject({
  type: MessageNode,
  name: 'MessageEdge',
  description: 'A message and where it stands among what was found.',
});

const MessageConnection = builder.connectionObject(
  {
    type: MessageNode,
    name: 'MessageConnection',
    description: 'A page of messages, as many as asked for or as fit into 1 MiB.',
  },
  MessageEdge,
);

builder.queryField('searchMessages', (t) =>
  t.field({
    type: MessageConnection,
    nullable: true,
    description:
      'Messages with all words of the query that the viewer may see, also retracted ones: the best first, of the newest 2,000. Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, INVALID_CURSOR, NOT_FOUND.',
    args: {
      query: t.arg.string({
        required: true,
        description: 'Words of whatever language, found in the texts of messages; at most 4 KiB.',
      }),
      threadId: t.arg.id({ description: 'Only in this thread. Absent: in all that the viewer is in.' }),
      as: t.arg.id({ description: AS }),
      ...pageArgs,
    },
    resolve: async (_root, args, context) => {
      const { edges, pageInfo, viewerId } = await context.loaders.portions.take(
        () => context.services.search.messages(context.actor, args),
        (page) => bytesOfEvents(page.edges.map(({ node }) => node)),
      );
      // Where the operation has looked at a thread before, that look answers here too.
      const views = await Promise.all(edges.map(({ node }) => visibleOnly(context, node, viewerId)));
      return {
        pageInfo,
        edges: edges.flatMap(({ cursor }, index) => {
          const node = views[index];
          return node ? [{ cursor, node }] : [];
        }),
      };
    },
  }),
);
