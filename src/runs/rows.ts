import type { ScratchpadAccess } from '../auth/actor.ts';
import { type Database, statement } from '../storage/database.ts';

/** What a run that is open may be. */
const OPEN_STATUSES = ['QUEUED', 'IN_PROGRESS', 'INPUT_REQUIRED'] as const;
export type RunStatus = (typeof OPEN_STATUSES)[number] | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';

/** A delegated piece of work. Times are RFC 3339 in UTC, milliseconds. */
export interface Run {
  readonly id: string;
  readonly ownerId: string;
  /** Who works. */
  readonly participantId: string;
  /** For whom; null: the owner. */
  readonly delegatorId: string | null;
  readonly parentRunId: string | null;
  /** Null once the thread is gone. */
  readonly conversationThreadId: string | null;
  /** Null: without one, or it is gone. */
  readonly scratchpadId: string | null;
  readonly access: ScratchpadAccess;
  /** Through whose windows it sees its scratchpad; null: the owner's full record. */
  readonly padViewerId: string | null;
  readonly status: RunStatus;
  /** Counts its changes. */
  readonly version: number;
  readonly input: unknown;
  readonly result: unknown;
  readonly error: string | null;
  readonly metaData: unknown;
  readonly toolCalls: number;
  readonly maxToolCalls: number;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly expiresAt: string | null;
}

/** A row of the view `run_rows`. */
export interface RunRow {
  id: string;
  owner_id: string;
  participant_id: string;
  delegator_id: string | null;
  parent_run_id: string | null;
  conversation_thread_id: string | null;
  scratchpad_id: string | null;
  access: ScratchpadAccess;
  pad_viewer_id: string | null;
  status: RunStatus;
  version: number;
  input: unknown;
  result: unknown;
  error: string | null;
  meta_data: unknown;
  tool_calls: number;
  max_tool_calls: number;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  expires_at: string | null;
}

/** And whose inboxes the statement woke. */
export type WokenRow = RunRow & { woken: string[] };

/** A run for whoever asked, and a token of it that is shown once. */
export interface TokenOfRun {
  readonly run: Run;
  readonly viewerId: string | null;
  readonly token: string;
}

export const runFromRow = (row: RunRow): Run => ({
  id: row.id,
  ownerId: row.owner_id,
  participantId: row.participant_id,
  delegatorId: row.delegator_id,
  parentRunId: row.parent_run_id,
  conversationThreadId: row.conversation_thread_id,
  scratchpadId: row.scratchpad_id,
  access: row.access,
  padViewerId: row.pad_viewer_id,
  status: row.status,
  version: row.version,
  input: row.input,
  result: row.result,
  error: row.error,
  metaData: row.meta_data,
  toolCalls: row.tool_calls,
  maxToolCalls: row.max_tool_calls,
  createdAt: row.created_at,
  startedAt: row.started_at,
  finishedAt: row.finished_at,
  expiresAt: row.expires_at,
});

export const isOpen = ({ finishedAt }: Pick<Run, 'finishedAt'>): boolean => finishedAt === null;

const BY_ID = statement<RunRow>(
  'runs_by_id',
  'SELECT r.* FROM run_rows r WHERE r.owner_id = $1 AND r.id = ANY ($2::text[])',
);

/** Runs of this tenant by id, whoever may see them: the caller asks `seesRun`. */
export const readRunsById = async (
  database: Database,
  ownerId: string,
  ids: readonly string[],
): Promise<(Run | null)[]> => {
  const rows = await database.query(BY_ID, [ownerId, ids]);
  const byId = new Map(rows.map((row) => [row.id, runFromRow(row)]));
  return ids.map((id) => byId.get(id) ?? null);
};
