import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { build } from '../../scripts/setup.mjs';
import { migrate } from '../../src/storage/migrations.ts';
import { openPostgres } from '../../src/storage/postgres.ts';
import { startPostgres } from './postgres.ts';
import { startRedis } from './redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the private Postgres; `createTestDatabase` makes databases there. */
    postgresUrl: string;
    redisUrl: string;
  }
}

/** A migrated database that every test's own is copied from. */
export const TEMPLATE = 'threadpad_template';

/** Starts one Postgres and one Redis for the whole run; both end with it, however it ends. */
const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  // Server processes run what is built: also where Vitest was called by itself, that is what the sources say.
  await build();
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  await client.query(`CREATE DATABASE ${TEMPLATE}`);
  await client.end();
  const template = await openPostgres(postgres.urlOf(TEMPLATE), { poolSize: 1 });
  await migrate(template);
  await template.close();
  project.provide('postgresUrl', postgres.url);
  project.provide('redisUrl', redis.url);
  return async () => {
    await Promise.all([postgres.stop(), redis.stop()]);
  };
};

export default setup;
