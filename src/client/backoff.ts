export interface Waits {
  /** The wait before the first new attempt; it doubles with each that brings nothing new. */
  readonly firstWaitMs: number;
  /** No wait is longer, however long the outage. */
  readonly longestWaitMs: number;
}

/** Half of the wait is chance, so that the readers of a server that went away do not come back all at once. */
export const waitBefore = (
  failures: number,
  { firstWaitMs, longestWaitMs }: Waits,
  atLeastMs = 0,
): number => {
  const full = Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(failures, 30));
  return Math.round(Math.max(full, atLeastMs) * 0.5 + Math.random() * full * 0.5 + atLeastMs * 0.5);
};
