import { unavailable } from './errors.ts';

/**
 * How many of one key's tasks may run at once; the others wait here, in order, and hold nothing meanwhile. So whoever
 * waits for one thread's lock does not keep the connections that all other threads need.
 */
export interface Lanes {
  /** Throws `UNAVAILABLE` if its turn does not come in time. */
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
  /**
   * For what writes a text: a long one takes up to a second to be made searchable, so its tenant's lane comes first, and
   * the rest of the connections stay for others. Throws `UNAVAILABLE`.
   */
  runText<T>(text: { ownerId: string; bytes: number; key: string }, task: () => Promise<T>): Promise<T>;
}

const LONG_BYTES = 65_536;

interface Lane {
  running: number;
  readonly waiting: Set<() => void>;
}

export const createLanes = ({ width, patienceMs }: { width: number; patienceMs: number }): Lanes => {
  const lanes = new Map<string, Lane>();

  const enter = (key: string): Promise<void> | undefined => {
    const lane = lanes.get(key);
    if (lane === undefined) {
      lanes.set(key, { running: 1, waiting: new Set() });
      return undefined;
    }
    if (lane.running < width) {
      lane.running += 1;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        lane.waiting.delete(admit);
        reject(unavailable('Too much is written here at once. Try again.'));
      }, patienceMs);
      lane.waiting.add(admit);
    });
  };

  const leave = (key: string): void => {
    const lane = lanes.get(key);
    if (lane === undefined) return;
    const [next] = lane.waiting;
    if (next !== undefined) {
      // The place passes on; it is not given up in between.
      lane.waiting.delete(next);
      next();
      return;
    }
    lane.running -= 1;
    if (lane.running === 0) lanes.delete(key);
  };

  const run = async <T>(key: string, task: () => Promise<T>): Promise<T> => {
    await enter(key);
    try {
      return await task();
    } finally {
      leave(key);
    }
  };

  return {
    run,
    runText: ({ ownerId, bytes, key }, task) =>
      bytes > LONG_BYTES ? run(`long ${ownerId}`, () => run(key, task)) : run(key, task),
  };
};
