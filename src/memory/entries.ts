import type { MemorySight } from '../auth/sight.ts';
import { type Database, statement } from '../storage/database.ts';

/** One entry of an agent's memory. */
export interface MemoryEntry {
  readonly ownerId: string;
  /** Whose it is. */
  readonly participantId: string;
  /** 1, 2, 3 … per agent, in the order in which they were stored. */
  readonly number: number;
  readonly id: string;
  /** RFC 3339 in UTC with microseconds. */
  readonly timestamp: string;
  readonly payload: unknown;
  /** Its payload is gone; the entry itself stays. */
  readonly isErased: boolean;
  /** The stamp: where the agent worked, whether it is recalled there only, how far the thread was. Null: nowhere. */
  readonly threadId: string | null;
  readonly threadOnly: boolean | null;
  readonly threadSeq: number | null;
  readonly sourceIds: readonly string[];
  readonly runId: string | null;
  /** Of the payload. */
  readonly bytes: number;
}

/** A row of the view `memory_rows`. */
export interface MemoryRow {
  owner_id: string;
  participant_id: string;
  number: number;
  id: string;
  timestamp: string;
  payload: unknown;
  is_erased: boolean;
  bytes: number;
  thread_id: string | null;
  thread_only: boolean | null;
  thread_seq: number | null;
  source_ids: string[];
  run_id: string | null;
}

export const memoryFromRow = (row: MemoryRow): MemoryEntry => ({
  ownerId: row.owner_id,
  participantId: row.participant_id,
  number: row.number,
  id: row.id,
  timestamp: row.timestamp,
  payload: row.payload,
  isErased: row.is_erased,
  threadId: row.thread_id,
  threadOnly: row.thread_only,
  threadSeq: row.thread_seq,
  sourceIds: row.source_ids,
  runId: row.run_id,
  bytes: row.bytes,
});

export const bytesOfMemories = (entries: readonly (MemoryEntry | null)[]): number =>
  entries.reduce((sum, entry) => sum + (entry?.bytes ?? 0), 0);

/** Who looks (null: the owner, who sees all), and where: an agent that works in a thread sees there what it recalls there. */
export interface MemoryQuestion extends MemorySight {
  readonly id: string;
}

export const memoryKey = ({ id, viewerId, threadId, isHereOnly = false }: MemoryQuestion): string =>
  `${id} ${viewerId ?? ''} ${threadId ?? ''} ${isHereOnly}`;

const VISIBLE = statement<MemoryRow & { question: number }>(
  'visible_memories',
  `SELECT u.question::int AS question, r.* FROM unnest($2::text[], $3::text[], $4::text[], $5::boolean[]) WITH ORDINALITY AS u(id, viewer_id, thread_id, here_only, question)
   CROSS JOIN LATERAL visible_memories($1, u.viewer_id, u.thread_id, u.here_only, ARRAY[u.id]) r`,
);

/** In the order of the questions; null for what does not exist or may not be seen. */
export const readVisibleMemories = async (
  database: Database,
  ownerId: string,
  questions: readonly MemoryQuestion[],
): Promise<(MemoryEntry | null)[]> => {
  const rows = await database.query(VISIBLE, [
    ownerId,
    questions.map(({ id }) => id),
    questions.map(({ viewerId }) => viewerId),
    questions.map(({ threadId }) => threadId),
    questions.map(({ isHereOnly = false }) => isHereOnly),
  ]);
  const found = new Map(rows.map((row) => [row.question, memoryFromRow(row)]));
  return questions.map((_, index) => found.get(index + 1) ?? null);
};
