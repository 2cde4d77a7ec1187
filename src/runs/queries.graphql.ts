import { requireTenant, viewerOf } from '../auth/acting.ts';
import { builder } from '../graphql/builder.ts';
import { pageArgs } from '../graphql/pageArgs.ts';
import { RunNode } from '../graphql/refs.ts';
import { RunStatusEnum } from './runs.graphql.ts';
import { runView, visibleRun } from './views.graphql.ts';

const RunEdge = builder.edgeObject({
  type: RunNode,
  name: 'RunEdge',
  description: 'A run and where it stands in the list.',
});
const RunConnection = builder.connectionObject(
  {
    type: RunNode,
    name: 'RunConnection',
    description: 'A page of runs, in the order in which they were delegated.',
  },
  RunEdge,
);

builder.queryFields((t) => ({
  run: t.field({
    type: RunNode,
    nullable: true,
    description: 'A run by its id: for its worker, its delegator and the user.',
    args: { id: t.arg.id({ required: true, description: 'Its id.' }) },
    resolve: (_root, { id }, context) =>
      visibleRun(context, id, viewerOf(requireTenant(context.actor), null)),
  }),
  runs: t.field({
    type: RunConnection,
    nullable: true,
    description:
      'The user’s runs, those that a participant works on or has delegated, or a run’s own and its children, oldest first. Errors: BAD_USER_INPUT, INVALID_CURSOR.',
    args: {
      threadId: t.arg.id({
        description:
          'Only on this thread’s scratchpad, or with this conversation as far as the viewer knows it.',
      }),
      participantId: t.arg.id({ description: 'Only those that this participant works on.' }),
      parentRunId: t.arg.id({ description: 'Only children of this run.' }),
      status: t.arg({ type: RunStatusEnum, description: 'Only those that stand there.' }),
      ...pageArgs,
    },
    resolve: async (_root, { threadId, participantId, parentRunId, status, ...args }, context) => {
      const filter = { threadId, participantId, parentRunId, status };
      const { edges, ...page } = await context.services.runs.page(context.actor, filter, args);
      const viewerId = viewerOf(requireTenant(context.actor), null);
      return { ...page, edges: edges.map(({ cursor, node }) => ({ cursor, node: runView(node, viewerId) })) };
    },
  }),
}));
