import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FolderInUse, lockFolder } from '../../src/storage/folderLock.ts';
import { startChild } from '../support/child.ts';
import { temporaryFolder } from '../support/folder.ts';

test('a second process is refused and told who holds the folder', async () => {
  await using folder = await temporaryFolder();
  await using holder = startChild('lock', [folder.path]);
  expect(await holder.line()).toBe('holds');
  await using second = startChild('lock', [folder.path]);
  expect(await second.line()).toMatch(
    new RegExp(`${folder.path} is in use by process ${holder.pid} on .+ since 20.+DATA_DIR`),
  );
  await expect(lockFolder(folder.path)).rejects.toBeInstanceOf(FolderInUse);
});

test('what a killed process held is taken over, what a stopped one holds is not', async () => {
  await using folder = await temporaryFolder();
  await using holder = startChild('lock', [folder.path]);
  await holder.line();
  holder.kill('SIGSTOP');
  await expect(lockFolder(folder.path)).rejects.toThrow(`process ${holder.pid}`);
  holder.kill('SIGKILL');
  await holder.ended;
  const lock = await lockFolder(folder.path);
  await lock.release();
  expect(await readdir(folder.path)).toEqual([]);
});

test('of many that come at once, over what a killed one left, exactly one gets the folder', async () => {
  await using folder = await temporaryFolder();
  for (let round = 0; round < 2; round += 1) {
    const contenders = Array.from({ length: 5 }, () => startChild('lock', [folder.path]));
    const said = await Promise.all(contenders.map((contender) => contender.line()));
    expect(said.filter((line) => line === 'holds')).toHaveLength(1);
    for (const contender of contenders) contender.kill();
    await Promise.all(contenders.map((contender) => contender.ended));
  }
});

test('a folder whose path is too long for a socket is locked all the same', async () => {
  await using folder = await temporaryFolder();
  const long = join(folder.path, 'x'.repeat(120));
  await mkdir(long);
  const lock = await lockFolder(long);
  await expect(lockFolder(long)).rejects.toBeInstanceOf(FolderInUse);
  await lock.release();
  await (await lockFolder(long)).release();
});
