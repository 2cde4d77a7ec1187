import { type Database, statement } from '../storage/database.ts';

const VERSIONS = statement<{ owner_id: string; id: string; version: number }>(
  'runs_versions',
  `SELECT r.owner_id, r.id, r.version FROM unnest($1::text[], $2::text[]) AS u(owner_id, id)
   JOIN runs r ON r.owner_id = u.owner_id AND r.id = u.id`,
);
const POLL_MS = 1_000;

interface Watched {
  readonly ownerId: string;
  readonly runId: string;
  readonly wakes: Set<(version: number) => void>;
}

const keyOf = (ownerId: string, runId: string): string => `${ownerId} ${runId}`;

/** Wakes those who follow runs that have changed: one statement a second for all of them, none where there are none. */
export const createWatch = (database: Database) => {
  const wakes = new Map<string, Watched>();
  let timer: NodeJS.Timeout | undefined;
  let isReading = false;

  const poll = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    try {
      const asked = [...wakes.values()];
      const values = [asked.map(({ ownerId }) => ownerId), asked.map(({ runId }) => runId)];
      const rows = await database.urgent(VERSIONS, values);
      for (const { owner_id: ownerId, id, version } of rows)
        for (const wake of wakes.get(keyOf(ownerId, id))?.wakes ?? []) wake(version);
    } catch {
      // The database is away: whoever follows waits.
    } finally {
      isReading = false;
    }
  };

  return (ownerId: string, runId: string, wake: (version: number) => void): (() => void) => {
    const key = keyOf(ownerId, runId);
    const watched = wakes.get(key) ?? { ownerId, runId, wakes: new Set() };
    watched.wakes.add(wake);
    wakes.set(key, watched);
    timer ??= setInterval(() => void poll(), POLL_MS).unref();
    return () => {
      if (!watched.wakes.delete(wake)) return;
      if (watched.wakes.size === 0) wakes.delete(key);
      if (wakes.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  };
};
