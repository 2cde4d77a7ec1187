import { requireReach, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Session } from '../auth/session.ts';
import type { Bus } from '../live/bus.ts';
import type { Logs } from '../live/logs.ts';
import { stopOn, stoppable } from '../live/stopping.ts';
import { notFound } from '../shared/errors.ts';
import type { TimelineEvent } from '../timeline/events.ts';
import { foldFrom } from '../timeline/fold.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import { logKey } from '../timeline/live.ts';
import type { Looks } from '../timeline/looks.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import { type Signal, signalChannel } from './signals.ts';

/** A signal, or why the stream ends; at first neither. */
export interface SignalDelivery {
  readonly viewerId: string | null;
  readonly signal: Signal | null;
  readonly ended: DeliveryEnd | null;
}

/** Of a reader that is slow, or whose log is behind: the oldest are dropped. */
const WAITING = 500;
const LISTEN_MS = 1_000;

/**
 * Follows what a thread's members do just now, through the viewer's window: a signal is seen by who is active at its
 * position of the thread, which the stream waits for. Best effort, nothing is repeated. The first payload comes at once and
 * carries no signal. Errors before it: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT.
 */
export const createFollowSignals =
  ({ bus, looks, logs }: { bus: Bus; looks: Looks; logs: Logs<TimelineEvent> }) =>
  async (
    session: Session,
    input: { readonly threadId: string; readonly as?: string | null | undefined },
    clientGone: AbortSignal,
  ): Promise<AsyncGenerator<SignalDelivery>> => {
    const tenant = requireTenant(session.actor);
    const viewerId = viewerOf(tenant, input.as);
    const { threadId } = input;
    requireThreadId(threadId);
    requireReach(tenant, threadId);
    const stop = new AbortController();
    const waiting: Signal[] = [];
    let wake: () => void = () => {};
    let isListening = false;
    // Listening before looking: what is sent meanwhile is judged by the look.
    const unsubscribe = bus.subscribe(
      signalChannel(threadId),
      (message) => {
        waiting.push(JSON.parse(message) as Signal);
        if (waiting.length > WAITING) waiting.shift();
        wake();
      },
      () => {
        isListening = true;
        wake();
      },
    );
    const answer = await looks
      .read({ ownerId: tenant.userId, threadId, viewerId })
      .catch((error: unknown) => {
        unsubscribe();
        throw error;
      });
    if (answer === null) {
      unsubscribe();
      throw notFound('Thread');
    }
    const { look } = answer;
    const fold = foldFrom(look, look.lastSeq);
    let position = look.lastSeq;
    /** From where on the viewer is active without a break. */
    let since = look.windows.at(-1)?.after ?? 0;
    let ended: DeliveryEnd | null = null;
    let isOver = false;
    const release = stopOn(stop, [clientGone, session.ended]);
    const free = (): void => {
      stop.abort();
      release();
      unsubscribe();
      wake();
    };

    const steps = logs.follow(logKey(tenant.userId, threadId), look.lastSeq, stop.signal);
    const watch = async (): Promise<void> => {
      try {
        for await (const step of steps) {
          if (step.ended !== undefined) {
            ended = step.ended === 'GONE' ? 'THREAD_DELETED' : 'SERVER_DRAINING';
            return;
          }
          const wasActive = fold.active;
          fold.sees(step.item);
          position = step.item.seq;
          if (!wasActive && fold.active) since = position;
          wake();
        }
        if (session.ended.aborted && !clientGone.aborted) ended = session.ending;
      } finally {
        isOver = true;
        wake();
      }
    };

    /** The next that the viewer may see; what it may not is dropped, what the log has not reached waits. */
    const next = (): Signal | undefined => {
      for (let index = 0; index < waiting.length; ) {
        const signal = waiting[index];
        if (signal === undefined || signal.seq > position) {
          index += 1;
          continue;
        }
        waiting.splice(index, 1);
        if (fold.active && signal.seq >= since) return signal;
      }
      return undefined;
    };

    /** Whoever has the first payload misses nothing that is sent then; a Redis that is away holds nobody up. */
    const untilListening = (): Promise<void> =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, LISTEN_MS);
        wake = () => {
          if (!isListening && !isOver) return;
          clearTimeout(timer);
          resolve();
        };
        wake();
      });

    const deliver = async function* (): AsyncGenerator<SignalDelivery> {
      const watching = watch();
      // Told where it is awaited; whoever leaves before hears nothing of it.
      watching.catch(() => undefined);
      try {
        if (bus.connected) await untilListening();
        yield { viewerId, signal: null, ended: null };
        for (;;) {
          const signal = next();
          if (signal !== undefined) yield { viewerId, signal, ended: null };
          else if (isOver) break;
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
        await watching;
        if (ended !== null) yield { viewerId, signal: null, ended };
      } finally {
        free();
      }
    };
    return stoppable(deliver(), free);
  };
