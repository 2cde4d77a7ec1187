import type { MemoryEntry } from '../memory/entries.ts';
import type { Json } from '../shared/canonical.ts';
import { invalidCursor } from '../shared/errors.ts';
import { jsonText, said, type ToolOutput } from './answers.ts';
import type { Workbench } from './padTools.ts';
import { countFitting, listBytes, type RestOf, readRestCursor, restCursor, shownPiece } from './pieces.ts';

/** Entries of one answer. */
const ENTRIES = 20;

export const storeMemory = async (
  { services, at, idempotencyKey }: Workbench,
  { memory }: { readonly memory: string | Readonly<Record<string, unknown>> },
): Promise<ToolOutput> => {
  const { entry } = await services.memories.store(at.actor, {
    threadId: at.threadId,
    as: at.as,
    payload: memory as Json,
    idempotencyKey,
  });
  return said(`Stored as ${entry.id}.`);
};

/** Best matches first, as many as fit into one answer, and at least one; or the rest of a long one. */
export const recallMemory = async (
  bench: Workbench,
  { query, cursor }: { readonly query: string; readonly cursor?: string | undefined },
): Promise<ToolOutput> => {
  const rest = cursor === undefined ? null : readRestCursor('memory', cursor);
  if (rest !== null) return restOfMemory(bench, rest);
  const { services, at } = bench;
  const { edges, pageInfo } = await services.memories.recall(at.actor, {
    threadId: at.threadId,
    as: at.as,
    query: query.trim() === '' ? null : query,
    first: ENTRIES,
    after: cursor,
  });
  const shown = edges.map(({ node }) => shownMemory(node));
  const [first] = edges;
  const count = countFitting(shown, listBytes());
  const isPiece = count === 0 && first !== undefined;
  const last = isPiece ? first : edges[count - 1];
  const hasMore = pageInfo.hasNextPage || (last !== undefined && last !== edges.at(-1));
  return said(
    jsonText({
      memories: isPiece ? [memoryPiece(first.node, 0)] : shown.slice(0, count),
      next_cursor: hasMore ? (last?.cursor ?? null) : null,
    }),
  );
};

/** A text, or the JSON of what is none. */
const textOf = ({ payload }: MemoryEntry): string =>
  typeof payload === 'string' ? payload : JSON.stringify(payload);

const shownMemory = ({ id, timestamp, payload }: MemoryEntry) => ({ id, at: timestamp, memory: payload });

/** Where it is too long for one answer, `memory` is a piece of its text, and `memory_rest` the cursor of what follows. */
const memoryPiece = (entry: MemoryEntry, from: number) => {
  const named = { ...shownMemory(entry), memory: '' };
  const { text, next } = shownPiece(textOf(entry), from, listBytes(named));
  return {
    ...named,
    memory: text,
    ...(next === null ? {} : { memory_rest: restCursor('memory', entry.id, next) }),
  };
};

/** Of what is recalled here, and of nothing else. */
const restOfMemory = async ({ loaders, at }: Workbench, { id, from }: RestOf): Promise<ToolOutput> => {
  const entry = await loaders.memory.load({ id, viewerId: at.participantId, threadId: at.threadId });
  if (entry === null) throw invalidCursor('cursor');
  return said(jsonText({ memories: [memoryPiece(entry, from)], next_cursor: null }));
};
