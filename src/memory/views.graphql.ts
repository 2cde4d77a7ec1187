import type { GraphQLContext } from '../graphql/context.ts';
import type { MemoryView } from '../graphql/refs.ts';
import type { Page } from '../shared/paging.ts';
import { bytesOfMemories, type MemoryEntry } from './entries.ts';
import type { MemoryPage } from './memories.ts';

export const memoryView = (
  memory: MemoryEntry,
  viewerId: string | null,
  recalledIn: string | null,
): MemoryView => ({ __typename: 'MemoryEntry', memory, viewerId, recalledIn });

/** The entry with this id if the viewer may see it: an agent those it recalls everywhere, and in `threadId`. */
export const visibleMemory = async (
  context: GraphQLContext,
  id: string,
  viewerId: string | null,
  threadId: string | null,
): Promise<MemoryView | null> => {
  const memory = await context.loaders.memory.load({ id, viewerId, threadId });
  return memory === null ? null : memoryView(memory, viewerId, threadId);
};

/** What was read, each entry as its viewer sees it; null where there is nothing to see. */
export const memoryPage = async (
  context: GraphQLContext,
  read: () => Promise<MemoryPage | null>,
): Promise<Page<MemoryView> | null> => {
  const found = await context.loaders.portions.take(read, (page) =>
    bytesOfMemories(page?.edges.map(({ node }) => node) ?? []),
  );
  if (found === null) return null;
  const { edges, pageInfo, viewerId, threadId } = found;
  return {
    edges: edges.map(({ cursor, node }) => ({ cursor, node: memoryView(node, viewerId, threadId) })),
    pageInfo,
  };
};
