import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { type EntryView, type EventView, type MemoryView, MessageNode } from '../graphql/refs.ts';
import { visibleMemory } from '../memory/views.graphql.ts';
import { isId } from '../shared/ids.ts';
import { visibleEvent } from '../timeline/views.graphql.ts';
import { visibleEntry } from './views.graphql.ts';

/** Those of what a writing derives from that the viewer may see. `place`: the thread or the scratchpad it stands in. */
export const visibleSources = async (
  context: GraphQLContext,
  ids: readonly string[],
  viewerId: string | null,
  place: string | null,
): Promise<(EventView | EntryView | MemoryView)[]> => {
  const found = await Promise.all(
    ids.map(async (id) => {
      if (isId('ScratchpadEntry', id)) return visibleEntry(context, id, viewerId);
      if (isId('MemoryEntry', id))
        return visibleMemory(context, id, viewerId, await threadOf(context, place));
      return visibleEvent(context, id, viewerId);
    }),
  );
  return found.filter((source) => source !== null);
};

const threadOf = async (context: GraphQLContext, place: string | null): Promise<string | null> =>
  place !== null && isId('Scratchpad', place)
    ? ((await context.loaders.scratchpad.load(place))?.threadId ?? null)
    : place;

builder.objectField(MessageNode, 'sources', (t) =>
  t.field({
    type: [builder.nodeInterfaceRef()],
    description: 'What it derives from; those the viewer may not see are left out.',
    resolve: ({ event, viewerId }, _args, context) =>
      visibleSources(context, event.sourceIds, viewerId, event.threadId),
  }),
);
