import { setTimeout as delay } from 'node:timers/promises';
import type { Bus, Logger } from './bus.ts';
import { createLogs, type FollowedLogs, type Logs } from './logs.ts';
import { createReads } from './reads.ts';
import { type LogSource, type Positioned, TAIL_LIMITS, type TailLimits } from './source.ts';

/**
 * Live delivery of this process. A subscription is a reader of a log with a position; the bus only says that there
 * is more to read. So whatever the bus loses, repeats or mixes up, and whenever storage is away, every follower gets
 * each item once and in order, at worst later: all followed logs are looked at once a second, in one statement for
 * each source.
 */
export interface Hub {
  /** The logs of `source`. Called once for each source. */
  logs<Item extends Positioned>(source: LogSource<Item>): Logs<Item>;
  /** For the gauges: followed logs, channels listened to, followers. All return to 0. */
  readonly counts: { readonly tails: number; readonly channels: number; readonly followers: number };
  /**
   * Tells every follower that the process stops (`ended: 'DRAINING'`), spread evenly over `overMs` so that not all
   * come back in one moment; who begins to follow meanwhile is told at once. Resolves when all were told.
   */
  drain(overMs?: number): Promise<void>;
  /** Ends what still follows and stops polling. The bus belongs to whoever made it. */
  close(): void;
}

export interface HubOptions {
  readonly bus: Bus;
  readonly log: Logger;
  readonly pollMs?: number;
  readonly limits?: TailLimits;
}

const POLL_MS = 1_000;
const DRAIN_STEP_MS = 50;

export const createHub = ({ bus, log, pollMs = POLL_MS, limits = TAIL_LIMITS }: HubOptions): Hub => {
  const sources: FollowedLogs[] = [];
  const reads = createReads();
  let timer: NodeJS.Timeout | undefined;

  const sum = (count: (logs: FollowedLogs) => number): number =>
    sources.reduce((total, logs) => total + count(logs), 0);
  const followers = () => sources.flatMap((logs) => logs.all());

  /** Nothing followed, no timer. */
  const onActivity = (): void => {
    const isFollowing = sum(({ tails }) => tails) > 0;
    if (isFollowing)
      timer ??= setInterval(() => {
        for (const logs of sources) logs.poll();
      }, pollMs).unref();
    else {
      clearInterval(timer);
      timer = undefined;
    }
  };
  const refuse = (): void => {
    for (const logs of sources) logs.refuse('DRAINING');
  };

  return {
    logs(source) {
      const logs = createLogs(source, { bus, reads, log, limits, onActivity });
      sources.push(logs);
      return logs;
    },
    get counts() {
      return {
        tails: sum(({ tails }) => tails),
        channels: bus.channels,
        followers: sum((logs) => logs.followers),
      };
    },
    async drain(overMs = 0) {
      refuse();
      const waiting = followers();
      const steps = Math.max(1, Math.ceil(overMs / DRAIN_STEP_MS));
      for (let step = 0; step < steps && waiting.length > 0; step += 1) {
        const share = Math.ceil(waiting.length / (steps - step));
        for (const end of waiting.splice(0, share)) end('DRAINING');
        if (waiting.length > 0) await delay(DRAIN_STEP_MS);
      }
    },
    close() {
      refuse();
      for (const end of followers()) end('DRAINING');
      clearInterval(timer);
      timer = undefined;
    },
  };
};
