import type { StreamSink } from './stream.ts';

/** Turns a subscription into an async iterator. Leaving the loop ends the subscription, also while it waits. */
export const iterate = <Result>(
  subscribe: (sink: StreamSink<Result>) => () => void,
): AsyncIterableIterator<Result> => {
  const ready: Result[] = [];
  let waiting: (() => void) | undefined;
  let ended = false;
  let failure: { readonly problem: unknown } | undefined;
  const wake = () => {
    waiting?.();
    waiting = undefined;
  };
  const dispose = subscribe({
    next(result) {
      ready.push(result);
      wake();
    },
    error(problem) {
      failure = { problem };
      wake();
    },
    complete() {
      ended = true;
      wake();
    },
  });
  const leave = (): Promise<IteratorReturnResult<undefined>> => {
    ready.length = 0;
    ended = true;
    dispose();
    wake();
    return Promise.resolve({ done: true, value: undefined });
  };
  return {
    async next() {
      while (ready.length === 0 && !ended && !failure) {
        await new Promise<void>((resolve) => {
          const others = waiting;
          waiting = () => {
            others?.();
            resolve();
          };
        });
      }
      const result = ready.shift();
      if (result !== undefined) return { done: false, value: result };
      if (failure) {
        const { problem } = failure;
        failure = undefined;
        ended = true;
        throw problem;
      }
      return { done: true, value: undefined };
    },
    return: leave,
    throw: leave,
    [Symbol.asyncIterator]() {
      return this;
    },
  };
};
