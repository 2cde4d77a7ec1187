import { join } from 'node:path';
import { log } from '../shared/log.ts';
import type { Database } from './database.ts';
import { isMigrated, migrate } from './migrations.ts';
import { openEmbedded } from './pglite.ts';
import { openPostgres } from './postgres.ts';
import { type PrivateRedis, startPrivateRedis } from './privateRedis.ts';
import { openRedis, type RedisConnections } from './redis.ts';

export interface StoreOptions {
  /** Null: embedded, under `dataDir`. */
  readonly databaseUrl: string | null;
  readonly databasePoolSize: number;
  /** Null: a private redis-server, under `dataDir`. */
  readonly redisUrl: string | null;
  readonly dataDir: string;
}

/** Both stores of one process, migrated and connected. */
export interface Stores {
  readonly database: Database;
  readonly redis: RedisConnections;
  /** Whether the database lives in this process. */
  readonly embedded: boolean;
  /** What each store is like now: `'ready'`, or in a few words what is wrong. Answers within 2 s. */
  readiness(): Promise<{ readonly database: string; readonly redis: string }>;
  /** Closes the connections, and ends a private Redis last. */
  close(): Promise<void>;
}

/**
 * Opens the stores; throws, with everything closed again, when one cannot be had or the database not migrated. When
 * `signal` is aborted meanwhile it throws at once: the private Redis is ended, the embedded database left as
 * it is, which does it no harm.
 */
export const openStores = async (options: StoreOptions, signal?: AbortSignal): Promise<Stores> => {
  const { databaseUrl, databasePoolSize, dataDir } = options;
  const own = options.redisUrl === null ? startPrivateRedis(join(dataDir, 'redis')) : undefined;
  const opening = {
    own,
    database:
      databaseUrl === null
        ? openEmbedded(join(dataDir, 'postgres'))
        : openPostgres(databaseUrl, { poolSize: databasePoolSize }),
    redis: own === undefined ? openRedis(options.redisUrl ?? '') : own.then(({ url }) => openRedis(url)),
  };
  /** The private Redis last. */
  const close = async (): Promise<void> => {
    for (const end of [
      opening.database.then((database) => database.close()),
      opening.redis.then((redis) => redis.close()),
    ])
      await end.catch(() => undefined);
    await opening.own?.then((redis) => redis.stop()).catch(() => undefined);
  };
  try {
    const ready = Promise.all([
      opening.database.then(async (opened) => {
        await migrate(opened);
        return opened;
      }),
      opening.redis,
    ]);
    const [database, redis] = await (signal === undefined ? ready : unlessAborted(ready, signal));
    if (own !== undefined) superviseRedis(await own, redis);
    return {
      database,
      redis,
      embedded: databaseUrl === null,
      readiness: createReadiness(database, redis),
      close,
    };
  } catch (error) {
    if (signal?.aborted === true) await opening.own?.then((redis) => redis.stop());
    else await close();
    throw error;
  }
};

const unlessAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });

/** A private Redis that was killed is started again: nobody else would. */
const superviseRedis = (own: PrivateRedis, redis: RedisConnections): void => {
  redis.subscriber.on('close', () => {
    own
      .ensureRunning()
      .catch((error: unknown) => log.error({ err: error }, 'The private Redis does not start.'));
  });
};

const createReadiness = (database: Database, redis: RedisConnections): Stores['readiness'] => {
  let migrated = false;
  const databaseState = async (): Promise<string> => {
    try {
      // What is migrated stays so; after that one short statement tells.
      if (!migrated) migrated = await isMigrated(database);
      else await database.query({ name: 'ready', text: 'SELECT 1' }, []);
      return migrated ? 'ready' : 'has migrations that are not applied';
    } catch {
      return 'does not answer';
    }
  };
  const redisState = (): Promise<string> =>
    redis.ping().then(
      () => 'ready',
      () => 'does not answer',
    );
  return async () => {
    const [first, second] = await Promise.all([databaseState(), redisState()]);
    return { database: first, redis: second };
  };
};
