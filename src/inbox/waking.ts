import type { Bus, Logger } from '../live/bus.ts';
import type { Database } from '../storage/database.ts';
import { INBOX_FREE, inboxChannel } from '../timeline/live.ts';
import { type Asked, pollInboxes, renewLeases } from './holding.ts';

/** Somebody in this process who waits for an inbox: a stream, or a pull. */
export interface Waiter {
  /** As of now. */
  asks(): Asked;
  /** Deliveries that came and are to be renewed; those that are over are taken out of it here. */
  readonly inHand: Set<string>;
  /** There may be something: look. In standby: the inbox may be free. */
  wake(): void;
  /** Some thread of the tenant moved. */
  moved(): void;
}

/**
 * Who waits for what, and what wakes them: a message on the inbox's channel, and a look at the database each second, one statement
 * for everybody in this process, so that a message that is lost (or was never sent: a lease that ran out) costs a second.
 * The same look keeps the inboxes of open streams theirs, and their leases are renewed here. Nobody waits: no timer.
 */
export interface Waking {
  join(waiter: Waiter): () => void;
  close(): void;
}

const POLL_MS = 1_000;

export const createWaking = ({
  database,
  bus,
  log,
  leaseSeconds,
}: {
  database: Database;
  bus: Bus;
  log: Logger;
  leaseSeconds: number;
}): Waking => {
  const waiters = new Set<Waiter>();
  const renewEveryMs = (leaseSeconds * 1_000) / 3;
  let timer: NodeJS.Timeout | undefined;
  let isPolling = false;
  let isFailing = false;
  let renewedAt = performance.now();

  const poll = async (): Promise<void> => {
    const asking = [...waiters];
    const answers = await pollInboxes(
      database,
      asking.map((waiter) => waiter.asks()),
    );
    asking.forEach((waiter, index) => {
      const answer = answers[index];
      if (answer === undefined || answer.isLost || answer.isFree || answer.hasNews) waiter.wake();
      if (answer?.hasMoved === true) waiter.moved();
    });
  };

  const renew = async (): Promise<void> => {
    const begunAt = performance.now();
    if (begunAt - renewedAt < renewEveryMs) return;
    const hands = [...waiters].map(({ inHand }) => inHand);
    const deliveryIds = hands.flatMap((inHand) => [...inHand]);
    const over = new Set(
      deliveryIds.length === 0 ? [] : await renewLeases(database, leaseSeconds, deliveryIds),
    );
    // Where it fails the next look tries it again: a lease has no third to lose.
    renewedAt = begunAt;
    for (const inHand of hands) for (const id of inHand) if (over.has(id)) inHand.delete(id);
  };

  /** Where leases cannot be renewed inboxes are looked at all the same. */
  const look = async (): Promise<void> => {
    try {
      await renew();
    } finally {
      await poll();
    }
  };

  const tick = async (): Promise<void> => {
    if (isPolling) return;
    isPolling = true;
    try {
      await look();
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.warn({ err: error }, 'Inboxes cannot be looked at; they wait.');
      isFailing = true;
    } finally {
      isPolling = false;
    }
  };

  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };

  return {
    join(waiter) {
      waiters.add(waiter);
      timer ??= setInterval(() => void tick(), Math.min(POLL_MS, renewEveryMs)).unref();
      const hear = (message?: string): void => {
        if (message === INBOX_FREE || !waiter.asks().isStandby) waiter.wake();
      };
      // Listening again after a gap: what was said meanwhile is looked for.
      const leave = bus.subscribe(inboxChannel(waiter.asks().inbox.participantId), hear, hear);
      return () => {
        leave();
        waiters.delete(waiter);
        if (waiters.size === 0) stop();
      };
    },
    close: stop,
  };
};
