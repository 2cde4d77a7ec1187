import { type Database, statement } from '../storage/database.ts';
import type { MemberState } from '../timeline/events.ts';
import type { Look } from '../timeline/look.ts';

/** A member as a viewer sees it: its present state, and since when as far as the viewer may know. */
export interface Member {
  readonly threadId: string;
  readonly participantId: string;
  readonly viewerId: string | null;
  readonly state: MemberState;
  /** RFC 3339 in UTC with microseconds. */
  readonly since: string;
}

interface MemberRow {
  look: number;
  participant_id: string;
  state: MemberState;
  since: string;
}

/**
 * Members of each look's thread, in the order of their ids. Nothing here is later than the look but a `state`, which is
 * everybody's to see: `since` is that of the last change up to the look's bound. While the viewer is removed, another's
 * is that of its last change that lies in one of the viewer's windows, else the opening: also what lies between two
 * windows stays unknown. A member's changes are the ends of its own windows, so that each is found by key.
 */
const MEMBERS = statement<MemberRow>(
  'thread_members',
  `SELECT u.look, m.participant_id, m.state::text AS state,
     to_char(coalesce(
       CASE WHEN m.since_seq = 1 OR (NOT u.is_away AND m.since_seq <= u.bound) THEN m.since_at END,
       (SELECT e.at FROM events e WHERE e.owner_id = u.owner_id AND e.thread_id = u.thread_id AND e.seq = coalesce((
          SELECT c.seq FROM visibility_windows w CROSS JOIN LATERAL (VALUES (w.end_seq), (w.after_seq)) AS c(seq)
          WHERE w.owner_id = u.owner_id AND w.thread_id = u.thread_id AND w.participant_id = m.participant_id
            AND w.after_seq <= u.bound AND c.seq BETWEEN 1 AND u.bound
            AND (NOT u.is_away OR (
              SELECT v.end_seq IS NULL OR v.end_seq >= c.seq FROM visibility_windows v
              WHERE v.owner_id = u.owner_id AND v.thread_id = u.thread_id AND v.participant_id = u.viewer_id
                AND v.after_seq <= c.seq
              ORDER BY v.after_seq DESC LIMIT 1))
          ORDER BY w.after_seq DESC, c.seq DESC LIMIT 1), 1))
     ) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS since
   FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::boolean[])
     WITH ORDINALITY AS u(owner_id, thread_id, viewer_id, bound, is_away, look)
   JOIN thread_members m ON m.owner_id = u.owner_id AND m.thread_id = u.thread_id
   ORDER BY u.look, m.participant_id`,
);

export const readMembers = async (database: Database, looks: readonly Look[]): Promise<Member[][]> => {
  const rows = await database.query(MEMBERS, [
    looks.map((look) => look.ownerId),
    looks.map((look) => look.threadId),
    looks.map((look) => look.viewerId),
    looks.map((look) => look.horizon),
    looks.map((look) => look.member?.state === 'REMOVED'),
  ]);
  const members = looks.map((): Member[] => []);
  for (const row of rows) {
    const index = Number(row.look) - 1;
    const look = looks[index];
    if (look === undefined) continue;
    members[index]?.push({
      threadId: look.threadId,
      viewerId: look.viewerId,
      participantId: row.participant_id,
      state: row.state,
      since: row.since,
    });
  }
  return members;
};

const COUNTS = statement<{ thread_id: string; count: number }>(
  'thread_member_counts',
  `SELECT m.thread_id, count(*)::int AS count FROM thread_members m
   WHERE m.owner_id = $1 AND m.thread_id = ANY ($2::text[]) GROUP BY m.thread_id`,
);

export const readMemberCounts = async (
  database: Database,
  ownerId: string,
  threadIds: readonly string[],
): Promise<number[]> => {
  const rows = await database.query(COUNTS, [ownerId, threadIds]);
  const counts = new Map(rows.map((row) => [row.thread_id, row.count]));
  return threadIds.map((threadId) => counts.get(threadId) ?? 0);
};
