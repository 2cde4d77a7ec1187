import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { type EntryView, type EventView, MessageNode } from '../graphql/refs.ts';
import { isId } from '../shared/ids.ts';
import { visibleEvent } from '../timeline/views.graphql.ts';
import { visibleEntry } from './views.graphql.ts';

/** Those of what a writing derives from that the viewer may see. */
export const visibleSources = async (
  context: GraphQLContext,
  ids: readonly string[],
  viewerId: string | null,
): Promise<(EventView | EntryView)[]> => {
  const found = await Promise.all(
    ids.map((id) =>
      isId('ScratchpadEntry', id) ? visibleEntry(context, id, viewerId) : visibleEvent(context, id, viewerId),
    ),
  );
  return found.filter((source) => source !== null);
};

builder.objectField(MessageNode, 'sources', (t) =>
  t.field({
    type: [builder.nodeInterfaceRef()],
    description: 'What it derives from; those the viewer may not see are left out.',
    resolve: ({ event, viewerId }, _args, context) => visibleSources(context, event.sourceIds, viewerId),
  }),
);
