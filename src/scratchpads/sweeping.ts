import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { Logger } from '../shared/log.ts';
import { type Database, statement } from '../storage/database.ts';

/** Keys of one scan step, and the rest between two. */
const STEP = 200;
const REST_MS = 20;
const FIRST_MS = 10 * 60_000;
const EVERY_MS = 60 * 60_000;

/** What a pad's state is called; its tombstone goes by itself, and keys of any other shape are not ours to judge. */
const STATE_KEY = /^scratchpad:user_[0-9a-z]{26}:\{(sp_[0-9a-z]{26})\}:(?:content|entries|meta|idem|import)$/;

/** Says whose Redis this is: the first database that swept in it. */
const HOME_KEY = 'scratchpad:home';

const HOME = statement<{ id: string }>(
  'scratchpad_home',
  'SELECT id FROM _prisma_migrations ORDER BY started_at, id LIMIT 1',
);
const PRESENT = statement<{ id: string }>(
  'scratchpads_present',
  'SELECT s.id FROM scratchpads s WHERE s.id = ANY ($1::text[])',
);

export interface Sweeping {
  /** Looks through all of Redis once. Answers the keys it removed; null where another database's pads are in there. */
  sweep(): Promise<readonly string[] | null>;
  close(): Promise<void>;
}

/**
 * Reports and removes state whose pad does not exist, which nothing should leave behind: a database that was restored from
 * an older copy does. In small steps, now and then. Where Redis is shared with another database nothing is
 * removed, since that one's pads are not known here.
 */
export const createSweeping = ({
  database,
  redis,
  log,
  firstMs = FIRST_MS + Math.random() * FIRST_MS,
  everyMs = EVERY_MS,
}: {
  database: Database;
  redis: Redis | Cluster;
  log: Logger;
  firstMs?: number;
  everyMs?: number;
}): Sweeping => {
  const closing = new AbortController();

  const isHome = async (): Promise<boolean> => {
    const id = (await database.query(HOME, []))[0]?.id ?? '';
    await redis.set(HOME_KEY, id, 'NX');
    return (await redis.get(HOME_KEY)) === id;
  };

  const orphansAmong = async (keys: readonly string[]): Promise<string[]> => {
    const padOf = new Map(keys.flatMap((key) => (STATE_KEY.test(key) ? [[key, padIn(key)] as const] : [])));
    if (padOf.size === 0) return [];
    const present = await database.query(PRESENT, [[...new Set(padOf.values())]]);
    const ids = new Set(present.map(({ id }) => id));
    return [...padOf].flatMap(([key, id]) => (ids.has(id) ? [] : [key]));
  };

  const sweepNode = async (node: Redis): Promise<string[]> => {
    const removed: string[] = [];
    let cursor = '0';
    do {
      const [next, keys] = await node.scan(cursor, 'MATCH', 'scratchpad:*', 'COUNT', STEP);
      cursor = next;
      for (const key of await orphansAmong(keys)) if ((await redis.unlink(key)) > 0) removed.push(key);
      if (cursor !== '0') await delay(REST_MS, undefined, { signal: closing.signal, ref: false });
    } while (cursor !== '0');
    return removed;
  };

  const sweep = async (): Promise<string[] | null> => {
    if (!(await isHome())) {
      log.warn(
        {},
        'This Redis holds the scratchpads of another database too: orphaned state is not removed.',
      );
      return null;
    }
    const removed: string[] = [];
    for (const node of redis instanceof Cluster ? redis.nodes('master') : [redis])
      removed.push(...(await sweepNode(node)));
    if (removed.length > 0)
      log.warn(
        { count: removed.length, keys: removed.slice(0, 20) },
        'State of scratchpads that do not exist was found and removed.',
      );
    return removed;
  };

  const run = async (): Promise<void> => {
    const { signal } = closing;
    for (let wait = firstMs; !signal.aborted; wait = everyMs) {
      await delay(wait, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await sweep().catch((error: unknown) => {
        if (!signal.aborted) log.warn({ err: error }, 'Orphaned state could not be looked for.');
      });
    }
  };
  const running = run();

  return {
    sweep,
    async close() {
      closing.abort();
      await running;
    },
  };
};

const padIn = (key: string): string => STATE_KEY.exec(key)?.[1] ?? '';
