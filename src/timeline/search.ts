import { requireReach, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import { KEY_PART, keysetCursor, listOf, parseKeysetCursor } from '../shared/cursors.ts';
import { isId } from '../shared/ids.ts';
import { LIMITS, requireBytes } from '../shared/input.ts';
import { type Page, type PageArgs, requirePageSize } from '../shared/paging.ts';
import { type Database, statement } from '../storage/database.ts';
import { eventFromRow, type MessageEvent, type TimelineRow } from './events.ts';
import { requireThreadId } from './timeline.ts';

interface SearchInput extends PageArgs {
  /** Words in whatever language. */
  readonly query: string;
  /** Absent: all threads of the viewer. */
  readonly threadId?: string | null | undefined;
  readonly as?: string | null | undefined;
}

interface FoundMessages extends Page<MessageEvent> {
  readonly viewerId: string | null;
}

/** Of the texts of one page together, at most: the first message always comes. */
const PAGE_BYTES = 1024 * 1024;

type FoundRow = TimelineRow & {
  has_previous: boolean;
  has_next: boolean;
  horizon: string;
  score: number;
};

const SEARCH = statement<FoundRow>(
  'search_messages',
  `SELECT f.has_previous, f.has_next, f.horizon, f.score, r.* FROM search_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) f
   LEFT JOIN LATERAL (
     SELECT t.* FROM timeline_rows t WHERE t.owner_id = $1 AND t.thread_id = f.thread_id AND t.seq = f.seq LIMIT 1) r ON true
   ORDER BY f.place`,
);

export const createSearch = ({ database }: { database: Database }) => ({
  /**
   * Messages that have all words of the query and that the viewer may see, also those that were retracted: the best
   * first, of the newest 2,000. What comes later does not move a page that is asked for with a cursor of an earlier one.
   * Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, INVALID_CURSOR, NOT_FOUND, FORBIDDEN.
   */
  async messages(actor: Actor, input: SearchInput): Promise<FoundMessages> {
    const tenant = requireTenant(actor);
    const viewerId = viewerOf(tenant, input.as);
    const confinedTo = tenant.kind === 'RUN_TOKEN' ? tenant.conversationThreadId : null;
    const threadId = input.threadId ?? confinedTo;
    if (threadId !== null) {
      requireThreadId(threadId);
      requireReach(tenant, threadId);
    }
    const { limit, isBackward } = requirePageSize(input);
    const query = requireBytes(input.query, 'query', LIMITS.query);
    const list = listOf('found', [tenant.userId, viewerId, threadId, query]);
    const rows = await database.query(SEARCH, [
      tenant.userId,
      viewerId === null || isId('Participant', viewerId) ? viewerId : NOBODY,
      threadId,
      query,
      ...placeOf(list, input.after, 'after'),
      ...placeOf(list, input.before, 'before'),
      limit,
      isBackward,
      PAGE_BYTES,
    ]);
    const [flags, ...found] = rows;
    const edges = found.map((row) => ({
      cursor: keysetCursor(list, [row.horizon, row.score, row.id]),
      node: eventFromRow(row) as MessageEvent,
    }));
    return {
      viewerId,
      edges,
      pageInfo: {
        hasNextPage: flags?.has_next === true,
        hasPreviousPage: flags?.has_previous === true,
        startCursor: edges[0]?.cursor ?? null,
        endCursor: edges.at(-1)?.cursor ?? null,
      },
    };
  },
});

/** Whoever cannot be a participant sees what one sees that never existed; the database looks for names as for words. */
const NOBODY = 'part_';

const placeOf = (
  list: string,
  cursor: string | null | undefined,
  field: string,
): readonly (string | null)[] =>
  cursor === null || cursor === undefined
    ? [null, null, null]
    : parseKeysetCursor(cursor, list, [KEY_PART.id, KEY_PART.number, KEY_PART.id], field);
