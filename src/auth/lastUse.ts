import { type Database, statement } from '../storage/database.ts';

const NOTE = statement<never>(
  'credentials_last_use',
  `UPDATE credentials SET last_used_at = clock_timestamp()
   WHERE id = ANY($1::text[]) AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '55 s')`,
);

const WRITE_AFTER_MS = 1_000;

export interface LastUse {
  note(credentialId: string): void;
  /** Writes what is noted, and notes no more. */
  close(): Promise<void>;
}

/** `lastUsedAt`, kept off the hot path: noted in memory, written for all credentials in one statement a little later. */
export const createLastUse = (database: Database, onError?: (error: unknown) => void): LastUse => {
  const noted = new Set<string>();
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();
  let isClosed = false;

  const write = async (): Promise<void> => {
    timer = null;
    if (noted.size === 0) return;
    // One order in every process, so that two of them never wait for each other's rows.
    const ids = [...noted].sort();
    noted.clear();
    try {
      await database.query(NOTE, [ids]);
    } catch (error) {
      onError?.(error);
    }
  };

  return {
    note: (id) => {
      if (isClosed) return;
      noted.add(id);
      timer ??= setTimeout(() => {
        writing = write();
      }, WRITE_AFTER_MS).unref();
    },
    close: async () => {
      isClosed = true;
      if (timer !== null) clearTimeout(timer);
      await writing;
      await write();
    },
  };
};
