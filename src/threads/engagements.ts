import { refuseRunToken, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { ID_PREFIX, idSuffix, isId } from '../shared/ids.ts';
import { type KeysetList, type KeysetRange, keysetPage, type Page, type PageArgs } from '../shared/paging.ts';
import { type Database, statement } from '../storage/database.ts';
import { VIEWER_ACTIVITY } from './lists.ts';

/**
 * For a viewer, the threads that extendThread links, stitched into one item: what people navigate to. A projection, not
 * an entity: nothing is stored, and its id is that of its first thread in other clothes. Two threads are linked for a
 * viewer that is a member of both and may see the link in one of them.
 */
export interface Engagement {
  readonly id: string;
  readonly viewerId: string | null;
  /** Oldest first. */
  readonly threadIds: readonly string[];
  /** Microseconds since 1970 of the last event the viewer may see in any of them. */
  readonly activity: string;
}

interface EngagementRow {
  root_id: string;
  thread_ids: string[];
  activity: string;
}

const MINE = `mine AS MATERIALIZED (
  SELECT h.owner_id, h.thread_id, h.activity FROM thread_heads h WHERE h.owner_id = $1 AND $2::text IS NULL
  UNION ALL
  SELECT m.owner_id, m.thread_id, ${VIEWER_ACTIVITY} AS activity
  FROM thread_members m JOIN thread_heads h ON h.owner_id = m.owner_id AND h.thread_id = m.thread_id
  WHERE m.owner_id = $1 AND m.participant_id = $2)`;

/** Links that the viewer may see, both ways. */
const LINKS = `links AS MATERIALIZED (
  SELECT l.earlier_id AS one, l.later_id AS other FROM thread_links l
  JOIN mine a ON a.thread_id = l.earlier_id JOIN mine b ON b.thread_id = l.later_id
  WHERE l.owner_id = $1 AND ($2::text IS NULL
    OR tp_visible($1, l.earlier_id, l.earlier_seq, '{}', $2) OR tp_visible($1, l.later_id, l.later_seq, '{}', $2))),
both_ways AS (SELECT one, other FROM links UNION SELECT other, one FROM links)`;

/** From each linked thread to every thread it reaches; a thread without links is its own. */
const ITEMS = `reach AS (
  SELECT one AS start, one AS thread_id FROM both_ways
  UNION
  SELECT r.start, b.other FROM reach r JOIN both_ways b ON b.one = r.thread_id),
grouped AS (
  SELECT start AS thread_id, min(thread_id) AS root_id FROM reach GROUP BY start),
items AS (
  SELECT coalesce(g.root_id, m.thread_id) AS root_id, array_agg(m.thread_id ORDER BY m.thread_id) AS thread_ids, max(m.activity) AS activity
  FROM mine m LEFT JOIN grouped g ON g.thread_id = m.thread_id GROUP BY 1)`;

const SELECT = `WITH RECURSIVE ${MINE}, ${LINKS}, ${ITEMS}
  SELECT root_id, thread_ids, activity::text AS activity FROM items`;

const list = (order: 'ASC' | 'DESC') =>
  statement<EngagementRow>(
    `engagements_${order.toLowerCase()}`,
    `${SELECT} WHERE ($3::bigint IS NULL OR (items.activity, root_id) < ($3::bigint, $4::text))
       AND ($5::bigint IS NULL OR (items.activity, root_id) > ($5::bigint, $6::text))
     ORDER BY items.activity ${order}, root_id ${order} LIMIT $7`,
  );
const FORWARD = list('DESC');
const INVERTED = list('ASC');
const OF_THREAD = statement<EngagementRow>('engagement_of_thread', `${SELECT} WHERE $3 = ANY (thread_ids)`);

export const createEngagements = ({ database }: { database: Database }) => {
  const ofThread = async (
    ownerId: string,
    viewerId: string | null,
    threadId: string,
  ): Promise<Engagement | null> => {
    const [row] = await database.query(OF_THREAD, [ownerId, viewerId, threadId]);
    return row === undefined ? null : engagementFromRow(row, viewerId);
  };

  return {
    /** The viewer's engagements, latest visible activity first. */
    async page(
      actor: Actor,
      args: PageArgs & { readonly as?: string | null | undefined },
    ): Promise<Page<Engagement>> {
      const tenant = refuseRunToken(requireTenant(actor));
      const viewerId = viewerOf(tenant, args.as);
      const engagements: KeysetList<Engagement> = {
        name: 'engagements',
        parts: [KEY_PART.number, KEY_PART.id],
        key: ({ activity, id }) => [activity, threadIdOf(id)],
        read: async ({ after, before, limit, inverted }: KeysetRange) => {
          const rows = await database.query(inverted ? INVERTED : FORWARD, [
            tenant.userId,
            viewerId,
            after?.[0] ?? null,
            after?.[1] ?? null,
            before?.[0] ?? null,
            before?.[1] ?? null,
            limit,
          ]);
          return rows.map((row) => engagementFromRow(row, viewerId));
        },
      };
      return keysetPage(args, engagements);
    },

    /** The engagement with this id, or the one that this thread belongs to; null where there is none to see. */
    async find(
      actor: Actor,
      input: {
        readonly id?: string | null;
        readonly threadId?: string | null;
        readonly as?: string | null | undefined;
      },
    ): Promise<Engagement | null> {
      const tenant = refuseRunToken(requireTenant(actor));
      const viewerId = viewerOf(tenant, input.as);
      const { id, threadId } = input;
      if (typeof id === 'string') {
        const found = isId('Engagement', id) ? await ofThread(tenant.userId, viewerId, threadIdOf(id)) : null;
        // An id is that of the first thread: once an earlier one is linked, it names nothing any more.
        return found?.id === id ? found : null;
      }
      return typeof threadId === 'string' && isId('Thread', threadId)
        ? ofThread(tenant.userId, viewerId, threadId)
        : null;
    },
  };
};

const engagementFromRow = (row: EngagementRow, viewerId: string | null): Engagement => ({
  id: `${ID_PREFIX.Engagement}_${idSuffix(row.root_id)}`,
  viewerId,
  threadIds: row.thread_ids,
  activity: row.activity,
});

const threadIdOf = (engagementId: string): string => `${ID_PREFIX.Thread}_${idSuffix(engagementId)}`;
