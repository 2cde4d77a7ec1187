import { DomainError } from './errors.ts';

/**
 * What one operation reads of things that may be large: a few portions at a time, and no further one once they are
 * more than `most` bytes together. So what is held for an operation is bounded also where its answer never comes to be.
 */
export interface Portions {
  /** Throws `QUERY_TOO_EXPENSIVE` where too much has been read already. */
  take<T>(read: () => Promise<T>, bytesOf: (portion: T) => number): Promise<T>;
}

const AT_ONCE = 4;

export const createPortions = (most: number): Portions => {
  const waiting: (() => void)[] = [];
  let running = 0;
  let bytes = 0;

  const turn = (): Promise<void> | undefined => {
    running += 1;
    return running <= AT_ONCE ? undefined : new Promise((resolve) => waiting.push(resolve));
  };

  return {
    async take(read, bytesOf) {
      const wait = turn();
      try {
        if (wait !== undefined) await wait;
        if (bytes > most)
          throw new DomainError(
            'QUERY_TOO_EXPENSIVE',
            `The operation reads more than ${most} bytes. Ask for less at once: smaller pages, fewer of them.`,
            { limit: most },
          );
        const portion = await read();
        bytes += bytesOf(portion);
        return portion;
      } finally {
        running -= 1;
        waiting.shift()?.();
      }
    },
  };
};
