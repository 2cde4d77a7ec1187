import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MIGRATIONS_FOLDER, migrate, migrationList } from '../src/storage/migrations.ts';
import { openInMemory } from '../src/storage/pglite.ts';
import { openSchemaEngine } from '../src/storage/schemaEngine.ts';

// npm run migration -- NAME    writes the next migration: what schema.prisma says and the migrations do not yet.
// npm run migration:check      fails when there is such a difference.

const SCHEMA = 'prisma/schema.prisma';

/** The SQL that leads from the migrations to the schema; null where they agree. The shadow is a database in memory. */
const difference = async (): Promise<string | null> => {
  const schema = await readFile(SCHEMA, 'utf8');
  await mkdir(MIGRATIONS_FOLDER, { recursive: true });
  const shadow = await openInMemory();
  try {
    await migrate(shadow);
    const session = await shadow.openMigrationSession();
    const engine = await openSchemaEngine(session.adapter, schema);
    const { stdout, exitCode } = await engine.diff({
      from: { tag: 'schemaDatasource', files: [{ path: SCHEMA, content: schema }], configDir: 'prisma' },
      to: { tag: 'schemaDatamodel', files: [{ path: SCHEMA, content: schema }] },
      script: true,
      exitCode: true,
      filters: { externalTables: [], externalEnums: [] },
    });
    engine.free();
    return exitCode === 0 ? null : stdout;
  } finally {
    await shadow.close();
  }
};

const write = async (name: string, sql: string): Promise<string> => {
  const list = await migrationList();
  const now = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const last = list.migrationDirectories.at(-1)?.path.slice(0, 14) ?? '';
  const stamp = now > last ? now : String(Number(last) + 1);
  const folder = join(MIGRATIONS_FOLDER, `${stamp}_${name}`);
  await mkdir(folder);
  await writeFile(join(folder, 'migration.sql'), sql);
  await writeFile(join(MIGRATIONS_FOLDER, 'migration_lock.toml'), 'provider = "postgresql"\n');
  return folder;
};

const name = process.argv[2];
if (name === undefined || (name !== '--check' && !/^[a-z][a-z0-9_]{0,60}$/.test(name))) {
  console.error('Usage: npm run migration -- name_in_small_letters');
  process.exit(1);
}
const sql = await difference();
if (name === '--check') {
  if (sql !== null) {
    console.error(
      `prisma/schema.prisma and prisma/migrations differ; run "npm run migration -- NAME":\n${sql}`,
    );
    process.exit(1);
  }
  console.log('The migrations say what the schema says.');
} else if (sql === null) {
  console.log('Nothing to do: the migrations say what the schema says.');
} else {
  console.log(`Written: ${await write(name, sql)}`);
}
process.exit(0);
