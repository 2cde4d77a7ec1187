import type { TenantActor } from '../auth/actor.ts';
import type { Services } from '../services.ts';
import { statement } from '../storage/database.ts';

/** The message, or messages, that an agent pulled last and has not acknowledged. */
export interface Hand {
  readonly threadId: string;
  readonly deliveryId: string;
  /** Positions in the thread, ascending. */
  readonly seqs: readonly number[];
}

/** What a stream took is the stream’s. A lease that has run out is one’s own until somebody else takes the message. */
const IN_HAND = statement<{ hand: Hand | null }>(
  'message_in_hand',
  'SELECT tp_hand($1, $2, $3, $4, $5) AS hand',
);

/** Of one thread, or (null) of whichever; `deliveryId`: if it is that one. */
export const messageInHand = async (
  { database }: Pick<Services, 'database'>,
  {
    actor,
    participantId,
    threadId = null,
    deliveryId = null,
  }: {
    readonly actor: TenantActor;
    readonly participantId: string;
    readonly threadId?: string | null;
    readonly deliveryId?: string | null;
  },
): Promise<Hand | null> => {
  const runId = actor.kind === 'RUN_TOKEN' ? actor.runId : '';
  const [row] = await database.query(IN_HAND, [actor.userId, participantId, runId, threadId, deliveryId]);
  return row?.hand ?? null;
};
