import { requireTenant, viewerOf } from '../auth/acting.ts';
import { visibleMemory } from '../memory/views.graphql.ts';
import { visibleRun } from '../runs/views.graphql.ts';
import { visiblePad } from '../scratchpads/scratchpads.graphql.ts';
import { visibleEntry } from '../scratchpads/views.graphql.ts';
import { badInput } from '../shared/errors.ts';
import { type IdKind, kindOfId } from '../shared/ids.ts';
import { LIMITS } from '../shared/input.ts';
import { visibleEvent } from '../timeline/views.graphql.ts';
import { builder } from './builder.ts';
import type { GraphQLContext } from './context.ts';
import { AS } from './pageArgs.ts';

/**
 * Of any node type, in the order of the ids; null for what does not exist or may not be seen, which is the same. A
 * constant number of statements, however many ids there are.
 */
const findNodes = async (
  context: GraphQLContext,
  ids: readonly string[],
  as: string | null | undefined,
): Promise<(object | null)[]> => {
  const { actor, services, loaders } = context;
  const viewerId = viewerOf(requireTenant(actor), as);
  const of = (kind: IdKind): string[] => ids.filter((id) => kindOfId(id) === kind);
  const [users, participants, credentials, engagements] = await Promise.all([
    named('User', of('User'), (some) => services.users.findAll(actor, some)),
    named('Participant', of('Participant'), (some) =>
      services.participants.findAll(actor, { ids: some, as }),
    ),
    named('Credential', of('Credential'), (some) => services.credentials.findAll(actor, some)),
    named('Engagement', of('Engagement'), (some) => services.engagements.findAll(actor, { ids: some, as })),
  ]);
  const found = async (id: string): Promise<object | null> => {
    const kind = kindOfId(id);
    switch (kind) {
      case 'User':
        return users.get(id) ?? null;
      case 'Participant':
        return participants.get(id) ?? null;
      case 'Credential':
        return credentials.get(id) ?? null;
      case 'Engagement':
        return engagements.get(id) ?? null;
      case 'Thread': {
        const look = await loaders.look.load({ threadId: id, viewerId });
        return look && { ...look, __typename: 'Thread' };
      }
      case 'Event':
        return visibleEvent(context, id, viewerId);
      case 'Scratchpad': {
        const view = await visiblePad(context, id, viewerId);
        return view && { ...view, __typename: 'Scratchpad' };
      }
      case 'ScratchpadEntry':
        return visibleEntry(context, id, viewerId);
      case 'MemoryEntry':
        return visibleMemory(context, id, viewerId, null);
      case 'Run':
        return visibleRun(context, id, viewerId);
      case 'Delivery':
      case 'Audit':
      case undefined:
        return null;
      default:
        return kind satisfies never;
    }
  };
  return Promise.all(ids.map(found));
};

/** By id, each saying which type it is: `Node` alone does not tell. Reads nothing where nothing is asked for. */
const named = async <T extends { readonly id: string }>(
  typename: string,
  ids: readonly string[],
  read: (ids: readonly string[]) => Promise<T[]>,
): Promise<ReadonlyMap<string, T & { __typename: string }>> => {
  const found = ids.length === 0 ? [] : await read(ids);
  return new Map(found.map((object) => [object.id, { ...object, __typename: typename }]));
};

builder.queryFields((t) => ({
  node: t.field({
    type: builder.nodeInterfaceRef(),
    nullable: true,
    description: 'Any object by its global id; null for what does not exist or may not be seen.',
    args: { id: t.arg.id({ required: true, description: 'Its id.' }), as: t.arg.id({ description: AS }) },
    resolve: async (_root, { id, as }, context) => (await findNodes(context, [id], as))[0] ?? null,
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
      return findNodes(context, ids, as);
    },
  }),
}));
