import type { KeysetRange } from '../shared/paging.ts';
import { type Database, type Statement, statement } from '../storage/database.ts';
import type { PadAddress } from './keys.ts';
import type { Pad } from './pad.ts';

/** A thread's pad: what administration changes. Its state (content, entries) is not here and does not move it. */
export interface Scratchpad extends Pad {
  readonly metaData: unknown;
  /** RFC 3339 in UTC, milliseconds. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ScratchpadRow {
  id: string;
  owner_id: string;
  thread_id: string;
  meta_data: unknown;
  ttl_seconds: number | null;
  ttl_version: number;
  legacy_pending: boolean;
  created: string;
  updated: string;
}

/** `Pad.ttlVersion` of a row of scratchpads: a trigger lets `updated_at` grow by a millisecond at least. */
export const TTL_VERSION = (row: string): string => `(extract(epoch FROM ${row}.updated_at) * 1000)::float8`;

/** What a `ScratchpadRow` is made of, of a relation `s` with the columns of scratchpads. */
export const PAD_COLUMNS = `s.id, s.owner_id, s.thread_id, s.meta_data, s.ttl_seconds, ${TTL_VERSION('s')} AS ttl_version, s.legacy_checked_at IS NULL AS legacy_pending,
  to_char(s.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created,
  to_char(s.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated`;

/** A participant knows of the pads of its threads, also while it is removed; the owner of all its own. */
const SEEN_BY = (viewer: string): string => `(${viewer}::text IS NULL OR EXISTS (
  SELECT 1 FROM thread_members m
  WHERE m.owner_id = s.owner_id AND m.thread_id = s.thread_id AND m.participant_id = ${viewer}))`;

const BY_ID = statement<ScratchpadRow>(
  'scratchpads_by_id',
  `SELECT ${PAD_COLUMNS} FROM scratchpads s WHERE s.owner_id = $1 AND s.id = ANY ($2::text[]) AND ${SEEN_BY('$3')}`,
);
export const OF_THREADS = statement<ScratchpadRow>(
  'scratchpads_of_threads',
  `SELECT ${PAD_COLUMNS} FROM scratchpads s WHERE s.owner_id = $1 AND s.thread_id = ANY ($2::text[]) AND ${SEEN_BY('$3')}`,
);

const time = (parameter: string, otherwise: string): string =>
  `coalesce('epoch'::timestamptz + ${parameter}::bigint * interval '1 millisecond', '${otherwise}')`;

const range = (id: string): string => `(s.created_at, ${id}) > (${time('$2', '-infinity')}, coalesce($3, ''))
  AND (s.created_at, ${id}) < (${time('$4', 'infinity')}, coalesce($5, ''))`;

type Order = 'ASC' | 'DESC';

const ofOwner = (order: Order): string =>
  `SELECT ${PAD_COLUMNS} FROM scratchpads s WHERE s.owner_id = $1 AND ${range('s.id')}
   ORDER BY s.created_at ${order}, s.id ${order} LIMIT $6`;

/** A page costs what it has, however many threads the viewer is in: its list is kept in this order. */
const ofViewer = (order: Order): string => `WITH seen AS MATERIALIZED (
  SELECT s.scratchpad_id FROM scratchpad_viewers s
  WHERE s.owner_id = $1 AND s.participant_id = $7 AND ${range('s.scratchpad_id')}
  ORDER BY s.created_at ${order}, s.scratchpad_id ${order} LIMIT $6
) SELECT ${PAD_COLUMNS} FROM seen CROSS JOIN LATERAL (
  SELECT p.* FROM scratchpads p WHERE p.owner_id = $1 AND p.id = seen.scratchpad_id LIMIT 1) s
  ORDER BY s.created_at ${order}, s.id ${order}`;

const listSelect = (name: string, select: (order: Order) => string, order: Order): Statement<ScratchpadRow> =>
  statement<ScratchpadRow>(`scratchpads_${name}_${order.toLowerCase()}`, select(order));
const LISTS = {
  owner: {
    forward: listSelect('of_owner', ofOwner, 'ASC'),
    inverted: listSelect('of_owner', ofOwner, 'DESC'),
  },
  viewer: {
    forward: listSelect('of_viewer', ofViewer, 'ASC'),
    inverted: listSelect('of_viewer', ofViewer, 'DESC'),
  },
} as const;

const MARK_LEGACY = statement(
  'scratchpad_legacy_checked',
  'UPDATE scratchpads SET legacy_checked_at = now() WHERE owner_id = $1 AND id = $2 AND legacy_checked_at IS NULL',
);

export interface PadRows {
  fromRow(row: ScratchpadRow): Scratchpad;
  /** Those of the tenant with these ids that the viewer (null: the owner) may know of, in no order. */
  byId(ownerId: string, ids: readonly string[], viewerId: string | null): Promise<Scratchpad[]>;
  ofThreads(ownerId: string, threadIds: readonly string[], viewerId: string | null): Promise<Scratchpad[]>;
  /** By the time of creation, then by id: keys are milliseconds since 1970 and id. */
  list(ownerId: string, viewerId: string | null, range: KeysetRange): Promise<Scratchpad[]>;
}

export const createPadRows = ({
  database,
  ttlSeconds,
}: {
  database: Database;
  /** Of pads that have none of their own. */
  ttlSeconds: number;
}): PadRows => {
  const fromRow = (row: ScratchpadRow): Scratchpad => ({
    ownerId: row.owner_id,
    threadId: row.thread_id,
    scratchpadId: row.id,
    metaData: row.meta_data,
    ttlSeconds: row.ttl_seconds ?? ttlSeconds,
    ttlVersion: row.ttl_version,
    legacyPending: row.legacy_pending,
    createdAt: row.created,
    updatedAt: row.updated,
  });
  const read = async (from: Statement<ScratchpadRow>, values: readonly unknown[]): Promise<Scratchpad[]> =>
    (await database.query(from, values)).map(fromRow);
  return {
    fromRow,
    byId: (ownerId, ids, viewerId) => read(BY_ID, [ownerId, ids, viewerId]),
    ofThreads: (ownerId, threadIds, viewerId) => read(OF_THREADS, [ownerId, threadIds, viewerId]),
    list: (ownerId, viewerId, { after, before, limit, inverted }) => {
      const lists = viewerId === null ? LISTS.owner : LISTS.viewer;
      return read(inverted ? lists.inverted : lists.forward, [
        ownerId,
        after?.[0] ?? null,
        after?.[1] ?? null,
        before?.[0] ?? null,
        before?.[1] ?? null,
        limit,
        ...(viewerId === null ? [] : [viewerId]),
      ]);
    },
  };
};

/** State of an earlier format was looked for, and is never again. Does not move `updatedAt`. */
export const markLegacyChecked = async (
  database: Database,
  { ownerId, scratchpadId }: PadAddress,
): Promise<void> => void (await database.query(MARK_LEGACY, [ownerId, scratchpadId]));
