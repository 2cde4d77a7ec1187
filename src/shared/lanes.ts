import { unavailable } from './errors.ts';

/**
 * How many of one key's tasks may run at once; the others wait here, in order, and hold nothing meanwhile. So whoever
 * waits for one thread's lock does not keep the connections that all other threads need.
 */
export interface Lanes {
  /** Throws `UNAVAILABLE` if its turn does not come in time. */
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
}

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
        reject(unavailable('This thread is busy. Try again.'));
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

  return {
    async run(key, task) {
      await enter(key);
      try {
        return await task();
      } finally {
        leave(key);
      }
    },
  };
};
