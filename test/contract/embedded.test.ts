import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FolderInUse } from '../../src/storage/folderLock.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openEmbedded } from '../../src/storage/pglite.ts';
import { type Child, startChild } from '../support/child.ts';
import { temporaryFolder } from '../support/folder.ts';

/** How many files and folders are in it; 0 where there is none. */
const filesIn = async (folder: string): Promise<number> => {
  try {
    return (await readdir(folder, { recursive: true })).length;
  } catch {
    return 0;
  }
};

/** A signal that only the file system gives: asked for as often as can be, while the child lives. */
const sign = async (child: Child, isGiven: () => Promise<boolean>): Promise<void> => {
  let isOver = false;
  void child.ended.then(() => {
    isOver = true;
  });
  while (!(await isGiven())) {
    if (isOver) throw new Error(`The child ended: ${child.complaints}`);
    await delay(1);
  }
};

test('killed at any moment of its first start or under writes, it opens again with all that was acknowledged', async () => {
  await using folder = await temporaryFolder();
  const place = join(folder.path, 'postgres');
  /** The folder beside its place in which it is made, and where it is when it is complete. */
  const beside = async () => (await readdir(folder.path)).find((name) => name.startsWith('postgres.new-'));
  const besideHas = (least: number) => async () => {
    const name = await beside();
    return name !== undefined && (await filesIn(join(folder.path, name))) >= least;
  };
  const isMade = async () => (await filesIn(place)) > 0;
  const written: string[] = [];
  const moments: Record<string, (child: Child) => Promise<void>> = {
    'before anything is there': () => Promise.resolve(),
    'its folder was made': (child) => sign(child, async () => (await beside()) !== undefined),
    'its first files were written': (child) => sign(child, besideHas(10)),
    'half its files were written': (child) => sign(child, besideHas(500)),
    'it came to its place': (child) => sign(child, isMade),
    'it is migrated': async (child) => {
      expect(await child.line()).toBe('made');
      const before = await filesIn(place);
      await sign(child, async () => (await filesIn(place)) > before + 20);
    },
    'it is written to': async (child) => {
      expect(await child.line()).toBe('made');
      expect(await child.line()).toBe('open');
      for (let rows = 0; rows < 50; rows += 1) written.push(await child.line());
    },
  };
  for (const [moment, reached] of Object.entries(moments)) {
    await using child = startChild('embedded', [place]);
    expect(await child.line()).toBe('starts');
    await reached(child);
    child.kill('SIGKILL');
    expect(await child.ended, moment).toBe('SIGKILL');
  }
  const database = await openEmbedded(place);
  await migrate(database);
  const rows = await database.query<{ id: string }>({ name: 'all', text: 'SELECT id FROM users' }, []);
  expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining(written));
  expect(await beside()).toBeUndefined();
  await expect(openEmbedded(place)).rejects.toBeInstanceOf(FolderInUse);
  await database.close();
}, 240_000);
