import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** A redis-server of this test alone, to be killed, stopped and started at will. */
export interface RedisServer {
  connect(): Redis;
  kill9(): Promise<void>;
  start(): Promise<void>;
  /** Stops answering without closing anything. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

export const startRedisServer = async (): Promise<RedisServer> => {
  const folder = await mkdtemp(join(tmpdir(), 'live-redis-'));
  const path = join(folder, 's');
  const connections = new Set<Redis>();
  let child: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const started = spawn('redis-server', [
      '--port',
      '0',
      '--unixsocket',
      path,
      '--save',
      '',
      '--dir',
      folder,
    ]);
    child = started;
    for await (const line of started.stdout) if (String(line).includes('ready to accept connections')) break;
    started.stdout.resume();
  };
  const kill9 = async (): Promise<void> => {
    if (child === undefined) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    child = undefined;
  };

  await start();
  return {
    connect() {
      const redis = new Redis({
        path,
        retryStrategy: () => 50,
        maxRetriesPerRequest: 0,
        disconnectTimeout: 100,
      });
      redis.on('error', () => undefined);
      connections.add(redis);
      return redis;
    },
    kill9,
    start,
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    async stop() {
      for (const redis of connections) redis.disconnect();
      await kill9();
      await rm(folder, { recursive: true, force: true });
    },
  };
};
