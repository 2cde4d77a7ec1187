/**
 * How many reads of live delivery may be under way at once in this process, so that thousands of followers who come
 * back together do not take the database from everybody else. Reads at the live end go first and always find room.
 */
export interface Reads {
  run<Result>(lane: ReadLane, read: () => Promise<Result>): Promise<Result>;
}

export type ReadLane = 'live' | 'catchUp';

const AT_ONCE = 8;
const CATCH_UP_AT_ONCE = 6;

export const createReads = (): Reads => {
  const waiting: Record<ReadLane, (() => void)[]> = { live: [], catchUp: [] };
  const running: Record<ReadLane, number> = { live: 0, catchUp: 0 };

  const nextLane = (): ReadLane | undefined => {
    if (running.live + running.catchUp >= AT_ONCE) return undefined;
    if (waiting.live.length > 0) return 'live';
    return waiting.catchUp.length > 0 && running.catchUp < CATCH_UP_AT_ONCE ? 'catchUp' : undefined;
  };
  const start = (): void => {
    for (let lane = nextLane(); lane !== undefined; lane = nextLane()) {
      running[lane] += 1;
      waiting[lane].shift()?.();
    }
  };

  return {
    async run(lane, read) {
      await new Promise<void>((resolve) => {
        waiting[lane].push(resolve);
        start();
      });
      try {
        return await read();
      } finally {
        running[lane] -= 1;
        start();
      }
    },
  };
};
