import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor, RunScope } from '../auth/actor.ts';
import { runOf } from '../auth/sight.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { LIMITS } from '../shared/input.ts';
import { type KeysetList, type KeysetRange, keysetPage, type Page, type PageArgs } from '../shared/paging.ts';
import { type Database, type Statement, statement } from '../storage/database.ts';
import { type Look, type LookRow, lookFromRow, lookSelect } from '../timeline/look.ts';

/** What a list of threads is ordered by, for a viewer: the time of the last event it may see, in microseconds. */
export const VIEWER_ACTIVITY = `CASE
  WHEN m.state = 'REMOVED' THEN m.frozen_activity
  WHEN NOT h.tail_hidden THEN h.activity
  ELSE (SELECT (extract(epoch FROM e.at) * 1000000)::bigint FROM events e
        WHERE e.owner_id = m.owner_id AND e.thread_id = m.thread_id AND m.participant_id <> ALL (e.hidden_from)
        ORDER BY e.seq DESC LIMIT 1)
END`;

const OF_OWNER = `SELECT h.owner_id, h.thread_id, NULL::text AS viewer_id, h.activity FROM thread_heads h WHERE h.owner_id = $1 AND $7::text IS NULL
  AND ($2::text IS NULL OR EXISTS (
    SELECT 1 FROM thread_members p WHERE p.owner_id = h.owner_id AND p.thread_id = h.thread_id AND p.participant_id = $2))`;

const OF_VIEWER = `SELECT m.owner_id, m.thread_id, m.participant_id AS viewer_id, ${VIEWER_ACTIVITY} AS activity
  FROM thread_members m JOIN thread_heads h ON h.owner_id = m.owner_id AND h.thread_id = m.thread_id
  WHERE m.owner_id = $1 AND m.participant_id = $7 AND ($2::text IS NULL OR EXISTS (
    SELECT 1 FROM thread_members p WHERE p.owner_id = m.owner_id AND p.thread_id = m.thread_id AND p.participant_id = $2))`;

/** Latest activity first; `inverted` walks it from the other end. */
const listSelect = (name: string, source: string, inverted: boolean): Statement<LookRow> => {
  const order = inverted ? 'ASC' : 'DESC';
  return statement<LookRow>(
    `threads_${name}_${order.toLowerCase()}`,
    `${lookSelect(`(
      SELECT row_number() OVER () AS ordinal, x.owner_id, x.thread_id, x.viewer_id, NULL::int AS seq, NULL::text AS tag, x.activity
      FROM (
        SELECT * FROM (${source}) s
        WHERE ($9::text IS NULL OR s.thread_id = $9) AND ($3::bigint IS NULL OR (s.activity, s.thread_id) < ($3::bigint, $4::text))
          AND ($5::bigint IS NULL OR (s.activity, s.thread_id) > ($5::bigint, $6::text))
        ORDER BY s.activity ${order}, s.thread_id ${order} LIMIT $8
      ) x
    )`)} ORDER BY ordinal`,
  );
};

const STATEMENTS = {
  owner: {
    forward: listSelect('of_owner', OF_OWNER, false),
    inverted: listSelect('of_owner', OF_OWNER, true),
  },
  viewer: {
    forward: listSelect('of_viewer', OF_VIEWER, false),
    inverted: listSelect('of_viewer', OF_VIEWER, true),
  },
} as const;

export const createThreadLists = ({ database }: { database: Database }) => ({
  /** Threads with something visible later than `activity` (microseconds since 1970), at most 200, the latest first. */
  changedSince: (ownerId: string, viewerId: string | null, activity: bigint): Promise<Look[]> =>
    readList(database, ownerId, viewerId, null, {
      after: null,
      before: [String(activity), ''],
      limit: LIMITS.pageSize,
      inverted: false,
    }),

  /** Threads the viewer is a member of (the owner: all), latest visible activity first. Each is a look. */
  async page(
    actor: Actor,
    args: PageArgs & {
      readonly participantId?: string | null | undefined;
      readonly as?: string | null | undefined;
    },
  ): Promise<Page<Look>> {
    const tenant = requireTenant(actor);
    const viewerId = viewerOf(tenant, args.as);
    const participantId = args.participantId ?? null;
    const run = runOf(tenant);
    const list: KeysetList<Look> = {
      name: 'threads',
      parts: [KEY_PART.number, KEY_PART.id],
      key: (look) => [look.activity, look.threadId],
      read: (range) => readList(database, tenant.userId, viewerId, participantId, range, run),
    };
    return keysetPage(args, list);
  },
});

const readList = async (
  database: Database,
  ownerId: string,
  viewerId: string | null,
  participantId: string | null,
  { after, before, limit, inverted }: KeysetRange,
  run: RunScope | null = null,
): Promise<Look[]> => {
  const statements = viewerId === null ? STATEMENTS.owner : STATEMENTS.viewer;
  const readAt = performance.now();
  const rows = await database.query(inverted ? statements.inverted : statements.forward, [
    ownerId,
    participantId,
    after?.[0] ?? null,
    after?.[1] ?? null,
    before?.[0] ?? null,
    before?.[1] ?? null,
    viewerId,
    limit,
    run?.conversationThreadId ?? null,
  ]);
  return rows.map((row) => lookFromRow(row, readAt));
};
