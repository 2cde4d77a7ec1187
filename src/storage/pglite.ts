import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { PGlite, types } from '@electric-sql/pglite';
import { translated } from './conflict.ts';
import type { Database } from './database.ts';
import { type FolderLock, lockFolder } from './folderLock.ts';
import { pgliteAdapter } from './pgliteAdapter.ts';
import { openPrisma } from './prisma.ts';
import { rfc3339 } from './values.ts';

/**
 * The embedded database in `dataDir`, for this process alone: throws `FolderInUse` when another has it. A process
 * that is killed at any moment, also during the first start, leaves a folder that the next one opens.
 */
export const openEmbedded = async (dataDir: string): Promise<Database> => {
  const folder = resolve(dataDir);
  const lock = await lockFolder(`${folder}.lock`);
  try {
    await initialise(folder);
    return databaseOn(await open(folder), lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
};

/** A database in memory: for the shadow that migrations are compared on, and for tests. */
export const openInMemory = async (): Promise<Database> => databaseOn(await open('memory://'));

const open = (dataDir: string): Promise<PGlite> =>
  PGlite.create({
    dataDir,
    parsers: { [types.INT8]: (value) => value, [types.TIMESTAMPTZ]: rfc3339 },
  });

/** Made beside its place and renamed when complete: half a database is never found there. */
const initialise = async (folder: string): Promise<void> => {
  await removeHalfMade(folder);
  if (await exists(folder)) return;
  const beside = `${folder}.new-${randomBytes(4).toString('hex')}`;
  await mkdir(beside, { recursive: true });
  const fresh = await open(beside);
  await fresh.close();
  await rename(beside, folder);
};

const removeHalfMade = async (folder: string): Promise<void> => {
  const parent = dirname(folder);
  await mkdir(parent, { recursive: true });
  for (const name of await readdir(parent))
    if (name.startsWith(`${basename(folder)}.new-`))
      await rm(join(parent, name), { recursive: true, force: true });
};

const exists = async (path: string): Promise<boolean> => {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
};

const databaseOn = async (engine: PGlite, lock?: FolderLock): Promise<Database> => {
  await engine.exec("SET TimeZone = 'UTC'; SET DateStyle = 'ISO';");
  const adapter = pgliteAdapter(engine);
  const prisma = openPrisma(adapter);
  const query: Database['query'] = <Row>({ text }: { text: string }, values: readonly unknown[]) =>
    translated(async () => (await engine.query<Row & object>(text, [...values])).rows);
  return {
    prisma,
    query,
    // One engine, one connection: nothing here is beside it.
    urgent: query,
    script: (sql) => translated(async () => void (await engine.exec(sql))),
    openMigrationSession: () =>
      Promise.resolve({
        adapter,
        query: <Row>(text: string) => translated(async () => (await engine.query<Row & object>(text)).rows),
        close: () => Promise.resolve(),
      }),
    close: async () => {
      await prisma.$disconnect();
      await engine.close();
      await lock?.release();
    },
  };
};
