import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { createRedisBus } from '../../src/live/redisBus.ts';
import { log } from '../../src/shared/log.ts';
import { openRedis, type RedisConnections } from '../../src/storage/redis.ts';
import { type RedisFleet, startCluster, startSentinels } from '../support/redisFleet.ts';
import { startTcpProxy } from '../support/tcpProxy.ts';
import { until } from '../support/until.ts';

/** What is published over one process's connections is heard over another's. */
const isHeard = async (from: RedisConnections, to: RedisConnections): Promise<void> => {
  const heard = new Set<string>();
  const publishing = createRedisBus({ ...from, log });
  const listening = createRedisBus({ ...to, log });
  listening.subscribe('wake', (message) => heard.add(message));
  let attempt = 0;
  await expect
    .poll(
      async () => {
        attempt += 1;
        await publishing.publish('wake', `call ${attempt}`);
        return heard.size;
      },
      { timeout: 20_000 },
    )
    .toBeGreaterThan(0);
  listening.close();
  publishing.close();
};

const twoProcesses = async (fleet: RedisFleet): Promise<[RedisConnections, RedisConnections]> =>
  Promise.all([openRedis(fleet.url), openRedis(fleet.url)]);

test('a Cluster by its URL: commands on every slot, wake-ups across nodes, also when one has died', async () => {
  await using fleet = await startCluster();
  const [one, other] = await twoProcesses(fleet);
  await one.ping();
  for (let key = 0; key < 30; key += 1) await one.commands.set(`key-${key}`, String(key));
  expect(await other.commands.get('key-7')).toBe('7');
  await isHeard(one, other);
  await fleet.killPrimary();
  await isHeard(one, other);
  await Promise.all([one.close(), other.close()]);
});

test('a primary behind sentinels by its URL: the next one is found after it has died', async () => {
  await using fleet = await startSentinels();
  const [one, other] = await twoProcesses(fleet);
  await one.ping();
  await isHeard(one, other);
  await fleet.killPrimary();
  await expect
    .poll(() => one.commands.set('after', 'yes').catch((error: Error) => error.message), { timeout: 30_000 })
    .toBe('OK');
  await isHeard(one, other);
  await Promise.all([one.close(), other.close()]);
});

test('a fail-over that is told of while the next primary is asked for leaves no link behind', async () => {
  await using fleet = await startSentinels();
  const ports = [...fleet.url.matchAll(/:(\d+)/g)].map(([, port]) => Number(port));
  const proxies = await Promise.all(ports.map((port) => startTcpProxy(() => ({ port, host: '127.0.0.1' }))));
  const asking = new Redis({ port: ports[0] ?? 0, host: '127.0.0.1' });
  const primary = async (): Promise<string> =>
    String(await asking.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main'));
  const links = await openRedis(
    `redis+sentinel://${proxies.map(({ port }) => `127.0.0.1:${port}`).join(',')}/main`,
  );
  try {
    await links.ping();
    // Both links listen for a fail-over.
    await until(async () => {
      const clients = String(await asking.call('CLIENT', 'LIST'));
      return clients.split('\n').filter((client) => / sub=1 /.test(client)).length >= 2;
    });
    const former = await primary();
    const releases = proxies.map(({ hold }) => hold());
    await fleet.killPrimary();
    await expect.poll(primary, { timeout: 30_000 }).not.toBe(former);
    for (const release of releases) release();
    await expect
      .poll(
        () =>
          links.ping().then(
            () => 'answers',
            (error: Error) => error.message,
          ),
        { timeout: 20_000 },
      )
      .toBe('answers');
  } finally {
    asking.disconnect();
    await links.close();
    for (const proxy of proxies) await proxy[Symbol.asyncDispose]();
  }
});
