import { parseTimelineCursor } from '../shared/cursors.ts';
import { badInput, invalidCursor } from '../shared/errors.ts';
import { LIMITS } from '../shared/input.ts';
import { type Database, statement } from '../storage/database.ts';
import { eventFromRow, type TimelineEvent, type TimelineEventType, type TimelineRow } from './events.ts';
import type { Look } from './look.ts';

export interface PageArguments {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
  readonly types?: readonly TimelineEventType[] | null | undefined;
  /** The texts of the page take at most so many bytes, but never less than one event. */
  readonly maxBytes?: number | undefined;
}

export interface TimelinePage {
  /** Ascending. */
  readonly events: readonly TimelineEvent[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

type PageRow = TimelineRow & { part: 'page' | 'more' | 'earlier' | 'later' };

/** The page and, where a cursor bounds it, whether anything visible lies on that cursor's other side. */
const pageFrom = (page: string, also = ''): string =>
  `WITH checked AS MATERIALIZED (
     SELECT tp_require_position($1, $2, $10, $11, 'after'), tp_require_position($1, $2, $12, $13, 'before')
   )${also}
   (${page})
   UNION ALL
   SELECT 'earlier', r.* FROM page_events($1, $2, $3, $14::int[], $15::int[], $10, $7::text[], CASE WHEN $10 > 0 THEN 1 ELSE 0 END, true) r
   UNION ALL
   SELECT 'later', r.* FROM page_events($1, $2, $3, $14::int[], $15::int[], $12, $7::text[], CASE WHEN $12 > 0 THEN 1 ELSE 0 END, false) r`;

const EVENTS = 'page_events($1, $2, $3, $4::int[], $5::int[], $6, $7::text[], $8, $9)';

const PAGE = statement<PageRow>(
  'timeline_page',
  pageFrom(`SELECT 'page' AS part, r.* FROM checked LEFT JOIN LATERAL ${EVENTS} r ON true`),
);

/**
 * Of so many bytes: the first event that is too much comes as what there is more of. Ranked by sizes and positions alone, so
 * that texts that are too much are never read.
 */
const BOUNDED_PAGE = statement<PageRow>(
  'timeline_bounded_page',
  pageFrom(
    `SELECT CASE WHEN b.place = 1 OR b.reach <= $16 THEN 'page' ELSE 'more' END AS part, r.*
   FROM checked LEFT JOIN (
     SELECT s.seq, row_number() OVER by_place AS place, sum(s.bytes) OVER by_place AS reach, s.bytes
     FROM (
       SELECT f.seq, f.seq * CASE WHEN $9 THEN -1 ELSE 1 END AS place,
         coalesce(octet_length(f.content), 0) + coalesce(octet_length(f.data::text), 0) AS bytes
       FROM found f) s
     WINDOW by_place AS (ORDER BY s.place)) b ON b.place <= 2 OR b.reach - b.bytes <= $16
   LEFT JOIN found r ON r.seq = b.seq
   ORDER BY b.place`,
    `, found AS MATERIALIZED (SELECT r.* FROM ${EVENTS} r)`,
  ),
);

/**
 * A page of what the look's viewer may see. Without `first` and `last`: the newest end.
 * Errors: BAD_USER_INPUT (`first`, `last`), INVALID_CURSOR (not of this thread, or beyond the viewer's end).
 */
export const readPage = async (
  database: Database,
  look: Look,
  args: PageArguments,
): Promise<TimelinePage> => {
  const { limit, backward } = pageSize(args);
  const after = readPosition(look, args.after, 'after');
  const before = readPosition(look, args.before, 'before');
  const low = (after?.seq ?? 0) + 1;
  const high = before === null ? look.end.seq : before.seq - 1;
  const ranges = look.ranges
    .map((range) => ({ low: Math.max(range.low, low), high: Math.min(range.high, high) }))
    .filter((range) => range.low <= range.high);
  const parameters = [
    look.ownerId,
    look.threadId,
    look.viewerId,
    ranges.map((range) => range.low),
    ranges.map((range) => range.high),
    backward ? high : low,
    args.types ?? null,
    limit + 1,
    backward,
    after?.seq ?? 0,
    after?.tag ?? '',
    before?.seq ?? 0,
    before?.tag ?? '',
    look.ranges.map((range) => range.low),
    look.ranges.map((range) => Math.min(range.high, look.end.seq)),
  ];
  const rows =
    args.maxBytes === undefined
      ? await database.query(PAGE, parameters)
      : await database.query(BOUNDED_PAGE, [...parameters, args.maxBytes]);
  const found = rows.filter((row) => row.part === 'page' && row.id !== null).map(eventFromRow);
  const more = found.length > limit || rows.some((row) => row.part === 'more' && row.id !== null);
  const events = found.slice(0, limit);
  if (backward) events.reverse();
  const earlier = rows.some((row) => row.part === 'earlier');
  const later = rows.some((row) => row.part === 'later');
  return {
    events,
    hasNextPage: backward ? later : more || later,
    hasPreviousPage: backward ? more || earlier : earlier,
  };
};

const pageSize = ({ first, last }: PageArguments): { limit: number; backward: boolean } => {
  if (typeof first === 'number' && typeof last === 'number')
    throw badInput('Give first or last, not both.', { field: 'last' });
  const field = typeof first === 'number' ? 'first' : 'last';
  const limit = first ?? last ?? LIMITS.defaultPageSize;
  if (limit < 1 || limit > LIMITS.pageSize)
    throw badInput(`${field} must be 1 to ${LIMITS.pageSize}.`, { field, limit: LIMITS.pageSize });
  return { limit, backward: typeof first !== 'number' };
};

/** The position a cursor names, which must not lie beyond what the viewer may see. */
const readPosition = (look: Look, cursor: string | null | undefined, field: string) => {
  if (cursor === null || cursor === undefined) return null;
  const position = parseTimelineCursor(cursor, look.threadId, field);
  if (position.seq > look.end.seq) throw invalidCursor(field);
  return position;
};

const BY_ID = statement<TimelineRow>(
  'timeline_by_id',
  `SELECT r.* FROM timeline_rows r JOIN thread_heads h ON h.owner_id = r.owner_id AND h.thread_id = r.thread_id
   WHERE r.owner_id = $1 AND r.id = ANY ($2::text[])`,
);

/** Events of this tenant by id, whoever may see them: the caller asks a look. */
export const readEventsById = async (
  database: Database,
  ownerId: string,
  ids: readonly string[],
): Promise<(TimelineEvent | null)[]> => {
  const rows = await database.query(BY_ID, [ownerId, ids]);
  const byId = new Map(rows.map((row) => [row.id, eventFromRow(row)]));
  return ids.map((id) => byId.get(id) ?? null);
};

export interface Position {
  readonly threadId: string;
  readonly seq: number;
}

const AT = statement<TimelineRow>(
  'timeline_at',
  `SELECT r.* FROM unnest($2::text[], $3::int[]) AS u(thread_id, seq)
   JOIN timeline_rows r ON r.owner_id = $1 AND r.thread_id = u.thread_id AND r.seq = u.seq`,
);

const BOUNDED_AT = statement<TimelineRow>(
  'timeline_bounded_at',
  `SELECT r.* FROM (
     SELECT u.*, sum(tp_message_bytes($1, u.thread_id, u.seq)) OVER (ORDER BY u.place) AS reach
     FROM unnest($2::text[], $3::int[]) WITH ORDINALITY AS u(thread_id, seq, place)) b
   JOIN timeline_rows r ON r.owner_id = $1 AND r.thread_id = b.thread_id AND r.seq = b.seq
   WHERE b.place = 1 OR b.reach <= $4`,
);

/** Null for what is not there; with `maxBytes` also, after the first, for what is more than that together with those before it. */
export const readEventsAt = async (
  database: Database,
  ownerId: string,
  positions: readonly Position[],
  maxBytes?: number,
): Promise<(TimelineEvent | null)[]> => {
  const parameters = [
    ownerId,
    positions.map((position) => position.threadId),
    positions.map((position) => position.seq),
  ];
  const rows =
    maxBytes === undefined
      ? await database.query(AT, parameters)
      : await database.query(BOUNDED_AT, [...parameters, maxBytes]);
  const byPosition = new Map(rows.map((row) => [`${row.thread_id} ${row.seq}`, eventFromRow(row)]));
  return positions.map((position) => byPosition.get(`${position.threadId} ${position.seq}`) ?? null);
};

const LAST_MESSAGE = statement<TimelineRow & { look: number }>(
  'timeline_last_message',
  `SELECT u.look, r.* FROM jsonb_to_recordset($2::jsonb) AS u(look int, thread_id text, viewer_id text, lows jsonb, highs jsonb, high int)
   CROSS JOIN LATERAL page_events($1, u.thread_id, u.viewer_id,
     ARRAY(SELECT jsonb_array_elements_text(u.lows)::int), ARRAY(SELECT jsonb_array_elements_text(u.highs)::int),
     u.high, ARRAY['MESSAGE'], 1, true) r`,
);

/** The last visible message of each look. */
export const readLastMessages = async (
  database: Database,
  looks: readonly Look[],
): Promise<(TimelineEvent | null)[]> => {
  const [first] = looks;
  if (first === undefined) return [];
  const wanted = looks.map((look, index) => ({
    look: index,
    thread_id: look.threadId,
    viewer_id: look.viewerId,
    lows: look.ranges.map((range) => range.low),
    highs: look.ranges.map((range) => range.high),
    high: look.end.seq,
  }));
  const rows = await database.query(LAST_MESSAGE, [first.ownerId, JSON.stringify(wanted)]);
  const byLook = new Map(rows.map((row) => [row.look, eventFromRow(row)]));
  return looks.map((_, index) => byLook.get(index) ?? null);
};

/** Positions are gapless, so a number of events is a range of them. */
const AFTER = statement<TimelineRow>(
  'timeline_after',
  `SELECT r.* FROM timeline_rows r WHERE r.owner_id = $1 AND r.thread_id = $2 AND r.seq > $3 AND r.seq <= $3 + $4 ORDER BY r.seq`,
);

/** What a tail reads: the log itself, before any viewer's windows. */
export const readEventsAfter = async (
  database: Database,
  ownerId: string,
  threadId: string,
  after: number,
  limit: number,
): Promise<TimelineEvent[]> =>
  (await database.urgent(AFTER, [ownerId, threadId, after, limit])).map(eventFromRow);

const HEADS = statement<{ thread_id: string; last_seq: number }>(
  'timeline_heads',
  `SELECT h.thread_id, h.last_seq FROM unnest($1::text[], $2::text[]) AS u(owner_id, thread_id)
   JOIN thread_heads h ON h.owner_id = u.owner_id AND h.thread_id = u.thread_id`,
);

/** The present end of each thread; a deleted one has none. */
export const readHeads = async (
  database: Database,
  keys: readonly { readonly ownerId: string; readonly threadId: string }[],
): Promise<Map<string, number>> => {
  const rows = await database.urgent(HEADS, [
    keys.map((key) => key.ownerId),
    keys.map((key) => key.threadId),
  ]);
  return new Map(rows.map((row) => [row.thread_id, row.last_seq]));
};
