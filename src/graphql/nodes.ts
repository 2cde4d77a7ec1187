import { requireTenant, viewerOf } from '../auth/acting.ts';
import { badInput } from '../shared/errors.ts';
import { kindOfId } from '../shared/ids.ts';
import { LIMITS } from '../shared/input.ts';
import { visibleEvent } from '../timeline/views.graphql.ts';
import { builder } from './builder.ts';
import type { GraphQLContext } from './context.ts';
import { AS } from './pageArgs.ts';

/** Of any node type; null for what does not exist or may not be seen, which is the same. */
const findNode = async (context: GraphQLContext, id: string, as: string | null | undefined) => {
  const { actor, services, loaders } = context;
  const viewerId = viewerOf(requireTenant(actor), as);
  const kind = kindOfId(id);
  switch (kind) {
    case 'User':
      return named('User', await services.users.find(actor, id));
    case 'Participant':
      return named('Participant', await services.participants.find(actor, { id, as }));
    case 'Credential':
      return named('Credential', await services.credentials.find(actor, id));
    case 'Thread':
      return named('Thread', await loaders.look.load({ threadId: id, viewerId }));
    case 'Event':
      return visibleEvent(context, id, viewerId);
    case 'Engagement':
      return named('Engagement', await services.engagements.find(actor, { id, as }));
    case 'Scratchpad':
    case 'MemoryEntry':
    case 'Run':
    case 'Audit':
    case undefined:
      return null;
    default:
      return kind satisfies never;
  }
};

/** Says which type it is: `Node` alone does not tell. */
const named = <T extends object>(typename: string, object: T | null): (T & { __typename: string }) | null =>
  object === null ? null : { ...object, __typename: typename };

builder.queryFields((t) => ({
  node: t.field({
    type: builder.nodeInterfaceRef(),
    nullable: true,
    description: 'Any object by its global id; null for what does not exist or may not be seen.',
    args: { id: t.arg.id({ required: true, description: 'Its id.' }), as: t.arg.id({ description: AS }) },
    resolve: (_root, { id, as }, context) => findNode(context, id, as),
  }),
  nodes: t.field({
    type: [builder.nodeInterfaceRef()],
    nullable: { list: false, items: true },
    description: 'Several objects, in the order of their ids; at most 200.',
    args: {
      ids: t.arg.idList({ required: true, description: 'Their ids: at most 200.' }),
      as: t.arg.id({ description: AS }),
    },
    resolve: (_root, { ids, as }, context) => {
      if (ids.length > LIMITS.nodes)
        throw badInput(`ids has more than ${LIMITS.nodes}.`, { field: 'ids', limit: LIMITS.nodes });
      return Promise.all(ids.map((id) => findNode(context, id, as)));
    },
  }),
}));
