import { refuseRunToken, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Session } from '../auth/session.ts';
import type { Bus } from '../live/bus.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import { decodeThreadNotice, type ThreadNotice, userChannel } from '../timeline/live.ts';
import { isSeqInRanges, type Look } from '../timeline/look.ts';
import type { Looks } from '../timeline/looks.ts';

/** A thread of the viewer's that reads otherwise than before, or is gone; or why the stream ends. */
export interface ThreadsDelivery {
  readonly thread: Look | null;
  readonly deletedThreadId: string | null;
  readonly ended: DeliveryEnd | null;
}

/** At most one payload per thread in this time. */
const SPACING_MS = 1_000;
const IDLE_MS = 3_600_000;
/** How far this process's clock may be ahead of the database's. */
const CLOCK_MARGIN_MS = 5_000;

const delivery = (fields: Partial<ThreadsDelivery> = {}): ThreadsDelivery => ({
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
  /** Fires when this process is about to stop. */
  readonly draining: AbortSignal;
}

/**
 * Tells a viewer which of its threads changed. State, not a log: changes of one thread within a second are told as one,
 * and what is missed while the stream is broken is read from the list again. It is woken by what goes through the
 * viewer's window and by its own state and read position, never by others' states beyond its window.
 */
export const createFollowThreads = ({ bus, looks, changedSince, draining }: FollowThreadsOptions) =>
  async function* (
    session: Session,
    input: { readonly as?: string | null | undefined },
    clientGone: AbortSignal,
  ): AsyncGenerator<ThreadsDelivery> {
    const tenant = refuseRunToken(requireTenant(session.actor));
    const viewerId = viewerOf(tenant, input.as);
    const waiting = new Map<string, ThreadNotice[]>();
    const sentAt = new Map<string, number>();
    let seen = BigInt(Date.now() - CLOCK_MARGIN_MS) * 1_000n;
    let isListening = false;
    let isBehind = false;
    let wake: () => void = () => {};

    const unsubscribe = bus.subscribe(
      userChannel(tenant.userId),
      (message) => {
        const notice = decodeThreadNotice(message);
        const notices = waiting.get(notice.threadId);
        if (notices === undefined) waiting.set(notice.threadId, [notice]);
        else notices.push(notice);
        wake();
      },
      () => {
        // The first time nothing was missed: the first payload goes out only now.
        isBehind = isListening;
        isListening = true;
        wake();
      },
    );
    const signals = [clientGone, session.ended, draining];
    const onStop = (): void => wake();
    for (const signal of signals) signal.addEventListener('abort', onStop);
    const isStopped = (): boolean => signals.some((signal) => signal.aborted);

    /** Until something may be due, at the latest when the first thread's spacing is over. */
    const pause = (): Promise<void> =>
      new Promise((resolve) => {
        const now = performance.now();
        const due = [...waiting.keys()].map((id) => (sentAt.get(id) ?? -SPACING_MS) + SPACING_MS - now);
        const longest = isStopped() ? 0 : bus.connected && !isBehind ? IDLE_MS : SPACING_MS;
        const timer = setTimeout(resolve, Math.min(...due, longest));
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });

    const takeDue = (): [string, ThreadNotice[]][] => {
      const now = performance.now();
      for (const [id, at] of sentAt) if (now - at >= SPACING_MS) sentAt.delete(id);
      const due = [...waiting].filter(([id]) => !sentAt.has(id));
      for (const [id] of due) waiting.delete(id);
      return due;
    };

    /** What this viewer is to be told of one thread; null for nothing. */
    const toTell = async (
      threadId: string,
      notices: readonly ThreadNotice[],
    ): Promise<ThreadsDelivery | null> => {
      const gone = notices.find((notice) => notice.deletedFor !== undefined);
      if (gone !== undefined)
        return viewerId === null || gone.deletedFor?.includes(viewerId)
          ? delivery({ deletedThreadId: threadId })
          : null;
      if (!notices.some(({ participantId }) => participantId === undefined || participantId === viewerId))
        return null;
      const answer = await looks.read({ ownerId: tenant.userId, threadId, viewerId });
      return answer !== null && notices.some((notice) => concerns(answer.look, notice))
        ? delivery({ thread: answer.look })
        : null;
    };

    /** Wake-ups may have been lost: the list itself says what moved. */
    const catchUp = async (): Promise<void> => {
      for (const look of await changedSince(tenant.userId, viewerId, seen))
        if (!waiting.has(look.threadId)) waiting.set(look.threadId, [{ threadId: look.threadId }]);
      isBehind = false;
    };

    /** While the database is away nothing is told; it is caught up with when it is back. */
    const told = async (due: readonly [string, ThreadNotice[]][]): Promise<(ThreadsDelivery | null)[]> => {
      try {
        if (isBehind || !bus.connected) await catchUp();
        return await Promise.all(due.map(([threadId, notices]) => toTell(threadId, notices)));
      } catch {
        isBehind = true;
        await pause();
        return [];
      }
    };

    try {
      if (!isListening && bus.connected) await pause();
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
      if (clientGone.aborted) return;
      yield delivery({ ended: session.ended.aborted ? 'CREDENTIAL_ENDED' : 'SERVER_DRAINING' });
    } finally {
      unsubscribe();
      for (const signal of signals) signal.removeEventListener('abort', onStop);
    }
  };

/** Whether what the notice speaks of goes through the viewer's window. */
const concerns = (look: Look, { seq }: ThreadNotice): boolean =>
  seq === undefined || (seq <= look.end.seq && isSeqInRanges(look, seq));
