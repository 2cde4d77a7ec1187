import type { Actor } from '../auth/actor.ts';
import type { TimelinePosition } from '../shared/cursors.ts';
import { badInput, invalidCursor, notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import { LIMITS } from '../shared/input.ts';
import { type Database, statement } from '../storage/database.ts';
import type { Look } from '../timeline/look.ts';
import type { Announce } from '../timeline/timeline.ts';
import { extendLease } from './holding.ts';
import { inboxOf } from './inboxes.ts';
import { createTake, type Pulling } from './pulling.ts';

const PENDING = statement<{ seqs: number[] }>(
  'inbox_pending',
  `WITH checked AS MATERIALIZED (SELECT tp_require_position($1, $2, $6, $7, 'cursor'))
   SELECT tp_pending($1, $2, $3, $4, false, $5, 16777216) AS seqs FROM checked`,
);
const START = { seq: 0, tag: '' };
const MAX_LEASE_SECONDS = 3_600;

/** What agents and units take from their inboxes and give back, but for the stream (see `follow.ts`). */
export const createInbox = ({
  announce,
  ...pulling
}: Pulling & { readonly database: Database; readonly announce: Pick<Announce, 'woken'> }) => ({
  take: createTake(pulling),

  /**
   * Positions of the first pending messages in a thread, as of the look of the participant that they are pending for. Takes
   * nothing: what it shows may be acknowledged with `upTo`. Nothing while removed. `after`: only those behind that position.
   * Errors: BAD_USER_INPUT, INVALID_CURSOR.
   */
  async pending(
    look: Look,
    first: number | null | undefined,
    after: Pick<TimelinePosition, 'seq' | 'tag'> = START,
  ): Promise<readonly number[]> {
    const limit = first ?? LIMITS.defaultPageSize;
    if (limit < 1 || limit > LIMITS.pageSize)
      throw badInput(`first must be 1 to ${LIMITS.pageSize}.`, { field: 'first', limit: LIMITS.pageSize });
    if (after.seq > look.end.seq) throw invalidCursor('cursor');
    if (look.member?.state !== 'ACTIVE') return [];
    const values = [
      look.ownerId,
      look.threadId,
      look.viewerId,
      Math.max(look.member.ackSeq, after.seq) + 1,
      limit,
      after.seq,
      after.tag,
    ];
    const [row] = await pulling.database.query(PENDING, values);
    return (row?.seqs ?? []).filter((seq) => seq <= look.end.seq);
  },

  /**
   * Keeps a delivery for so many seconds from now; 0 gives it back at once, and answers null. What a stream took is renewed
   * besides while the stream is open. Errors: CONFLICT (not in flight any more, or it ran out and one who has but one in hand has another), NOT_FOUND, BAD_USER_INPUT, FORBIDDEN.
   */
  async extendLease(
    actor: Actor,
    input: { readonly deliveryId: string; readonly as?: string | null | undefined; readonly seconds: number },
  ): Promise<{ leaseExpiresAt: string | null }> {
    const { inbox } = inboxOf(actor, input.as);
    if (input.seconds < 0 || input.seconds > MAX_LEASE_SECONDS)
      throw badInput(`seconds must be 0 to ${MAX_LEASE_SECONDS}.`, {
        field: 'seconds',
        limit: MAX_LEASE_SECONDS,
      });
    if (!isId('Delivery', input.deliveryId)) throw notFound('Delivery');
    const until = await extendLease(pulling.database, inbox, input.deliveryId, input.seconds);
    if (input.seconds > 0) return { leaseExpiresAt: until };
    announce.woken([inbox.participantId]);
    return { leaseExpiresAt: null };
  },

  /** Whose pending messages are asked for, and in which thread. Errors: FORBIDDEN, NOT_FOUND. */
  requireInboxOf(
    actor: Actor,
    input: { readonly threadId: string; readonly as?: string | null | undefined },
  ) {
    const { inbox } = inboxOf(actor, input.as);
    if (inbox.threadId !== null && inbox.threadId !== input.threadId) throw notFound('Thread');
    return inbox;
  },
});
