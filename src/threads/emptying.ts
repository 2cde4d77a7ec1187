import type { Logger } from '../shared/log.ts';
import { type Database, statement } from '../storage/database.ts';

/** Rows in one short transaction. */
const BATCH = 2_000;
const EVERY_MS = 30_000;

const EMPTY = statement<{ count: number }>('empty_deleted', 'SELECT empty_deleted($1) AS count');

/** What inboxes were told long ago. */
const EMPTY_INBOXES = statement<{ count: number }>('empty_inboxes', 'SELECT empty_inboxes($1) AS count');

export interface Emptying {
  /** Something was deleted: begin now. */
  wake(): void;
  close(): Promise<void>;
}

/**
 * Empties what was deleted, in batches: a deleted thread or user is invisible at once, whatever its size, and goes away
 * without a long statement. Any process may do it, after a crash as well; what one leaves another finds.
 */
export const createEmptying = ({
  database,
  log,
  onEmptied,
}: {
  database: Database;
  log: Logger;
  /** After each batch: with it, scratchpads may have gone. */
  onEmptied?: () => void;
}): Emptying => {
  let isClosed = false;
  let isDue = false;
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    while (isDue && !isClosed) {
      isDue = false;
      try {
        for (;;) {
          const [row] = await database.query(EMPTY, [BATCH]);
          if (isClosed || (row?.count ?? 0) === 0) break;
          onEmptied?.();
        }
        for (;;) {
          const [row] = await database.query(EMPTY_INBOXES, [BATCH]);
          if (isClosed || (row?.count ?? 0) === 0) break;
        }
      } catch (error) {
        log.warn({ err: error }, 'What was deleted could not be emptied; it is tried again.');
      }
    }
    running = undefined;
  };

  const wake = (): void => {
    isDue = true;
    if (!isClosed) running ??= run();
  };

  const timer = setInterval(wake, EVERY_MS);
  timer.unref();
  wake();
  return {
    wake,
    async close() {
      isClosed = true;
      clearInterval(timer);
      await running;
    },
  };
};
