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
