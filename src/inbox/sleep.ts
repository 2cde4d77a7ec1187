/** A sleeper that is woken, at once if it was while it was awake. */
export interface Sleep {
  wake(): void;
  /** Until it is woken, or so long at most where that is said; at once if it was woken since the last sleep. Whether it was woken. */
  for(ms?: number): Promise<boolean>;
}

export const createSleep = (): Sleep => {
  let isWoken = false;
  let rouse: (() => void) | undefined;
  return {
    wake() {
      isWoken = true;
      rouse?.();
    },
    for: (ms) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          rouse = undefined;
          const wasWoken = isWoken;
          isWoken = false;
          resolve(wasWoken);
        };
        const timer = ms === undefined ? undefined : setTimeout(done, ms);
        rouse = done;
        if (isWoken) done();
      }),
  };
};
