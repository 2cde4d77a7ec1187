import type { Bus, Logger } from './bus.ts';
import { Follower } from './follower.ts';
import { createOutage } from './outage.ts';
import type { Reads } from './reads.ts';
import type { FollowEnd, Following, LogSource, Positioned, TailLimits } from './source.ts';
import { Tail } from './tail.ts';

/** Followers of the logs of one source. */
export interface Logs<Item extends Positioned> {
  /**
   * Every item of the log `key` after position `after`, in order, once, for as long as it goes on; at the end of a
   * deleted log, or of this process, one step with `ended`. `after` must be a position that the log has reached.
   * Following begins with this call, before the first `next()`, and is freed by `signal` or by `return()`; either
   * ends a waiting `next()` at once. All followers are handed the same item object at the live end, so that work per
   * item can be shared by identity.
   */
  follow(key: string, after: number, signal: AbortSignal): Following<Item>;
}

/** What the hub does with logs of whatever kind. */
export interface FollowedLogs {
  readonly tails: number;
  readonly followers: number;
  /** Looks how far all followed logs reach: one statement, none if nothing is followed. */
  poll(): void;
  /** From now on whoever follows is told at once that it ends. */
  refuse(ended: FollowEnd): void;
  /** Everyone who follows now, to be ended. */
  all(): ((ended: FollowEnd) => void)[];
}

export interface LogsContext {
  readonly bus: Bus;
  readonly reads: Reads;
  readonly log: Logger;
  readonly limits: TailLimits;
  /** Called when the first log begins to be followed and when the last one ends. */
  onActivity(): void;
}

export const createLogs = <Item extends Positioned>(
  source: LogSource<Item>,
  { bus, reads, log, limits, onActivity }: LogsContext,
): Logs<Item> & FollowedLogs => {
  const tails = new Map<string, Tail<Item>>();
  const doubtful = new Set<Tail<Item>>();
  const outage = createOutage(log, source.name);
  let isLooking = false;
  let isLookDue = false;
  let refusal: FollowEnd | undefined;

  /** One statement for everything in doubt; what comes into doubt meanwhile is looked at by the next. */
  const look = async (): Promise<void> => {
    isLookDue = false;
    if (isLooking) return;
    isLooking = true;
    while (doubtful.size > 0) {
      const looked = [...doubtful];
      doubtful.clear();
      try {
        const heads = await source.heads(looked.map((tail) => tail.key));
        outage.over();
        for (const tail of looked) if (tails.get(tail.key) === tail) tail.reached(heads.get(tail.key));
      } catch (error) {
        // The next poll doubts all of them again.
        outage.failed(error);
        break;
      }
    }
    isLooking = false;
  };

  const lookSoon = (): void => {
    if (isLookDue) return;
    isLookDue = true;
    setImmediate(() => void look());
  };

  const context = {
    source,
    bus,
    reads,
    outage,
    limits,
    check(tail: Tail<Item>) {
      doubtful.add(tail);
      lookSoon();
    },
    drop(tail: Tail<Item>) {
      if (tails.get(tail.key) === tail) tails.delete(tail.key);
      doubtful.delete(tail);
      onActivity();
    },
  };

  const open = (key: string, after: number): Tail<Item> => {
    const tail = new Tail<Item>(key, after, context);
    tails.set(key, tail);
    tail.start();
    onActivity();
    return tail;
  };

  return {
    follow(key, after, signal) {
      if (signal.aborted || refusal !== undefined)
        return new Follower<Item>(null, after, signal, signal.aborted ? undefined : refusal);
      return (tails.get(key) ?? open(key, after)).join(after, signal);
    },
    get tails() {
      return tails.size;
    },
    get followers() {
      let count = 0;
      for (const tail of tails.values()) count += tail.followers.size;
      return count;
    },
    poll() {
      for (const tail of tails.values()) {
        tail.trim();
        doubtful.add(tail);
      }
      if (doubtful.size > 0) lookSoon();
    },
    refuse(ended) {
      refusal = ended;
    },
    all() {
      return [...tails.values()].flatMap((tail) =>
        [...tail.followers].map((follower) => (ended: FollowEnd) => follower.end(ended)),
      );
    },
  };
};
