import { conflict, forbidden, notFound } from '../shared/errors.ts';
import { type Database, statement } from '../storage/database.ts';
import type { Inbox } from './inboxes.ts';

/** How long a stream is believed to live after it was last heard of: its process may have been killed. */
const HELD_SECONDS = 15;
/** A delivery is not renewed for longer than this. */
const RENEWED_SECONDS = 3_600;

const CLAIM = statement<{ owner_id: string }>(
  'inbox_claim',
  `INSERT INTO inboxes AS i (owner_id, participant_id, run_id, thread_id, holder, held_until)
   VALUES ($1, $2, $3, $4, $5, clock_timestamp() + ${HELD_SECONDS} * interval '1 second')
   ON CONFLICT (owner_id, participant_id, run_id) DO UPDATE SET
     thread_id = EXCLUDED.thread_id, holder = EXCLUDED.holder, held_until = EXCLUDED.held_until
   WHERE NOT $6 OR i.holder IS NULL OR i.held_until <= clock_timestamp()
   RETURNING i.owner_id`,
);
const KIND = statement<{ kind: string }>(
  'inbox_kind',
  'SELECT p.kind::text AS kind FROM participants p WHERE p.owner_id = $1 AND p.id = $2',
);
/**
 * In the order in which everybody waits for rows of several threads. What was given back already is left as it is.
 * They are found by their names alone: an inbox may have thousands in hand, and IS NOT DISTINCT FROM asks no index.
 */
const GIVING_BACK = `UPDATE inbox_threads t SET leased_until = clock_timestamp(), attempt = t.attempt - 1 FROM (
     SELECT o.delivery_id FROM inbox_threads o
     WHERE o.delivery_id = ANY ($4::text[]) AND o.holder IS NOT DISTINCT FROM $3
       AND o.owner_id IS NOT DISTINCT FROM $1 AND o.participant_id IS NOT DISTINCT FROM $2
       AND o.leased_until > clock_timestamp()
     ORDER BY o.thread_id FOR NO KEY UPDATE) b
   WHERE t.delivery_id = b.delivery_id`;
const GIVE_BACK = statement<never>('inbox_give_back', GIVING_BACK);
const UNOFFER = statement<never>(
  'inbox_unoffer',
  `UPDATE inbox_controls c SET offered_at = NULL
   WHERE c.owner_id = $1 AND c.participant_id = $2 AND c.inbox_run_id = $3 AND c.number = ANY ($4::bigint[]) AND c.told_at IS NULL`,
);
const RELEASE = statement<{ owner_id: string }>(
  'inbox_release',
  `WITH given_back AS (${GIVING_BACK})
   UPDATE inboxes i SET holder = NULL, held_until = clock_timestamp()
   WHERE i.owner_id = $1 AND i.participant_id = $2 AND i.holder = $3 AND i.run_id = $5 RETURNING i.owner_id`,
);
const STANDING = `o.taken_at > clock_timestamp() - ${RENEWED_SECONDS} * interval '1 second'`;
const RENEW = statement<{ delivery_id: string }>(
  'inbox_renew',
  `WITH standing AS (
     SELECT o.delivery_id FROM inbox_threads o WHERE o.delivery_id = ANY ($1::text[]) AND ${STANDING}
   ), renewed AS (
     UPDATE inbox_threads t SET leased_until = greatest(t.leased_until, clock_timestamp() + $2 * interval '1 second') FROM (
       SELECT o.delivery_id FROM inbox_threads o WHERE o.delivery_id = ANY ($1::text[]) AND ${STANDING}
         AND o.leased_until > clock_timestamp()
       FOR NO KEY UPDATE SKIP LOCKED) r
     WHERE t.delivery_id = r.delivery_id)
   SELECT u.id AS delivery_id FROM unnest($1::text[]) AS u(id) LEFT JOIN standing s ON s.delivery_id = u.id
   WHERE s.delivery_id IS NULL`,
);
const EXTEND = statement<{ leased_until: string }>(
  'inbox_extend',
  'SELECT e AS leased_until FROM extend_lease($1, $2, $3, $4, $5) e',
);

/** People have no inbox. Errors: NOT_FOUND, FORBIDDEN. */
export const requireAgent = async (database: Database, inbox: Inbox): Promise<void> => {
  const [row] = await database.query(KIND, [inbox.ownerId, inbox.participantId]);
  if (row === undefined) throw notFound('Participant');
  refusePerson(row);
};

export const refusePerson = ({ kind }: { readonly kind: string }): void => {
  if (kind === 'HUMAN') throw forbidden('Only agents and units have an inbox.');
};

/** Makes a stream the inbox's; in `standby` only if nobody has it. Whether it did. */
export const claimInbox = async (
  database: Database,
  inbox: Inbox,
  holder: string,
  standby: boolean,
): Promise<boolean> => {
  const values = [inbox.ownerId, inbox.participantId, inbox.runId, inbox.threadId, holder, standby];
  return (await database.query(CLAIM, values)).length > 0;
};

/** What a stream (a pull: null) took, or may have taken, and never handed on may be taken at once, as if it had not been. */
export const giveBack = async (
  database: Database,
  inbox: Inbox,
  holder: string | null,
  unsent: readonly string[],
): Promise<void> => {
  await database.query(GIVE_BACK, [inbox.ownerId, inbox.participantId, holder, unsent]);
};

/** Notices that a pull was not told after all come again with the next. */
export const unoffer = async (
  database: Database,
  inbox: Inbox,
  numbers: readonly string[],
): Promise<void> => {
  await database.query(UNOFFER, [inbox.ownerId, inbox.participantId, inbox.runId, numbers]);
};

/** The stream is over: `unsent` is given back. */
export const releaseInbox = async (
  database: Database,
  inbox: Inbox,
  holder: string,
  unsent: readonly string[],
): Promise<void> => {
  await database.query(RELEASE, [inbox.ownerId, inbox.participantId, holder, unsent, inbox.runId]);
};

/**
 * Renews what open streams have in hand: what they know of, since a delivery whose answer was lost on its way to them is to run
 * out. Answers those that are over: acknowledged, handed out again, or an hour old. One that was given back or ran out is
 * left as it is, and renewed from then on where it is taken up again.
 */
export const renewLeases = async (
  database: Database,
  leaseSeconds: number,
  deliveryIds: readonly string[],
): Promise<readonly string[]> =>
  (await database.query(RENEW, [deliveryIds, leaseSeconds])).map((row) => row.delivery_id);

/**
 * Sets a lease to end so many seconds from now. When that is; Errors: CONFLICT (not in flight any more, or it ran out and an agent
 * that does one thing at a time has another in hand), NOT_FOUND, FORBIDDEN.
 */
export const extendLease = async (
  database: Database,
  inbox: Inbox,
  deliveryId: string,
  seconds: number,
): Promise<string> => {
  const values = [inbox.ownerId, inbox.participantId, deliveryId, seconds, inbox.threadId];
  const [row] = await database.query(EXTEND, values);
  if (row !== undefined) return row.leased_until;
  await requireAgent(database, inbox);
  throw conflict(
    'This delivery is not in flight: it was acknowledged, handed out again since, or ran out and another is in hand.',
    { field: 'deliveryId' },
  );
};

/**
 * Of everybody in this process who waits for an inbox, whether there is something to do. One statement. `OFFSET 0` has each
 * question asked by itself, and not answered for all inboxes there are; the orders are those of the indexes that answer it
 * with one row, however much of what is asked for there is. What is left to runs is asked once, and not of each thread. Rows of
 * inboxes are waited for in the order in which a run's pull takes them.
 */
const POLL = statement<{
  ordinal: number;
  is_lost: boolean;
  is_free: boolean;
  has_news: boolean;
  has_moved: boolean;
}>(
  'inbox_poll',
  `WITH asked AS MATERIALIZED (
     SELECT u.*, p.concurrent_threads,
       CASE WHEN u.is_standby THEN '{}' ELSE tp_left_to_runs(u.owner_id, u.participant_id, u.run_id, false) END AS left_threads
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bool[], $7::bigint[], $8::bool[])
       WITH ORDINALITY AS u(owner_id, participant_id, run_id, thread_id, holder, mentions_only, since, is_standby, ordinal)
     JOIN participants p ON p.owner_id = u.owner_id AND p.id = u.participant_id
   ), kept AS (
     UPDATE inboxes i SET held_until = clock_timestamp() + ${HELD_SECONDS} * interval '1 second' FROM (
       SELECT o.owner_id, o.participant_id, o.run_id FROM asked u
       JOIN inboxes o ON o.owner_id = u.owner_id AND o.participant_id = u.participant_id AND o.run_id = u.run_id
       WHERE o.held_until < clock_timestamp() + ${HELD_SECONDS - 5} * interval '1 second'
         AND (o.holder = u.holder OR (o.holder IS NULL AND u.holder IS NULL AND u.run_id <> '' AND NOT u.is_standby))
       ORDER BY o.owner_id, o.participant_id, o.run_id FOR NO KEY UPDATE OF o) k
     WHERE i.owner_id = k.owner_id AND i.participant_id = k.participant_id AND i.run_id = k.run_id
   )
   SELECT u.ordinal::int AS ordinal,
     u.holder IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM inboxes i WHERE i.owner_id = u.owner_id AND i.participant_id = u.participant_id AND i.run_id = u.run_id
         AND i.holder = u.holder OFFSET 0) AS is_lost,
     u.is_standby AND NOT EXISTS (
       SELECT 1 FROM inboxes i WHERE i.owner_id = u.owner_id AND i.participant_id = u.participant_id AND i.run_id = u.run_id
         AND i.holder IS NOT NULL AND i.held_until > now() OFFSET 0) AS is_free,
     NOT u.is_standby AND (
     EXISTS (SELECT 1 FROM inbox_controls c WHERE c.owner_id = u.owner_id AND c.participant_id = u.participant_id
         AND c.inbox_run_id = u.run_id AND c.told_at IS NULL ORDER BY c.number OFFSET 0)
     OR (CASE WHEN u.thread_id IS NOT NULL THEN EXISTS (
           SELECT 1 FROM inbox_threads t WHERE t.owner_id = u.owner_id AND t.thread_id = u.thread_id
             AND t.participant_id = u.participant_id AND t.thread_id <> ALL (u.left_threads)
             AND CASE WHEN u.mentions_only THEN t.mentioned_since ELSE t.pending_since END IS NOT NULL
             AND (t.delivery_id IS NULL OR t.leased_until <= now()) OFFSET 0)
         ELSE CASE WHEN u.mentions_only THEN EXISTS (
           SELECT 1 FROM inbox_threads t WHERE t.owner_id = u.owner_id AND t.participant_id = u.participant_id
             AND t.delivery_id IS NULL AND t.mentioned_since IS NOT NULL AND t.pending_since IS NOT NULL
             AND t.thread_id <> ALL (u.left_threads) ORDER BY t.mentioned_since OFFSET 0)
         ELSE EXISTS (
           SELECT 1 FROM inbox_threads t WHERE t.owner_id = u.owner_id AND t.participant_id = u.participant_id
             AND t.delivery_id IS NULL AND t.pending_since IS NOT NULL
             AND t.thread_id <> ALL (u.left_threads) ORDER BY t.pending_since OFFSET 0) END
         OR EXISTS (
           SELECT 1 FROM inbox_threads t WHERE t.owner_id = u.owner_id AND t.participant_id = u.participant_id
             AND t.delivery_id IS NOT NULL AND t.leased_until <= now()
             AND CASE WHEN u.mentions_only THEN t.mentioned_since ELSE t.pending_since END IS NOT NULL
             AND t.thread_id <> ALL (u.left_threads) ORDER BY t.leased_until OFFSET 0) END
       AND (u.concurrent_threads OR NOT EXISTS (
         SELECT 1 FROM inbox_threads t WHERE t.owner_id = u.owner_id AND t.participant_id = u.participant_id
           AND t.delivery_id IS NOT NULL AND t.leased_until > now() ORDER BY t.leased_until OFFSET 0)))) AS has_news,
     u.holder IS NOT NULL AND (EXISTS (
       SELECT 1 FROM thread_heads h WHERE h.owner_id = u.owner_id AND h.activity > u.since ORDER BY h.activity OFFSET 0)
     OR (u.run_id = '' AND EXISTS (
       SELECT 1 FROM inboxes r WHERE r.owner_id = u.owner_id AND r.participant_id = u.participant_id AND r.run_id <> ''
         AND r.held_until > tp_at(u.since) AND r.held_until <= now() ORDER BY r.held_until OFFSET 0))) AS has_moved
   FROM asked u`,
);

export interface Asked {
  readonly inbox: Inbox;
  readonly threadId: string | null;
  readonly holder: string | null;
  readonly onlyMentions: boolean;
  /** Activity (microseconds since 1970) up to which everything was looked at for its digests. */
  readonly since: string;
  /** It waits until nobody has the inbox, and for nothing else. */
  readonly isStandby: boolean;
}

export interface Polled {
  /** The inbox is another stream's by now. */
  readonly isLost: boolean;
  /** Asked in standby: nobody has the inbox. */
  readonly isFree: boolean;
  readonly hasNews: boolean;
  /** Some thread of the tenant moved, or is not left to a run any more: a digest may have something to say. */
  readonly hasMoved: boolean;
}

/** In the order of `asked`; keeps their inboxes theirs. */
export const pollInboxes = async (
  database: Database,
  asked: readonly Asked[],
): Promise<(Polled | undefined)[]> => {
  const rows = await database.query(POLL, [
    asked.map(({ inbox }) => inbox.ownerId),
    asked.map(({ inbox }) => inbox.participantId),
    asked.map(({ inbox }) => inbox.runId),
    asked.map(({ inbox, threadId }) => threadId ?? inbox.threadId),
    asked.map(({ holder }) => holder),
    asked.map(({ onlyMentions }) => onlyMentions),
    asked.map(({ since }) => since),
    asked.map(({ isStandby }) => isStandby),
  ]);
  const byOrdinal = new Map(rows.map((row) => [row.ordinal, row]));
  return asked.map((_, index) => {
    const row = byOrdinal.get(index + 1);
    if (row === undefined) return undefined;
    const { is_lost: isLost, is_free: isFree, has_news: hasNews, has_moved: hasMoved } = row;
    return { isLost, isFree, hasNews, hasMoved };
  });
};
