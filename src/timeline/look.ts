import { type Database, statement } from '../storage/database.ts';
import type { MemberState, TimelineEvent } from './events.ts';

/**
 * One look at a thread by one viewer: head and intervals, read in one statement. An operation takes its look at
 * first touch and answers everything else as of it, so that a page and its `end` agree and a removal between
 * two statements leaks nothing. `viewerId` null is the owner with the full record.
 */
export interface Look {
  readonly ownerId: string;
  readonly threadId: string;
  readonly viewerId: string | null;
  readonly lastSeq: number;
  readonly createdAt: string;
  /** Live properties: what only administration changes. */
  readonly metaData: unknown;
  readonly threadOnly: boolean;
  readonly member: LookMember | null;
  /** Closed ranges of positions the viewer may see, ascending. */
  readonly ranges: readonly Range[];
  /** The viewer's windows as stored: (after, end], `end` null while it is open. */
  readonly windows: readonly Window[];
  /** The last position the viewer may see. */
  readonly end: { readonly seq: number; readonly id: string; readonly at: string };
  /** Microseconds since 1970 of the last visible event: what lists are ordered by. */
  readonly activity: string;
  readonly unreadCount: number;
  /** `performance.now()` just before the statement. */
  readonly readAt: number;
  /** Retractions after this position do not count for the viewer: its end while removed, else the head. */
  readonly horizon: number;
}

interface LookMember {
  readonly state: MemberState;
  readonly ackSeq: number;
}

interface Range {
  readonly low: number;
  readonly high: number;
}

interface Window {
  readonly after: number;
  readonly end: number | null;
}

/** A row of `lookSelect`. */
export interface LookRow {
  ordinal: number;
  owner_id: string;
  thread_id: string;
  viewer_id: string | null;
  /** Whether the position that was asked about holds the event its tag says; true where none was. */
  position_holds: boolean;
  last_seq: number;
  created_at: string;
  meta_data: unknown;
  thread_only: boolean;
  message_count: number;
  state: MemberState | null;
  ack_seq: number | null;
  closed_visible: number;
  open_after_no: number;
  sent_count: number;
  ack_visible: number;
  ack_sent: number;
  unread_retracted: number;
  afters: number[] | null;
  ends: (number | null)[] | null;
  end_seq: number;
  end_id: string;
  end_at: string;
  activity: string;
}

/**
 * The look of every (ordinal, owner_id, thread_id, viewer_id, seq, tag) of the relation `wanted`; threads that are gone, or that
 * the viewer is no member of, give no row.
 */
export const lookSelect = (wanted: string): string => `
SELECT wanted.ordinal::int AS ordinal, wanted.owner_id, wanted.thread_id, wanted.viewer_id, h.last_seq, h.message_count,
  to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at, t.meta_data, t.thread_only,
  m.state::text AS state, m.ack_seq, m.closed_visible, m.open_after_no, m.sent_count, m.ack_visible, m.ack_sent, m.unread_retracted,
  w.afters, w.ends, l.seq AS end_seq, l.id AS end_id,
  to_char(l.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS end_at,
  (extract(epoch FROM l.at) * 1000000)::bigint::text AS activity,
  coalesce(wanted.seq, 0) = 0 OR EXISTS (
    SELECT 1 FROM events e WHERE e.owner_id = wanted.owner_id AND e.thread_id = wanted.thread_id
      AND e.seq = wanted.seq AND right(e.id, 6) = wanted.tag) AS position_holds
FROM ${wanted} AS wanted
JOIN thread_heads h ON h.owner_id = wanted.owner_id AND h.thread_id = wanted.thread_id
JOIN threads t ON t.owner_id = wanted.owner_id AND t.id = wanted.thread_id AND t.deleted_at IS NULL
LEFT JOIN thread_members m ON m.owner_id = wanted.owner_id AND m.thread_id = wanted.thread_id AND m.participant_id = wanted.viewer_id
LEFT JOIN LATERAL (
  SELECT array_agg(v.after_seq ORDER BY v.after_seq) AS afters, array_agg(v.end_seq ORDER BY v.after_seq) AS ends
  FROM visibility_windows v
  WHERE v.owner_id = wanted.owner_id AND v.thread_id = wanted.thread_id AND v.participant_id = wanted.viewer_id
) w ON true
JOIN LATERAL (
  SELECT e.seq, e.id, e.at FROM events e
  WHERE e.owner_id = wanted.owner_id AND e.thread_id = wanted.thread_id
    AND e.seq <= CASE WHEN m.state = 'REMOVED' THEN m.since_seq ELSE h.last_seq END
    AND (wanted.viewer_id IS NULL OR wanted.viewer_id <> ALL (e.hidden_from))
  ORDER BY e.seq DESC LIMIT 1
) l ON true
WHERE wanted.viewer_id IS NULL OR m.participant_id IS NOT NULL`;

const LOOKS = statement<LookRow>(
  'looks',
  lookSelect(`(
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::text[])
      WITH ORDINALITY AS u(owner_id, thread_id, viewer_id, seq, tag, ordinal)
  )`),
);

export interface LookKey {
  readonly threadId: string;
  readonly viewerId: string | null;
}

export interface WantedLook extends LookKey {
  readonly ownerId: string;
  /** A position whose event must be the one its cursor was made of. */
  readonly position?: { readonly seq: number; readonly tag: string } | null | undefined;
}

export interface LookAnswer {
  readonly look: Look;
  readonly positionHolds: boolean;
}

/** Looks for all keys in one statement, in their order; null where the viewer may not know of the thread. */
export const readLooks = async (
  database: Database,
  wanted: readonly WantedLook[],
): Promise<(LookAnswer | null)[]> => {
  const readAt = performance.now();
  const rows = await database.query(LOOKS, [
    wanted.map((key) => key.ownerId),
    wanted.map((key) => key.threadId),
    wanted.map((key) => key.viewerId),
    wanted.map((key) => key.position?.seq ?? null),
    wanted.map((key) => key.position?.tag ?? null),
  ]);
  const byOrdinal = new Map(rows.map((row) => [row.ordinal, row]));
  return wanted.map((_, index) => {
    const row = byOrdinal.get(index + 1);
    return row === undefined ? null : { look: lookFromRow(row, readAt), positionHolds: row.position_holds };
  });
};

export const lookKey = (key: LookKey): string => `${key.threadId} ${key.viewerId ?? ''}`;

export const lookFromRow = (row: LookRow, readAt: number): Look => {
  const windows = windowsOf(row);
  return {
    ownerId: row.owner_id,
    threadId: row.thread_id,
    viewerId: row.viewer_id,
    lastSeq: row.last_seq,
    createdAt: row.created_at,
    metaData: row.meta_data,
    threadOnly: row.thread_only,
    member: row.state === null ? null : { state: row.state, ackSeq: row.ack_seq ?? 0 },
    windows,
    // A re-add at `after` is its subject's to see; position 0 is before the first event.
    ranges: windows.map(({ after, end }) => ({ low: Math.max(after, 1), high: end ?? row.last_seq })),
    end: { seq: row.end_seq, id: row.end_id, at: row.end_at },
    activity: row.activity,
    unreadCount: unread(row),
    readAt,
    horizon: row.state === 'REMOVED' ? row.end_seq : row.last_seq,
  };
};

const windowsOf = (row: LookRow): Window[] =>
  row.viewer_id === null
    ? [{ after: 0, end: null }]
    : (row.afters ?? []).map((after, index) => ({ after, end: row.ends?.[index] ?? null }));

/** Visible messages by others after the read position, less those retracted for this viewer. */
const unread = (row: LookRow): number => {
  if (row.state === null) return 0;
  const open = row.state === 'ACTIVE' ? row.message_count - row.open_after_no : 0;
  const visible = row.closed_visible + open - row.ack_visible;
  const own = row.sent_count - row.ack_sent;
  return visible - own - row.unread_retracted;
};

/** The rule of windows for one event of the look's thread, as of the look. */
export const isVisible = (
  look: Look,
  event: Pick<TimelineEvent, 'threadId' | 'seq' | 'hiddenFrom'>,
): boolean =>
  event.threadId === look.threadId &&
  event.seq <= look.end.seq &&
  isSeqInRanges(look, event.seq) &&
  (look.viewerId === null || !event.hiddenFrom.includes(look.viewerId));

export const isSeqInRanges = (look: Look, seq: number): boolean =>
  look.ranges.some((range) => range.low <= seq && seq <= range.high);
