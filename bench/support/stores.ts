import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { migrate } from '../../src/storage/migrations.ts';
import { openPostgres } from '../../src/storage/postgres.ts';
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';

export interface Stores extends AsyncDisposable {
  readonly databaseUrl: string;
  readonly redis: RedisServer;
  /** Past the product, for seeding and for what the database counts. */
  readonly client: pg.Client;
  /** What the database has written to its log so far. */
  log(): Promise<string>;
  /** The same line by line: it may be larger than any text. */
  logLines(): AsyncIterable<string>;
}

interface StoresOptions {
  /** Without it commits are not written through, and what is compared is processor time alone. */
  readonly durable?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
}

/** A migrated database and a Redis of this run's own. */
export const startStores = async ({ durable = true, settings = {} }: StoresOptions = {}): Promise<Stores> => {
  const [postgres, redis] = await Promise.all([
    startPostgres({
      durable,
      settings: { shared_buffers: '1GB', max_wal_size: '8GB', checkpoint_timeout: '30min', ...settings },
    }),
    startRedis({ settings: { appendonly: 'no' } }),
  ]);
  const client = await prepare(postgres);
  const logFile = join(dirname(postgres.socketFile), 'log');
  return {
    databaseUrl: postgres.url,
    redis,
    client,
    log: () => readFile(logFile, 'utf8'),
    logLines: () => createInterface({ input: createReadStream(logFile) }),
    async [Symbol.asyncDispose]() {
      await client.end();
      await Promise.all([postgres.stop(), redis.stop()]);
    },
  };
};

const prepare = async ({ url }: PostgresServer): Promise<pg.Client> => {
  const database = await openPostgres(url, { poolSize: 1 });
  await migrate(database);
  await database.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
};

/**
 * Statements that were run in the database since it began: each is a transaction of its own, or one of several in one
 * that Prisma makes. A session that rests reports only after ten seconds, so that long goes before each reading.
 */
export const transactions = async ({ client }: Stores): Promise<number> => {
  await new Promise((resolve) => setTimeout(resolve, 11_000));
  await client.query('SELECT pg_stat_clear_snapshot()');
  const { rows } = await client.query<{ count: string }>(
    'SELECT xact_commit + xact_rollback AS count FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(rows[0]?.count ?? 0);
};
