import { refuseRunToken, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Session } from '../auth/session.ts';
import type { Bus } from '../live/bus.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import { decodeThreadNotice, userChannel } from '../timeline/live.ts';
import type { Look } from '../timeline/look.ts';
import type { Looks } from '../timeline/looks.ts';
import { concerns, type Heard, hear, UNHEARD } from './notices.ts';

/** A thread of the viewer's that reads otherwise than before, or is gone; or why the stream ends. */
export interface ThreadsDelivery {
  readonly threadId: string | null;
  readonly thread: Look | null;
  readonly deletedThreadId: string | null;
  readonly ended: DeliveryEnd | null;
}

/** At most one payload per thread in this time. */
const SPACING_MS = 1_000;
/** How soon a Redis that went away is noticed by a follower that sleeps. */
const IDLE_MS = 5_000;
/** How far this process's clock may be ahead of the database's. */
const CLOCK_MARGIN_MS = 5_000;
/** Membership is permanent, so a stranger's thread is looked at once; so many of them are remembered. */
const STRANGERS = 2_000;

const delivery = (fields: Partial<ThreadsDelivery> = {}): ThreadsDelivery => ({
  threadId: null,
  thread: null,
  deletedThreadId: null,
  ended: null,
  ...fields,
});

export interface FollowThreadsOptions {
  readonly bus: Bus;
  readonly looks: Looks;
  /** Threads of this viewer whose last visible event is later than this time (microseconds since 1970). */
  changedSince(ownerId: string, viewerId: string | null, activity: bigint): Promise<Look[]>;
  /** Fires when this process is about to stop; its reason: over how many milliseconds readers are told. */
  readonly draining: AbortSignal;
}

/**
 * Tells a viewer which of its threads changed. State, not a log: changes of one thread within a second are told as one,
 * and what is missed while the stream is broken is read from the list again. It is woken by what goes through the
 * viewer's window and by its own state and read position, never by others' states beyond its window. While Redis is
 * away the list itself is asked, once a second.
 */
export const createFollowThreads =
  (options: FollowThreadsOptions) =>
  (
    session: Session,
    input: { readonly as?: string | null | undefined },
    clientGone: AbortSignal,
  ): AsyncGenerator<ThreadsDelivery> => {
    const tenant = refuseRunToken(requireTenant(session.actor));
    return follow(options, session, tenant.userId, viewerOf(tenant, input.as), clientGone);
  };

const follow = async function* (
  { bus, looks, changedSince, draining }: FollowThreadsOptions,
  session: Session,
  ownerId: string,
  viewerId: string | null,
  clientGone: AbortSignal,
): AsyncGenerator<ThreadsDelivery> {
  const waiting = new Map<string, Heard>();
  const sentAt = new Map<string, number>();
  const strangers = new Set<string>();
  let seen = BigInt(Date.now() - CLOCK_MARGIN_MS) * 1_000n;
  let isListening = false;
  let isGreeted = false;
  let isBehind = false;
  let wake: () => void = () => {};

  const unsubscribe = bus.subscribe(
    userChannel(ownerId),
    (message) => {
      const notice = decodeThreadNotice(message);
      const heard = hear(waiting.get(notice.threadId), notice, viewerId);
      if (heard === undefined || strangers.has(notice.threadId)) return;
      waiting.set(notice.threadId, heard);
      wake();
    },
    () => {
      // Nothing was missed only where nothing was promised yet: before the first payload.
      isBehind ||= isListening || isGreeted;
      isListening = true;
      wake();
    },
  );
  const signals = [clientGone, session.ended, draining];
  const onStop = (): void => wake();
  for (const signal of signals) signal.addEventListener('abort', onStop);
  const isStopped = (): boolean => signals.some((signal) => signal.aborted);

  const sleep = (milliseconds: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  /** Until something may be due, at the latest when the first thread's spacing is over. */
  const pause = (): Promise<void> => {
    if (isStopped()) return Promise.resolve();
    const now = performance.now();
    const due = [...waiting.keys()].map((id) => (sentAt.get(id) ?? -SPACING_MS) + SPACING_MS - now);
    return sleep(Math.min(...due, bus.connected && !isBehind ? IDLE_MS : SPACING_MS));
  };

  const takeDue = (): [string, Heard][] => {
    const now = performance.now();
    for (const [id, at] of sentAt) if (now - at >= SPACING_MS) sentAt.delete(id);
    const due = [...waiting].filter(([id]) => !sentAt.has(id));
    for (const [id] of due) waiting.delete(id);
    return due;
  };

  const isStranger = (threadId: string): void => {
    strangers.add(threadId);
    const [oldest] = strangers;
    if (strangers.size > STRANGERS && oldest !== undefined) strangers.delete(oldest);
  };

  /** What this viewer is to be told of one thread; null for nothing. */
  const toTell = async (threadId: string, heard: Heard): Promise<ThreadsDelivery | null> => {
    if (heard.isGone) return delivery({ threadId, deletedThreadId: threadId });
    const answer = await looks.read({ ownerId, threadId, viewerId });
    if (answer === null) isStranger(threadId);
    return answer !== null && concerns(answer.look, heard)
      ? delivery({ threadId, thread: answer.look })
      : null;
  };

  /** Wake-ups may have been lost: the list itself says what moved. */
  const catchUp = async (): Promise<void> => {
    isBehind = false;
    for (const look of await changedSince(ownerId, viewerId, seen + 1n))
      if (!waiting.has(look.threadId)) waiting.set(look.threadId, UNHEARD);
  };

  /** While the database is away nothing is told and nothing forgotten. */
  const told = async (due: readonly [string, Heard][]): Promise<(ThreadsDelivery | null)[]> => {
    try {
      if (isBehind || !bus.connected) await catchUp();
      return await Promise.all(due.map(([threadId, heard]) => toTell(threadId, heard)));
    } catch {
      for (const [threadId, heard] of due) waiting.set(threadId, waiting.get(threadId) ?? heard);
      isBehind = true;
      if (!isStopped()) await sleep(SPACING_MS);
      return [];
    }
  };

  try {
    // Whoever reads the list after the first payload misses nothing; a Redis that is away holds nobody up.
    if (!isListening && bus.connected && !isStopped()) await sleep(SPACING_MS);
    isGreeted = true;
    yield delivery();
    while (!isStopped()) {
      const due = takeDue();
      for (const payload of await told(due)) {
        if (payload === null) continue;
        const { thread } = payload;
        if (thread !== null) {
          sentAt.set(thread.threadId, performance.now());
          if (BigInt(thread.activity) > seen) seen = BigInt(thread.activity);
        }
        yield payload;
      }
      if (due.length === 0) await pause();
    }
    const isEnded = (): boolean => clientGone.aborted || session.ended.aborted;
    // Not all at once, so that they do not all come back at once.
    if (!isEnded()) await sleep(Math.random() * Number(draining.reason));
    if (!clientGone.aborted)
      yield delivery({ ended: session.ended.aborted ? session.ending : 'SERVER_DRAINING' });
  } finally {
    unsubscribe();
    for (const signal of signals) signal.removeEventListener('abort', onStop);
  }
};
