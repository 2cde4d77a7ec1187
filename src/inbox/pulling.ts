import type { Actor } from '../auth/actor.ts';
import type { ClosableAuthentication } from '../auth/authenticate.ts';
import { CREDENTIAL_IS_ALIVE, CREDENTIALS } from '../auth/credentialRow.ts';
import { noCredential } from '../auth/presented.ts';
import { badInput, notFound, rateLimited } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import { LIMITS } from '../shared/input.ts';
import { statement } from '../storage/database.ts';
import {
  type ControlNotice,
  type Handing,
  type MessageDelivery,
  newDeliveryIds,
  takeInbox,
} from './handOut.ts';
import { giveBack, unoffer } from './holding.ts';
import { type Inbox, inboxOf } from './inboxes.ts';
import { createSleep } from './sleep.ts';
import type { Waking } from './waking.ts';

export interface TakeInput {
  readonly as?: string | null | undefined;
  readonly threadId?: string | null | undefined;
  readonly max?: number | null | undefined;
  readonly batch?: number | null | undefined;
  readonly onlyMentions?: boolean | null | undefined;
  readonly waitSeconds?: number | null | undefined;
  /** With a `max` of 1: as what it is delivered, once, however often it is asked for. */
  readonly deliveryId?: string | undefined;
}

const MAX_WAIT_SECONDS = 30;
/** Of one inbox in this process: each is woken by whatever comes, and one of them gets it. */
export const MOST_WAITING = 100;
/** What is given after a wait was asked for a while ago: the credential may have ended since. */
const ALIVE = statement<{ id: string }>(
  'credential_alive',
  `SELECT c.id FROM ${CREDENTIALS} WHERE c.id = $1 AND ${CREDENTIAL_IS_ALIVE}`,
);

type Given = readonly (ControlNotice | MessageDelivery)[];

export const requireBatch = (batch: number | null | undefined, field = 'batch'): number => {
  const size = batch ?? 1;
  if (size < 1 || size > LIMITS.pageSize)
    throw badInput(`${field} must be 1 to ${LIMITS.pageSize}.`, { field, limit: LIMITS.pageSize });
  return size;
};

export interface Pulling extends Handing {
  readonly waking: Waking;
  /** Of whoever waits the credential may end: it is told so at once. */
  readonly watch: ClosableAuthentication['watch'];
  /** Fires when this process is about to stop: whoever waits is answered at once. */
  readonly draining: AbortSignal;
}

/**
 * What an inbox has to give, up to `max` deliveries: at once, or as soon as there is something, or nothing when the wait is over,
 * the client has gone or the process drains. It holds no connection while it waits.
 * Errors: BAD_USER_INPUT, FORBIDDEN, NOT_FOUND, PARTICIPANT_NOT_ACTIVE (in `threadId`), UNAUTHENTICATED (ended meanwhile),
 * RATE_LIMITED.
 */
export const createTake = ({ waking, watch, draining, ...handing }: Pulling) => {
  const waiting = new Map<string, number>();
  return async (
    actor: Actor,
    input: TakeInput,
    clientGone: AbortSignal,
  ): Promise<{ inbox: Inbox; given: Given }> => {
    const { inbox, tenant } = inboxOf(actor, input.as);
    const threadId = input.threadId ?? null;
    if (threadId !== null && (!isId('Thread', threadId) || threadId !== (inbox.threadId ?? threadId)))
      throw notFound('Thread');
    const waitSeconds = input.waitSeconds ?? 0;
    if (waitSeconds < 0 || waitSeconds > MAX_WAIT_SECONDS)
      throw badInput(`waitSeconds must be 0 to ${MAX_WAIT_SECONDS}.`, {
        field: 'waitSeconds',
        limit: MAX_WAIT_SECONDS,
      });
    const max = requireBatch(input.max, 'max');
    const options = {
      threadId,
      batch: requireBatch(input.batch),
      onlyMentions: input.onlyMentions ?? false,
      holder: null,
      told: [],
      deliveryIds: input.deliveryId === undefined ? newDeliveryIds(max) : [input.deliveryId],
      once: input.deliveryId !== undefined,
    };
    const putBack = async (given: Given): Promise<void> => {
      const unsent = given.flatMap((one) => (one.channel === 'MESSAGE' ? [one.deliveryId] : []));
      await giveBack(handing.database, inbox, null, unsent);
      const untold = given.flatMap((one) => (one.channel === 'CONTROL' ? [one.number] : []));
      if (untold.length > 0) await unoffer(handing.database, inbox, untold);
    };
    const take = async (): Promise<Given> => {
      const given = await takeInbox(handing, inbox, options);
      if (given === 'TAKEN_OVER') return [];
      // Nobody hears of it. What has a name of its own is kept for whoever asks again by that.
      if (!clientGone.aborted || options.once || given.length === 0) return given;
      await putBack(given);
      return [];
    };

    const requireAlive = async (): Promise<void> => {
      if ((await handing.database.query(ALIVE, [tenant.credentialId])).length === 0) throw noCredential();
    };

    const first = await take();
    if (first.length > 0 || waitSeconds === 0) return { inbox, given: first };

    const name = `${inbox.participantId} ${inbox.runId}`;
    const others = waiting.get(name) ?? 0;
    if (others >= MOST_WAITING)
      throw rateLimited('As many pulls wait for this inbox as may wait.', { limit: MOST_WAITING });
    waiting.set(name, others + 1);
    const until = performance.now() + waitSeconds * 1_000;
    const sleep = createSleep();
    let leave = (): void => {};
    let watched: Awaited<ReturnType<typeof watch>> | undefined;
    let signals: readonly AbortSignal[] = [];
    try {
      watched = await watch(tenant);
      leave = waking.join({
        asks: () => ({
          inbox,
          threadId,
          holder: null,
          onlyMentions: options.onlyMentions,
          since: '0',
          isStandby: false,
        }),
        inHand: new Set(),
        wake: sleep.wake,
        moved: () => undefined,
      });
      signals = [clientGone, draining, watched.ended];
      for (const signal of signals) signal.addEventListener('abort', sleep.wake, { once: true });
      for (;;) {
        const left = until - performance.now();
        if (watched.ended.aborted) throw noCredential();
        if (left <= 0 || clientGone.aborted || draining.aborted) return { inbox, given: [] };
        await sleep.for(left);
        if (clientGone.aborted) return { inbox, given: [] };
        await requireAlive();
        const given = await take();
        if (given.length === 0) continue;
        // It may have ended while others took before it.
        await requireAlive().catch(async (error: unknown) => {
          await putBack(given);
          throw error;
        });
        return { inbox, given };
      }
    } finally {
      const left = (waiting.get(name) ?? 1) - 1;
      if (left > 0) waiting.set(name, left);
      else waiting.delete(name);
      leave();
      watched?.close();
      for (const signal of signals) signal.removeEventListener('abort', sleep.wake);
    }
  };
};
