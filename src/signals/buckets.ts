/** How much of something may be done: a bucket for each key, that fills again with time. */
export interface Buckets {
  /** Takes one; 0, or how many milliseconds to wait for the next. */
  take(key: string): number;
}

/** Keys that are full again are forgotten when so many are known. */
const MOST = 10_000;

export const createBuckets = (
  { perSecond, burst }: { perSecond: number; burst: number },
  now: () => number = () => performance.now(),
): Buckets => {
  const buckets = new Map<string, { left: number; at: number }>();
  const filled = ({ left, at }: { left: number; at: number }): number =>
    Math.min(burst, left + ((now() - at) / 1_000) * perSecond);

  const forgetFull = (): void => {
    for (const [key, bucket] of buckets) if (filled(bucket) >= burst) buckets.delete(key);
  };

  return {
    take(key) {
      if (buckets.size >= MOST && !buckets.has(key)) forgetFull();
      const bucket = buckets.get(key);
      const left = bucket === undefined ? burst : filled(bucket);
      if (left < 1) return Math.ceil(((1 - left) / perSecond) * 1_000);
      buckets.set(key, { left: left - 1, at: now() });
      return 0;
    },
  };
};
