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

/** Opens the stores; throws, with everything closed again, when the database cannot be had or migrated. */
export const openStores = async (options: StoreOptions): Promise<Stores> => {
  const { databaseUrl, databasePoolSize, redisUrl, dataDir } = options;
  const opened: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of opened.splice(0).reverse()) await end();
  };
  try {
    const own = redisUrl === null ? await startPrivateRedis(join(dataDir, 'redis')) : undefined;
    if (own !== undefined) opened.push(() => own.stop());
    const database =
      databaseUrl === null
        ? await openEmbedded(join(dataDir, 'postgres'))
        : await openPostgres(databaseUrl, { poolSize: databasePoolSize });
    opened.push(() => database.close());
    await migrate(database);
    const redis = await openRedis(redisUrl ?? own?.url ?? '');
    opened.push(() => redis.close());
    if (own !== undefined) superviseRedis(own, redis);
    return {
      database,
      redis,
      embedded: databaseUrl === null,
      readiness: createReadiness(database, redis),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
};

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
