import type { Database } from '../storage/database.ts';
import { type LookAnswer, readLooks, type WantedLook } from './look.ts';

/**
 * Looks for whoever begins to follow, shared by the whole process: those that arrive while a statement is on its
 * way, or within a few milliseconds after it, share the next one. So a thousand subscriptions that come at once cost a
 * bounded number of statements.
 */
export interface Looks {
  read(wanted: WantedLook): Promise<LookAnswer | null>;
}

const GATHER_MS = 15;
const MOST_AT_ONCE = 500;

interface Waiting {
  readonly wanted: WantedLook;
  resolve(answer: LookAnswer | null): void;
  reject(error: unknown): void;
}

export const createLooks = (database: Database): Looks => {
  let waiting: Waiting[] = [];
  let isBusy = false;

  const run = async (): Promise<void> => {
    const batch = waiting.slice(0, MOST_AT_ONCE);
    waiting = waiting.slice(MOST_AT_ONCE);
    try {
      const answers = await readLooks(
        database,
        batch.map(({ wanted }) => wanted),
      );
      batch.forEach(({ resolve }, index) => {
        resolve(answers[index] ?? null);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    setTimeout(next, waiting.length >= MOST_AT_ONCE ? 0 : GATHER_MS);
  };

  const next = (): void => {
    isBusy = waiting.length > 0;
    if (isBusy) void run();
  };

  return {
    read: (wanted) =>
      new Promise((resolve, reject) => {
        waiting.push({ wanted, resolve, reject });
        if (isBusy) return;
        isBusy = true;
        setImmediate(() => void run());
      }),
  };
};
