import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { requireRedisServer } from '../../src/storage/installRedis.ts';
import { type Guarded, startGuarded } from './guarded.ts';
import { ownFolder } from './leftovers.ts';

/** A redis-server of the tests' own, on a Unix socket in a temporary folder. */
export interface RedisServer {
  /** `unix:///…`, as REDIS_URL takes it. */
  readonly url: string;
  readonly path: string;
  kill9(): Promise<void>;
  /** Its connections stay open and nothing answers; `resume` lets it go on. */
  pause(): void;
  resume(): void;
  /** After `kill9`: again on the same socket, with what its append-only file holds. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface RedisOptions {
  readonly settings?: Readonly<Record<string, string>>;
}

/** For tests that kill it: else, on a busy disk, what was acknowledged in the last two seconds may not be there afterwards. */
export const LOSES_NOTHING = { settings: { appendfsync: 'always' } } as const;

export const startRedis = async ({ settings = {} }: RedisOptions = {}): Promise<RedisServer> => {
  const folder = await ownFolder(tmpdir(), 'tp-redis-');
  const path = join(folder, 'redis.sock');
  const logFile = join(folder, 'log');
  const configured = { port: '0', unixsocket: path, dir: folder, save: '', appendonly: 'yes', ...settings };
  const args = Object.entries(configured).flatMap(([name, value]) => [`--${name}`, value]);

  const command = await requireRedisServer();
  let running: Guarded | undefined;
  const start = async (): Promise<void> => {
    running = await startGuarded({ command, args, folder, logFile, endsBy: 'KILL' });
    if (!(await answers(path, running.ended)))
      throw new Error(`redis-server does not start:\n${await readFile(logFile, 'utf8')}`);
  };
  await start();

  const signal = (name: NodeJS.Signals): void => {
    if (running !== undefined) process.kill(running.pid, name);
  };
  return {
    url: `unix://${path}`,
    path,
    kill9: async () => {
      await running?.end({ signal: 'SIGKILL', keepFolder: true });
      running = undefined;
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    restart: start,
    stop: async () => {
      await running?.end({ signal: 'SIGKILL', keepFolder: false });
      running = undefined;
      await rm(folder, { recursive: true, force: true });
    },
  };
};

const answers = async (path: string, ended: Promise<void>): Promise<boolean> => {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!over) {
    const client = new Redis({ path, lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.ping();
      return true;
    } catch {
      await delay(10);
    } finally {
      client.disconnect();
    }
  }
  return false;
};
