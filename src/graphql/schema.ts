import type { GraphQLSchema } from 'graphql';
import '../auth/credentials.graphql.ts';
import '../inbox/mutations.graphql.ts';
import '../inbox/subscription.graphql.ts';
import '../memory/memory.graphql.ts';
import '../participants/participants.graphql.ts';
import '../participants/users.graphql.ts';
import '../runs/mutations.graphql.ts';
import '../runs/queries.graphql.ts';
import '../runs/runs.graphql.ts';
import '../runs/subscription.graphql.ts';
import '../scratchpads/content.graphql.ts';
import '../scratchpads/entries.graphql.ts';
import '../scratchpads/mutations.graphql.ts';
import '../scratchpads/scratchpads.graphql.ts';
import '../scratchpads/subscription.graphql.ts';
import '../signals/signals.graphql.ts';
import '../threads/engagements.graphql.ts';
import '../threads/mutations.graphql.ts';
import '../threads/subscription.graphql.ts';
import '../threads/threads.graphql.ts';
import '../timeline/events.graphql.ts';
import '../timeline/mutations.graphql.ts';
import '../timeline/search.graphql.ts';
import '../timeline/subscription.graphql.ts';
import '../timeline/timeline.graphql.ts';
import '../tools/execution.graphql.ts';
import '../tools/hydration.graphql.ts';
import './nodes.ts';
import './scalars.ts';
import { builder } from './builder.ts';
import type { GraphQLContext } from './context.ts';
import { countStreams } from './presence.ts';

export const createSchema = (): GraphQLSchema => {
  const schema = builder.toSchema();
  freshenMutations(schema);
  countStreams(schema);
  return schema;
};

/** Each mutation in a document starts afresh: what an earlier one looked at is not what this one changed. */
const freshenMutations = (schema: GraphQLSchema): void => {
  for (const field of Object.values(schema.getMutationType()?.getFields() ?? {})) {
    const { resolve } = field;
    if (resolve === undefined) continue;
    field.resolve = (root, args, context: GraphQLContext, info) => {
      context.loaders = context.services.createLoaders(context.actor);
      return resolve(root, args, context, info);
    };
  }
};
