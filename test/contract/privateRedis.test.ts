import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FolderInUse } from '../../src/storage/folderLock.ts';
import { startPrivateRedis } from '../../src/storage/privateRedis.ts';
import { openRedis } from '../../src/storage/redis.ts';
import { startChild } from '../support/child.ts';
import { temporaryFolder } from '../support/folder.ts';

/** The process of the redis-server behind a URL. */
const processOf = async (url: string): Promise<number> => {
  const redis = await openRedis(url);
  const info = await redis.commands.info('server');
  await redis.close();
  return Number(/process_id:(\d+)/.exec(info)?.[1]);
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('one that outlived its killed server is adopted with its data, and ends with an ordinary stop', async () => {
  await using folder = await temporaryFolder();
  await using first = startChild('privateRedis', [folder.path, 'first']);
  expect(await first.line()).toBe('started');
  await expect(startPrivateRedis(folder.path)).rejects.toBeInstanceOf(FolderInUse);
  first.kill('SIGKILL');
  await first.ended;

  await using second = startChild('privateRedis', [folder.path, 'second']);
  expect(await second.line()).toBe('adopted');
  const pid = await processOf(`unix://${join(folder.path, 'redis.sock')}`);
  second.kill('SIGTERM');
  expect(await second.ended).toBe(0);
  expect(isAlive(pid)).toBe(false);

  const third = await startPrivateRedis(folder.path);
  expect(third.adopted).toBe(false);
  const redis = await openRedis(third.url);
  expect(await redis.commands.lrange('written', 0, -1)).toEqual(['first', 'second']);
  await redis.close();
  await third.stop();
});

test('it listens on no port, and is in a process group of its own', async () => {
  await using folder = await temporaryFolder();
  const own = await startPrivateRedis(folder.path);
  const redis = await openRedis(own.url);
  expect(await redis.commands.config('GET', 'port')).toEqual(['port', '0']);
  expect(await redis.commands.config('GET', 'appendfsync')).toEqual(['appendfsync', 'everysec']);
  await redis.close();
  const pid = await processOf(own.url);
  // A signal to its group reaches it and not us: the group's number is its own.
  process.kill(-pid, 0);
  await own.stop();
});

test('one that was killed is started again on the same data', async () => {
  await using folder = await temporaryFolder();
  const own = await startPrivateRedis(folder.path);
  const redis = await openRedis(own.url);
  await redis.commands.config('SET', 'appendfsync', 'always');
  await redis.commands.set('kept', 'yes');
  process.kill(await processOf(own.url), 'SIGKILL');
  await expect
    .poll(async () => {
      await own.ensureRunning();
      return redis.commands.get('kept').catch(() => null);
    })
    .toBe('yes');
  await redis.close();
  await own.stop();
});

test('a folder whose path is too long for a socket does as well', async () => {
  await using folder = await temporaryFolder();
  const long = join(folder.path, 'x'.repeat(120));
  await mkdir(long);
  const own = await startPrivateRedis(long);
  const redis = await openRedis(own.url);
  await redis.ping();
  await redis.close();
  await own.stop();
});
