import { spawn } from 'node:child_process';
import { mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import { log } from '../shared/log.ts';
import { type FolderLock, lockFolder } from './folderLock.ts';
import { requireRedisServer } from './installRedis.ts';
import { shortPath } from './shortPath.ts';

export interface PrivateRedis {
  /** As REDIS_URL takes it. */
  readonly url: string;
  /** Whether one that had outlived its server was found and taken over. */
  readonly adopted: boolean;
  /** Starts it again should it have ended; does nothing while it runs. */
  ensureRunning(): Promise<void>;
  /** Ends it, its data written to disk. Call it last. */
  stop(): Promise<void>;
}

const SOCKET = 'redis.sock';
const START_MS = 20_000;
const STOP_MS = 5_000;

/**
 * A redis-server of this server's own in `folder`: reached over a Unix socket there and no port, with an append-only
 * file. It is in a process group of its own, so that Ctrl-C does not take it from under the server; one
 * that outlived a server which was killed is adopted. The folder's lock sees to it that there are never two.
 */
export const startPrivateRedis = async (folder: string): Promise<PrivateRedis> => {
  await mkdir(folder, { recursive: true });
  const place = await realpath(folder);
  const lock = await lockFolder(place);
  const short = await shortPath(place, SOCKET);
  const socket = join(short.path, SOCKET);
  const letGo = async (): Promise<void> => {
    await short.dispose();
    await lock.release();
  };
  try {
    const adopted = await isOurs(socket, place);
    if (adopted) log.info({ folder: place }, 'The private Redis of an earlier run goes on.');
    else await launch(place, socket);
    return { url: `unix://${pathToFileURL(socket).pathname}`, adopted, ...keeper(place, socket, letGo) };
  } catch (error) {
    await letGo();
    throw error;
  }
};

const keeper = (
  place: string,
  socket: string,
  letGo: FolderLock['release'],
): Pick<PrivateRedis, 'ensureRunning' | 'stop'> => {
  let stopping = false;
  let launching: Promise<void> | undefined;

  const ensure = async (): Promise<void> => {
    if (stopping || (await isOurs(socket, place))) return;
    log.warn({ folder: place }, 'The private Redis has ended; starting it again.');
    await launch(place, socket);
  };

  return {
    ensureRunning: () => {
      launching ??= ensure().finally(() => {
        launching = undefined;
      });
      return launching;
    },
    stop: async () => {
      stopping = true;
      await launching?.catch(() => undefined);
      await shutDown(socket);
      await letGo();
    },
  };
};

const launch = async (place: string, socket: string): Promise<void> => {
  const program = await requireRedisServer();
  // Left by one that was killed; nobody answers there, and the lock is ours.
  await rm(join(place, SOCKET), { force: true });
  const child = spawn(
    program,
    [
      ['--port', '0'],
      ['--dir', place],
      // Relative to `dir`, so that the length of the folder's path does not matter.
      ['--unixsocket', SOCKET],
      ['--unixsocketperm', '600'],
      ['--appendonly', 'yes'],
      ['--appendfsync', 'everysec'],
      ['--save', ''],
      ['--logfile', 'redis.log'],
      ['--pidfile', ''],
      ['--maxmemory-policy', 'noeviction'],
    ].flat(),
    { cwd: place, detached: true, stdio: 'ignore' },
  );
  let ended: string | undefined;
  child.once('error', (error) => {
    ended = error.message;
  });
  child.once('exit', (code, signal) => {
    ended = `it ended with ${signal ?? `code ${code}`}`;
  });
  child.unref();
  const deadline = Date.now() + START_MS;
  while (!(await isOurs(socket, place))) {
    if (ended !== undefined || Date.now() > deadline)
      throw new Error(
        `The private Redis does not start (${ended ?? 'no answer'}); see ${join(place, 'redis.log')}.`,
      );
    await delay(20);
  }
};

/** Whether a redis-server with `place` as its folder answers there, with its data loaded. */
const isOurs = (socket: string, place: string): Promise<boolean> =>
  withConnection(socket, async (redis) => {
    const [, dir] = (await redis.config('GET', 'dir')) as string[];
    return dir === place;
  }).catch(() => false);

const shutDown = async (socket: string): Promise<void> => {
  try {
    const pid = await withConnection(socket, async (redis) => {
      const info = await redis.info('server');
      await redis.shutdown('NOSAVE').catch(() => undefined);
      return Number(/process_id:(\d+)/.exec(info)?.[1]);
    });
    const deadline = Date.now() + STOP_MS;
    while (isAlive(pid) && Date.now() < deadline) await delay(10);
  } catch {
    // It has ended before.
  }
};

const isAlive = (pid: number): boolean => {
  try {
    return Number.isInteger(pid) && process.kill(pid, 0);
  } catch {
    return false;
  }
};

const withConnection = async <T>(path: string, use: (redis: Redis) => Promise<T>): Promise<T> => {
  const redis = new Redis({
    path,
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: 1_000,
    commandTimeout: 5_000,
  });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return await use(redis);
  } finally {
    redis.disconnect();
  }
};
