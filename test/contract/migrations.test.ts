import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/storage/database.ts';
import {
  isMigrated,
  MIGRATIONS_FOLDER,
  migrate,
  migrationList,
  readMigrations,
} from '../../src/storage/migrations.ts';
import { openInMemory } from '../../src/storage/pglite.ts';
import { openSchemaEngine } from '../../src/storage/schemaEngine.ts';
import { startChild } from '../support/child.ts';
import { createTestDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';

const engines: Record<string, () => Promise<{ database: Database; end: () => Promise<void> }>> = {
  Postgres: async () => {
    const { database, drop } = await createTestDatabase({ migrated: false });
    return { database, end: drop };
  },
  PGlite: async () => {
    const database = await openInMemory();
    return { database, end: () => database.close() };
  },
};

const names = async (): Promise<string[]> => (await readMigrations()).map(({ name }) => name);

/** The package's migrations and these behind them. */
const withMigrations = async (folder: string, added: Readonly<Record<string, string>>): Promise<string> => {
  await cp(MIGRATIONS_FOLDER, folder, { recursive: true });
  for (const [name, sql] of Object.entries(added)) {
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, 'migration.sql'), sql);
  }
  return folder;
};

describe.each(Object.entries(engines))('on %s', (_name, open) => {
  let database: Database;
  let end: () => Promise<void>;
  beforeAll(async () => {
    ({ database, end } = await open());
  });
  afterAll(() => end());

  test('all are applied once, in the way that "prisma migrate deploy" would find right', async () => {
    expect(await isMigrated(database).catch(() => false)).toBe(false);
    expect(await migrate(database)).toEqual(await names());
    expect(await migrate(database)).toEqual([]);
    expect(await isMigrated(database)).toBe(true);
    const session = await database.openMigrationSession();
    const engine = await openSchemaEngine(session.adapter);
    const filters = { externalTables: [], externalEnums: [] };
    const migrationsList = await migrationList();
    expect(
      await engine.diagnoseMigrationHistory({ migrationsList, optInToShadowDatabase: false, filters }),
    ).toMatchObject({
      editedMigrationNames: [],
      failedMigrationNames: [],
      hasMigrationsTable: true,
      history: null,
    });
    expect(await engine.applyMigrations({ migrationsList, filters })).toEqual({ appliedMigrationNames: [] });
    engine.free();
    await session.close();
  });

  test('function bodies with semicolons and quotes go through', async () => {
    await using folder = await temporaryFolder();
    const sql = `CREATE FUNCTION double(n int) RETURNS int LANGUAGE plpgsql AS $body$
      DECLARE word text := 'a;b';
      BEGIN
        -- a comment; with a semicolon
        IF word = $q$a;b$q$ THEN RETURN n * 2; END IF;
        RETURN 0;
      END $body$;
      CREATE VIEW doubled AS SELECT double(21) AS answer;`;
    const place = await withMigrations(join(folder.path, 'm'), { '29990101000000_functions': sql });
    expect(await migrate(database, place)).toEqual(['29990101000000_functions']);
    expect(await database.query({ name: 'doubled', text: 'SELECT answer FROM doubled' }, [])).toEqual([
      { answer: 42 },
    ]);
  });

  test('a database that is ahead, a changed migration and a failed one stop the start with a reason', async () => {
    await expect(migrate(database)).rejects.toThrow(
      '29990101000000_functions, which this version does not know',
    );
    await using folder = await temporaryFolder();
    const changed = await withMigrations(join(folder.path, 'changed'), {
      '29990101000000_functions': 'SELECT 1;',
    });
    await expect(migrate(database, changed)).rejects.toThrow(
      /^Migration 29990101000000_functions was changed after it was applied .* begin with an empty one\.$/,
    );
  });

  test('a migration that fails is reported by name, and again at the next start', async () => {
    const other = await open();
    await using folder = await temporaryFolder();
    const broken = await withMigrations(join(folder.path, 'broken'), {
      '29990101000000_broken': 'SELECT nonsense;',
    });
    await expect(migrate(other.database, broken)).rejects.toThrow('29990101000000_broken');
    await expect(migrate(other.database, broken)).rejects.toThrow('29990101000000_broken failed before');
    await other.end();
  });
});

test('five servers that start at once on one database: one migrates, all go on', async () => {
  await using store = await createTestDatabase({ migrated: false });
  const servers = Array.from({ length: 5 }, () => startChild('migrate', [store.url]));
  const said = await Promise.all(servers.map((server) => server.line()));
  const applied = said.map((line) => JSON.parse(line) as string[]);
  expect(applied.filter((list) => list.length > 0)).toEqual([await names()]);
  expect(await Promise.all(servers.map((server) => server.ended))).toEqual([0, 0, 0, 0, 0]);
});
