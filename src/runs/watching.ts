import { type Database, statement } from '../storage/database.ts';

const VERSIONS = statement<{ id: string; version: number }>(
  'runs_versions',
  'SELECT r.id, r.version FROM runs r WHERE r.id = ANY ($1::text[])',
);
const POLL_MS = 1_000;

/** Wakes those who follow runs that have changed: one statement a second for all of them, none where there are none. */
export const createWatch = (database: Database) => {
  const wakes = new Map<string, Set<(version: number) => void>>();
  let timer: NodeJS.Timeout | undefined;
  let isReading = false;

  const poll = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    try {
      for (const { id, version } of await database.urgent(VERSIONS, [[...wakes.keys()]]))
        for (const wake of wakes.get(id) ?? []) wake(version);
    } catch {
      // The database is away: whoever follows waits.
    } finally {
      isReading = false;
    }
  };

  return (runId: string, wake: (version: number) => void): (() => void) => {
    const others = wakes.get(runId) ?? new Set();
    wakes.set(runId, others.add(wake));
    timer ??= setInterval(() => void poll(), POLL_MS).unref();
    return () => {
      others.delete(wake);
      if (others.size === 0) wakes.delete(runId);
      if (wakes.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  };
};
