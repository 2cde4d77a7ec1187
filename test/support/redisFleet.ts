import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import { type Guarded, startGuarded } from './guarded.ts';

/** Several redis-servers on free loopback ports: a Cluster, or a primary with a replica and sentinels. */
export interface RedisFleet extends AsyncDisposable {
  readonly url: string;
  /** Kills the one that takes the writes (of a Cluster: the first primary). */
  killPrimary(): Promise<void>;
}

const command = async <T>(port: number, use: (redis: Redis) => Promise<T>): Promise<T> => {
  const redis = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: 200 });
  redis.on('error', () => undefined);
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
};

/** A port that is free together with the one 10,000 above it, which a Cluster's nodes use among themselves. */
const freePort = async (): Promise<number> => {
  for (;;) {
    const port = await listenOnce(0);
    if (port <= 55_000 && (await listenOnce(port + 10_000).catch(() => 0)) !== 0) return port;
  }
};

const listenOnce = (port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });

const startFleet = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tp-fleet-'));
  const running = new Map<number, Guarded>();
  const start = async (name: string, settings: readonly string[]): Promise<number> => {
    const port = await freePort();
    const config = join(folder, `${name}.conf`);
    const lines = [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, 'save ""', ...settings];
    await writeFile(config, `${lines.join('\n')}\n`);
    const isSentinel = settings.some((line) => line.startsWith('sentinel'));
    running.set(
      port,
      await startGuarded({
        command: 'redis-server',
        endsBy: 'KILL',
        args: [config, ...(isSentinel ? ['--sentinel'] : [])],
        // Each removes only what is its own.
        folder: config,
        logFile: join(folder, `${name}.log`),
      }),
    );
    await command(port, (redis) => redis.ping());
    return port;
  };
  return {
    start,
    kill: async (port: number): Promise<void> => {
      await running.get(port)?.end({ signal: 'SIGKILL', keepFolder: true });
      running.delete(port);
    },
    dispose: async (): Promise<void> => {
      await Promise.all(
        [...running.values()].map((one) => one.end({ signal: 'SIGKILL', keepFolder: false })),
      );
      await rm(folder, { recursive: true, force: true });
    },
  };
};

export const startCluster = async (): Promise<RedisFleet> => {
  const fleet = await startFleet();
  const names = ['a', 'b', 'c'];
  const ports = await Promise.all(
    names.map((name) =>
      fleet.start(name, [
        'cluster-enabled yes',
        `cluster-config-file nodes-${name}.conf`,
        'cluster-node-timeout 1000',
      ]),
    ),
  );
  const [first = 0] = ports;
  const share = Math.ceil(16_384 / ports.length);
  for (const [index, port] of ports.entries())
    await command(port, async (redis) => {
      const end = Math.min((index + 1) * share, 16_384) - 1;
      await redis.call('CLUSTER', 'ADDSLOTSRANGE', String(index * share), String(end));
      if (port !== first) await redis.call('CLUSTER', 'MEET', '127.0.0.1', String(first));
    });
  for (const port of ports)
    await expect
      .poll(() => command(port, (redis) => redis.cluster('INFO')), { timeout: 20_000 })
      .toContain('cluster_state:ok');
  return {
    url: `redis://${ports.map((port) => `127.0.0.1:${port}`).join(',')}`,
    killPrimary: () => fleet.kill(first),
    [Symbol.asyncDispose]: fleet.dispose,
  };
};

export const startSentinels = async (): Promise<RedisFleet> => {
  const fleet = await startFleet();
  const primary = await fleet.start('primary', []);
  await fleet.start('replica', [`replicaof 127.0.0.1 ${primary}`, 'repl-diskless-sync-delay 0']);
  const watch = [
    `sentinel monitor main 127.0.0.1 ${primary} 2`,
    'sentinel down-after-milliseconds main 500',
    'sentinel failover-timeout main 3000',
  ];
  const sentinels = await Promise.all(['x', 'y', 'z'].map((name) => fleet.start(`sentinel-${name}`, watch)));
  for (const port of sentinels)
    await expect
      .poll(() => command(port, (redis) => redis.call('SENTINEL', 'CKQUORUM', 'main').catch(String)), {
        timeout: 20_000,
      })
      .toContain('OK 3 usable Sentinels');
  await expect
    .poll(() => command(primary, (redis) => redis.info('replication')), { timeout: 20_000 })
    .toContain('state=online');
  return {
    url: `redis+sentinel://${sentinels.map((port) => `127.0.0.1:${port}`).join(',')}/main`,
    killPrimary: () => fleet.kill(primary),
    [Symbol.asyncDispose]: fleet.dispose,
  };
};
