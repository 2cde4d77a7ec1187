import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MigrationList } from '@prisma/schema-engine-wasm';
import { sha256 } from '../shared/canonical.ts';
import { log } from '../shared/log.ts';
import type { Database, MigrationSession } from './database.ts';
import { openSchemaEngine } from './schemaEngine.ts';

export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** The package's `prisma/migrations`, beside `src` and `dist` alike. */
export const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../prisma/migrations', import.meta.url));

/** The number that Prisma's own `migrate` takes its lock by: a deploy and a starting server wait for each other. */
const LOCK = 72_707_369;

const NO_FILTER = { externalTables: [], externalEnums: [] };

/**
 * Brings the database up to the migrations in `folder`, in the way of `prisma migrate deploy`: the same engine, the
 * same records in `_prisma_migrations`. Any number of processes may call it at once; one applies, the others wait.
 * Throws when a migration failed before, or when the database has been migrated by a newer or another version.
 * Returns the names of the migrations that this call applied.
 */
export const migrate = async (database: Database, folder = MIGRATIONS_FOLDER): Promise<string[]> => {
  const migrations = await readMigrations(folder);
  const session = await database.openMigrationSession();
  try {
    if (await isUpToDate(session, migrations)) return [];
    await session.query(`SELECT pg_advisory_lock(${LOCK})`);
    try {
      await refuseStrangers(session, migrations);
      if (await isUpToDate(session, migrations)) return [];
      return await apply(session, folder, migrations);
    } finally {
      await session.query(`SELECT pg_advisory_unlock(${LOCK})`);
    }
  } finally {
    await session.close();
  }
};

/** Whether all migrations are applied; reads only. */
export const isMigrated = async (database: Database, folder = MIGRATIONS_FOLDER): Promise<boolean> => {
  const migrations = await readMigrations(folder);
  const rows = await database.query<Applied>({ name: 'migrations_applied', text: APPLIED }, []);
  return pending(migrations, rows).length === 0;
};

export const readMigrations = async (folder = MIGRATIONS_FOLDER): Promise<Migration[]> => {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names
      .sort()
      .map(async (name) => ({ name, sql: await readFile(join(folder, name, 'migration.sql'), 'utf8') })),
  );
};

/** The migrations as Prisma's engine takes them. */
export const migrationList = async (
  folder = MIGRATIONS_FOLDER,
  migrations?: readonly Migration[],
): Promise<MigrationList> => ({
  baseDir: folder,
  lockfile: { path: 'migration_lock.toml', content: 'provider = "postgresql"\n' },
  shadowDbInitScript: '',
  migrationDirectories: (migrations ?? (await readMigrations(folder))).map(({ name, sql }) => ({
    path: name,
    migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: sql } },
  })),
});

interface Applied {
  readonly migration_name: string;
  readonly checksum: string;
  readonly finished: boolean;
}

const APPLIED = `SELECT migration_name, checksum, finished_at IS NOT NULL AS finished
  FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY migration_name`;

/**
 * One look, so that a start with nothing to do neither waits nor loads the engine. A migration that is under way
 * elsewhere looks like one that failed: only a look under the lock can tell, so it alone refuses.
 */
const isUpToDate = async (session: MigrationSession, migrations: readonly Migration[]): Promise<boolean> => {
  const applied = await readApplied(session);
  return strangeness(applied, migrations) === undefined && pending(migrations, applied).length === 0;
};

const refuseStrangers = async (
  session: MigrationSession,
  migrations: readonly Migration[],
): Promise<void> => {
  const reason = strangeness(await readApplied(session), migrations);
  if (reason !== undefined) throw new Error(reason);
};

const readApplied = async (session: MigrationSession): Promise<readonly Applied[]> => {
  const [table] = await session.query<{ present: boolean }>(
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present`,
  );
  return table?.present === true ? session.query<Applied>(APPLIED) : [];
};

const pending = (migrations: readonly Migration[], applied: readonly Applied[]): readonly Migration[] => {
  const done = new Set(applied.filter((row) => row.finished).map((row) => row.migration_name));
  return migrations.filter(({ name }) => !done.has(name));
};

/** Why this database cannot be brought up to date by this version; undefined where it can. */
const strangeness = (applied: readonly Applied[], migrations: readonly Migration[]): string | undefined => {
  const known = new Map(migrations.map(({ name, sql }) => [name, sha256(sql)]));
  for (const { migration_name: name, checksum, finished } of applied) {
    if (!finished) return `Migration ${name} failed before. See "prisma migrate resolve" for how to go on.`;
    const expected = known.get(name);
    if (expected === undefined)
      return `The database has the migration ${name}, which this version does not know. Run a newer version.`;
    if (expected !== checksum)
      return `Migration ${name} was changed after it was applied to this database. Run the version that made it, or begin with an empty one.`;
  }
  return undefined;
};

/**
 * All of them in one transaction, so that a process which is killed in the middle leaves nothing half done and no
 * record of a failure. Where one fails it is done again in the engine's own way, which records what failed.
 */
const apply = async (
  session: MigrationSession,
  folder: string,
  migrations: readonly Migration[],
): Promise<string[]> => {
  const list = await migrationList(folder, migrations);
  const engine = await openSchemaEngine(session.adapter);
  const run = async (): Promise<string[]> =>
    (await engine.applyMigrations({ migrationsList: list, filters: NO_FILTER })).appliedMigrationNames;
  try {
    const applied = (await inTransaction(session, run)) ?? (await run());
    if (applied.length > 0) log.info({ migrations: applied }, 'Migrations applied.');
    return applied;
  } finally {
    engine.free();
  }
};

/** Null where it failed and was rolled back. */
const inTransaction = async <Result>(
  session: MigrationSession,
  work: () => Promise<Result>,
): Promise<Result | null> => {
  await session.query('BEGIN');
  try {
    const result = await work();
    await session.query('COMMIT');
    return result;
  } catch {
    await session.query('ROLLBACK');
    return null;
  }
};
