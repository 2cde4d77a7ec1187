import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor, RunScope } from '../auth/actor.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { ID_PREFIX, idSuffix, isId } from '../shared/ids.ts';
import {
  type KeysetList,
  type KeysetRange,
  keysetPage,
  type Page,
  type PageArgs,
  readHeld,
} from '../shared/paging.ts';
import { type Database, statement } from '../storage/database.ts';
import { readLooks } from '../timeline/look.ts';
import { firstOfLinked } from './links.ts';
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

/** The threads the viewer may know of; `activity` is that of the viewer. */
const MINE = `mine AS MATERIALIZED (
  SELECT h.owner_id, h.thread_id, h.activity FROM thread_heads h WHERE h.owner_id = $1 AND $2::text IS NULL
  UNION ALL
  SELECT m.owner_id, m.thread_id, ${VIEWER_ACTIVITY} AS activity
  FROM thread_members m JOIN thread_heads h ON h.owner_id = m.owner_id AND h.thread_id = m.thread_id
  WHERE m.owner_id = $1 AND m.participant_id = $2)`;

/** Whether the viewer may see link `l`, given that it may know of both threads. */
const SEES_LINK = `($2::text IS NULL
  OR tp_visible($1, l.earlier_id, l.earlier_seq, '{}', $2) OR tp_visible($1, l.later_id, l.later_seq, '{}', $2))`;

const LINKS = statement<{ one: string; other: string }>(
  'engagement_links',
  `WITH mine AS MATERIALIZED (
     SELECT h.thread_id FROM thread_heads h WHERE h.owner_id = $1 AND $2::text IS NULL
     UNION ALL
     SELECT m.thread_id FROM thread_members m JOIN thread_heads h ON h.owner_id = m.owner_id AND h.thread_id = m.thread_id
     WHERE m.owner_id = $1 AND m.participant_id = $2)
   SELECT l.earlier_id AS one, l.later_id AS other FROM thread_links l
   JOIN mine a ON a.thread_id = l.earlier_id JOIN mine b ON b.thread_id = l.later_id
   WHERE l.owner_id = $1 AND ${SEES_LINK}`,
);

/** $3, $4: each linked thread and the first of its item; a thread that is not among them is its own. */
const SELECT = `WITH ${MINE},
  items AS (
    SELECT coalesce(g.root_id, m.thread_id) AS root_id, array_agg(m.thread_id ORDER BY m.thread_id) AS thread_ids, max(m.activity) AS activity
    FROM mine m LEFT JOIN unnest($3::text[], $4::text[]) AS g(thread_id, root_id) ON g.thread_id = m.thread_id GROUP BY 1)
  SELECT root_id, thread_ids, activity::text AS activity FROM items`;

const list = (order: 'ASC' | 'DESC') =>
  statement<EngagementRow>(
    `engagements_${order.toLowerCase()}`,
    `${SELECT} WHERE ($5::bigint IS NULL OR (items.activity, root_id) < ($5::bigint, $6::text))
       AND ($7::bigint IS NULL OR (items.activity, root_id) > ($7::bigint, $8::text))
     ORDER BY items.activity ${order}, root_id ${order} LIMIT $9`,
  );
const FORWARD = list('DESC');
const INVERTED = list('ASC');
const BY_ROOT = statement<EngagementRow>('engagements_by_root', `${SELECT} WHERE root_id = ANY ($5::text[])`);

/** Whether the viewer may know of the thread that `id` names. */
const knows = (id: string): string => `
  EXISTS (SELECT 1 FROM thread_heads h WHERE h.owner_id = $1 AND h.thread_id = ${id})
  AND ($2::text IS NULL OR EXISTS (
    SELECT 1 FROM thread_members m WHERE m.owner_id = $1 AND m.thread_id = ${id} AND m.participant_id = $2))`;

/** From one thread along its links: reads what belongs to this item and nothing else. */
const OF_THREAD = statement<EngagementRow>(
  'engagement_of_thread',
  `WITH RECURSIVE found AS (
     SELECT $3::text AS thread_id WHERE ${knows('$3::text')}
     UNION
     SELECT n.other FROM found f CROSS JOIN LATERAL (
       SELECT l.later_id AS other FROM thread_links l
       WHERE l.owner_id = $1 AND l.earlier_id = f.thread_id AND ${knows('l.later_id')} AND ${SEES_LINK}
       UNION ALL
       SELECT l.earlier_id FROM thread_links l
       WHERE l.owner_id = $1 AND l.later_id = f.thread_id AND ${knows('l.earlier_id')} AND ${SEES_LINK}) n)
   SELECT min(h.thread_id) AS root_id, array_agg(h.thread_id ORDER BY h.thread_id) AS thread_ids,
     max(CASE WHEN m.thread_id IS NULL THEN h.activity ELSE ${VIEWER_ACTIVITY} END)::text AS activity
   FROM found f JOIN thread_heads h ON h.owner_id = $1 AND h.thread_id = f.thread_id
   LEFT JOIN thread_members m ON m.owner_id = $1 AND m.thread_id = f.thread_id AND m.participant_id = $2
   HAVING count(*) > 0`,
);

export const createEngagements = ({ database }: { database: Database }) => {
  const ofThread = async (
    ownerId: string,
    viewerId: string | null,
    threadId: string,
  ): Promise<Engagement | null> => {
    const [row] = await database.query(OF_THREAD, [ownerId, viewerId, threadId]);
    return row === undefined ? null : engagementFromRow(row, viewerId);
  };

  /** Each linked thread, and beside it the first thread of its item, as two columns. */
  const items = async (ownerId: string, viewerId: string | null): Promise<[string[], string[]]> => {
    const links = await database.query(LINKS, [ownerId, viewerId]);
    const first = firstOfLinked(links.map(({ one, other }) => [one, other]));
    return [[...first.keys()], [...first.values()]];
  };

  /** A run's conversation, alone: what it continues is out of reach. */
  const ofRun = async (
    ownerId: string,
    { conversationThreadId: threadId, participantId: viewerId }: RunScope,
  ) => {
    const [answer] = await readLooks(database, [{ ownerId, threadId, viewerId }]);
    const id = `${ID_PREFIX.Engagement}_${idSuffix(threadId)}`;
    return answer ? [{ id, viewerId, threadIds: [threadId], activity: answer.look.activity }] : [];
  };

  return {
    /** The viewer's engagements, latest visible activity first. */
    async page(
      actor: Actor,
      args: PageArgs & { readonly as?: string | null | undefined },
    ): Promise<Page<Engagement>> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, args.as);
      const list: Omit<KeysetList<Engagement>, 'read'> = {
        name: 'engagements',
        parts: [KEY_PART.number, KEY_PART.id],
        key: ({ activity, id }) => [activity, threadIdOf(id)],
      };
      if (tenant.kind === 'RUN_TOKEN')
        return keysetPage(args, {
          ...list,
          read: readHeld(await ofRun(tenant.userId, tenant), list.key, 'DESC'),
        });
      const [threadIds, rootIds] = await items(tenant.userId, viewerId);
      const engagements: KeysetList<Engagement> = {
        ...list,
        read: async ({ after, before, limit, inverted }: KeysetRange) => {
          const rows = await database.query(inverted ? INVERTED : FORWARD, [
            tenant.userId,
            viewerId,
            threadIds,
            rootIds,
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

    /** Those with these ids that there are to see, in no order. Two statements, however many. */
    async findAll(
      actor: Actor,
      { ids, as }: { readonly ids: readonly string[]; readonly as?: string | null | undefined },
    ): Promise<Engagement[]> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, as);
      if (tenant.kind === 'RUN_TOKEN')
        return (await ofRun(tenant.userId, tenant)).filter(({ id }) => ids.includes(id));
      const wanted = ids.filter((id) => isId('Engagement', id)).map(threadIdOf);
      if (wanted.length === 0) return [];
      const [threadIds, rootIds] = await items(tenant.userId, viewerId);
      const rows = await database.query(BY_ROOT, [tenant.userId, viewerId, threadIds, rootIds, wanted]);
      return rows.map((row) => engagementFromRow(row, viewerId));
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
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, input.as);
      const { id, threadId } = input;
      if (tenant.kind === 'RUN_TOKEN') {
        const [own] = await ofRun(tenant.userId, tenant);
        return own !== undefined && (own.id === id || own.threadIds[0] === threadId) ? own : null;
      }
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
