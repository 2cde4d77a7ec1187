/** `AbortSignal.any` keeps what a long-lived signal once fed; this frees it. */
export const stopOn = (stop: AbortController, signals: readonly AbortSignal[]): (() => void) => {
  const abort = (): void => stop.abort();
  for (const signal of signals) {
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
  }
  return () => {
    for (const signal of signals) signal.removeEventListener('abort', abort);
  };
};

/** A generator's `finally` does not run before its first `next()`, and `return()` waits for a pending one: free first. */
export const stoppable = <T>(generator: AsyncGenerator<T>, free: () => void): AsyncGenerator<T> => ({
  next: () => generator.next(),
  return: (value) => {
    free();
    return generator.return(value);
  },
  throw: (error) => {
    free();
    return generator.throw(error);
  },
  [Symbol.asyncIterator]() {
    return this;
  },
});

/** One after the other what a generator gives in batches. What came together can be had without waiting. */
export interface Batched<T> extends AsyncGenerator<T, undefined> {
  /** The next one, if it came together with the last. */
  more(): T | undefined;
}

/**
 * Of a generator that gives batches, none of them empty. Its `finally` does not run before its first `next()`, and
 * `return()` waits for a pending one: `free` goes first.
 */
export const batched = <T>(
  generator: AsyncGenerator<readonly T[], undefined>,
  free: () => void,
): Batched<T> => {
  let batch: readonly T[] = [];
  let index = 0;
  const more = (): T | undefined => {
    const next = batch[index];
    if (next !== undefined) index += 1;
    return next;
  };
  const over = { value: undefined, done: true } as const;
  const stop = (): void => {
    free();
    batch = [];
  };
  return {
    more,
    async next() {
      const here = more();
      if (here !== undefined) return { value: here, done: false };
      const step = await generator.next();
      if (step.done === true) return over;
      batch = step.value;
      index = 0;
      const first = more();
      return first === undefined ? over : { value: first, done: false };
    },
    async return() {
      stop();
      await generator.return(undefined);
      return over;
    },
    async throw(error) {
      stop();
      await generator.throw(error);
      return over;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
};
