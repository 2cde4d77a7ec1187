import { afterAll, beforeAll, expect, test } from 'vitest';
import { domainErrorOf } from '../../src/storage/conflict.ts';
import { openRedis, type RedisConnections } from '../../src/storage/redis.ts';
import { startProxy, type Proxy as TcpLine } from '../support/proxy.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

let server: RedisServer;
let wire: TcpLine;
let redis: RedisConnections;

beforeAll(async () => {
  server = await startRedis();
  wire = await startProxy(server.path);
  redis = await openRedis(`unix://${wire.path}`);
});
afterAll(async () => {
  await redis.close();
  await wire[Symbol.asyncDispose]();
  await server.stop();
});

const outcome = async (work: () => Promise<unknown>) => {
  const began = performance.now();
  const code = await work().then(
    () => 'OK',
    (error: unknown) => domainErrorOf(error)?.code ?? String(error),
  );
  return { code, ms: performance.now() - began };
};

const recovers = async (): Promise<void> => {
  await expect
    .poll(() => outcome(() => redis.ping()).then(({ code }) => code), { timeout: 10_000 })
    .toBe('OK');
};

test('a Redis that is killed fails commands at once, and is found again', async () => {
  await recovers();
  await server.kill9();
  for (const work of [() => redis.commands.set('a', 'b'), () => redis.ping()]) {
    const { code, ms } = await outcome(work);
    expect(code).toBe('UNAVAILABLE');
    expect(ms).toBeLessThan(2_000);
  }
  await server.restart();
  await recovers();
});

test('a Redis that is stopped is given up within 2 s, and used again when it goes on', async () => {
  server.pause();
  const { code, ms } = await outcome(() => redis.commands.set('a', 'b'));
  server.resume();
  expect(code).toBe('UNAVAILABLE');
  expect(ms).toBeLessThan(2_000);
  await recovers();
});

test('links that are half open are noticed within 5 s, also that of the subscriber, and replaced', async () => {
  const heard: string[] = [];
  redis.subscriber.on('message', (_channel, message) => heard.push(message));
  await redis.subscriber.subscribe('channel');
  await redis.commands.publish('channel', 'before');
  await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['before']);
  const noticed = [redis.subscriber, redis.commands].map(
    (link) => new Promise<number>((resolve) => link.once('close', () => resolve(performance.now()))),
  );
  const began = performance.now();
  wire.freeze();
  for (const at of await Promise.all(noticed)) expect(at - began).toBeLessThan(5_000);
  await recovers();
  // The driver subscribes again by itself here; the bus does so on its own account.
  await expect
    .poll(async () => {
      await redis.commands.publish('channel', 'after');
      return heard.includes('after');
    })
    .toBe(true);
});

test('it opens while Redis is away, and is connected once that is there', async () => {
  await server.kill9();
  const early = await openRedis(server.url);
  expect(await outcome(() => early.ping())).toMatchObject({ code: 'UNAVAILABLE' });
  await server.restart();
  await expect
    .poll(() => outcome(() => early.ping()).then(({ code }) => code), { timeout: 10_000 })
    .toBe('OK');
  await early.close();
});
