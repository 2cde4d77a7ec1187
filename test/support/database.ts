import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import type { Database } from '../../src/storage/database.ts';
import { openPostgres, type PostgresOptions } from '../../src/storage/postgres.ts';
import { TEMPLATE } from './services.ts';

export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
  readonly database: Database;
  /** Closes and drops it. */
  drop(): Promise<void>;
}

/** A fresh, migrated database on the run's Postgres; `migrated: false` for an empty one. */
export const createTestDatabase = async (
  options: PostgresOptions & { readonly migrated?: boolean } = {},
): Promise<TestDatabase> => {
  const { migrated = true, ...poolOptions } = options;
  const name = `test_${randomBytes(6).toString('hex')}`;
  await administer(`CREATE DATABASE ${name} TEMPLATE ${migrated ? TEMPLATE : 'template0'}`);
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  const database = await openPostgres(url.href, poolOptions);
  const drop = async (): Promise<void> => {
    await database.close();
    await administer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  };
  return { url: url.href, database, drop, [Symbol.asyncDispose]: drop };
};

const administer = async (sql: string): Promise<void> => {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
};
