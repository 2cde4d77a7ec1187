import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FolderInUse } from '../../src/storage/folderLock.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openEmbedded } from '../../src/storage/pglite.ts';
import { startChild } from '../support/child.ts';
import { temporaryFolder } from '../support/folder.ts';

test('killed at any moment of its first start or under writes, it opens again with all that was acknowledged', async () => {
  await using folder = await temporaryFolder();
  const place = join(folder.path, 'postgres');
  const written: string[] = [];
  // The first kills fall into the making of the database, the last one after it was opened.
  for (const wait of [300, 1_500, 'rows'] as const) {
    await using child = startChild('embedded', [place]);
    await child.line();
    if (typeof wait === 'number') await delay(wait);
    else {
      await child.line();
      for (let rows = 0; rows < 50; rows += 1) written.push(await child.line());
    }
    child.kill('SIGKILL');
    await child.ended;
  }
  const database = await openEmbedded(place);
  await migrate(database);
  const rows = await database.query<{ id: string }>({ name: 'all', text: 'SELECT id FROM users' }, []);
  expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining(written));
  await expect(openEmbedded(place)).rejects.toBeInstanceOf(FolderInUse);
  await database.close();
});
