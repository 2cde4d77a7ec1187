import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Bus } from '../../../src/live/bus.ts';
import { createHub, type Hub } from '../../../src/live/hub.ts';
import { createRedisBus } from '../../../src/live/redisBus.ts';
import { setLogLevel } from '../../../src/shared/log.ts';
import { openRedis, type RedisConnections } from '../../../src/storage/redis.ts';
import { type RedisServer, startRedis } from '../../support/redis.ts';
import { type Entry, PlainLogs, withItem, withoutItem } from './plainLogs.ts';
import { type Reader, startReader } from './reader.ts';
import { ready } from './ready.ts';

const quiet = { info: () => undefined, warn: () => undefined };
setLogLevel('silent');
const NEVER = 3_600_000;

let server: RedisServer;
let redis: RedisConnections;
let bus: Bus;
let hub: Hub | undefined;
let plain: PlainLogs;
let readers: Reader[];

beforeEach(async () => {
  server = await startRedis();
  redis = await openRedis(server.url);
  bus = createRedisBus({ ...redis, log: quiet });
  plain = new PlainLogs(randomUUID());
  plain.open('a');
  readers = [];
});
afterEach(async () => {
  for (const reader of readers) reader.abort();
  await Promise.all(readers.map(({ done }) => done));
  expect(hub?.counts).toEqual({ tails: 0, channels: 0, followers: 0 });
  hub?.close();
  bus.close();
  await redis.close();
  await server.stop();
});

const followers = (count: number, pollMs: number): Reader[] => {
  hub = createHub({ bus, log: quiet, pollMs });
  const logs = hub.logs(plain);
  readers = Array.from({ length: count }, () => startReader(logs, 'a', plain.entries('a').length));
  return readers;
};
const publish = (entry: Entry, how = withItem): Promise<boolean> =>
  bus.publish(plain.channel('a'), how(entry));
const everyone = async (count: number): Promise<void> => {
  await Promise.all(readers.map((reader) => reader.has(count)));
};
const expectAllOfIt = (): void => {
  for (const { received } of readers) expect(received).toEqual(plain.entries('a'));
};

/** Appends until told to stop, publishing as it can and waiting for nobody. */
const startWriting = () => {
  let isOver = false;
  const writing = (async () => {
    while (!isOver) {
      const entry = plain.append('a');
      void publish(entry, entry.position % 3 === 0 ? withoutItem : withItem);
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  return async (): Promise<void> => {
    isOver = true;
    await writing;
  };
};
const written = async (more: number): Promise<void> => {
  const target = plain.entries('a').length + more;
  while (plain.entries('a').length < target) await new Promise((resolve) => setImmediate(resolve));
};

describe('under load, followers stay and lose nothing when', () => {
  const underLoad = async (fault: () => Promise<void>): Promise<void> => {
    followers(20, 100);
    const stop = startWriting();
    await written(200);
    await fault();
    await written(200);
    await stop();
    await everyone(plain.entries('a').length);
    expectAllOfIt();
  };

  test('Redis is killed and started again', () =>
    underLoad(async () => {
      for (let round = 0; round < 3; round += 1) {
        await server.kill9();
        await written(300);
        await server.restart();
        await ready(redis.subscriber);
        await written(100);
      }
    }));

  test('Redis stands still for a while', () =>
    underLoad(async () => {
      server.pause();
      await written(2_000);
      server.resume();
    }));

  test('the connection that listens is cut again and again', () =>
    underLoad(async () => {
      for (let round = 0; round < 20; round += 1) {
        await redis.commands.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
        await written(50);
      }
    }));

  test('Redis never comes back', () =>
    underLoad(async () => {
      await server.kill9();
      await written(500);
    }));
});

describe('a reconnect', () => {
  test('makes followers read what was lost meanwhile, and hear what comes', async () => {
    followers(3, NEVER);
    await publish(plain.append('a'));
    await everyone(1);
    await server.kill9();
    for (let count = 0; count < 5; count += 1) expect(await publish(plain.append('a'))).toBe(false);
    await server.restart();
    await everyone(6);
    await ready(redis.commands);
    expect(await publish(plain.append('a'))).toBe(true);
    await everyone(7);
    expectAllOfIt();
  });

  test('looks once for all followed logs, however many', async () => {
    const keys = Array.from({ length: 2_500 }, (_, index) => `log ${index}`);
    for (const key of keys) plain.open(key);
    hub = createHub({ bus, log: quiet, pollMs: NEVER });
    const logs = hub.logs(plain);
    readers = keys.map((key) => startReader(logs, key, 0));
    for (const key of keys) await bus.publish(plain.channel(key), withItem(plain.append(key)));
    await everyone(1);
    await redis.subscriber.ping();
    expect(await redis.commands.pubsub('CHANNELS')).toHaveLength(keys.length);

    const before = { ...plain.asked };
    for (const key of keys) plain.append(key);
    await redis.commands.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await everyone(2);
    expect(plain.asked.heads - before.heads).toBeLessThanOrEqual(4);
    expect(plain.asked.reads - before.reads).toBe(keys.length);
  });

  test('comes within 5 s when the link hangs without being closed', async () => {
    followers(3, NEVER);
    await publish(plain.append('a'));
    await everyone(1);
    const lost = new Promise((resolve) => redis.subscriber.once('close', resolve));
    const since = performance.now();
    server.pause();
    await lost;
    expect(performance.now() - since).toBeLessThan(5_000);
    plain.append('a');
    server.resume();
    await everyone(2);
    expectAllOfIt();
  });

  test('does not listen again to what nobody follows any more', async () => {
    followers(1, NEVER);
    await publish(plain.append('a'));
    await everyone(1);
    await server.kill9();
    for (const reader of readers) reader.abort();
    await server.restart();
    await ready(redis.subscriber);
    await redis.subscriber.ping();
    await ready(redis.commands);
    expect(await redis.commands.pubsub('CHANNELS')).toEqual([]);
  });
});

test('following begins and goes on while Redis is away', async () => {
  await server.kill9();
  followers(5, 20);
  plain.append('a');
  await everyone(1);
  plain.append('a');
  await everyone(2);
  expectAllOfIt();
});

test('a poll is one statement for all followed logs, and none when nothing is followed', async () => {
  const keys = Array.from({ length: 1_000 }, (_, index) => `log ${index}`);
  for (const key of keys) plain.open(key);
  hub = createHub({ bus, log: quiet, pollMs: 20 });
  const logs = hub.logs(plain);
  readers = keys.map((key) => startReader(logs, key, 0));
  const polls = async (count: number): Promise<void> => {
    const target = plain.asked.heads + count;
    while (plain.asked.heads < target) await new Promise((resolve) => setImmediate(resolve));
  };
  await polls(5);
  expect(plain.asked.reads).toBe(0);
  const before = plain.asked.heads;
  for (const reader of readers) reader.abort();
  await Promise.all(readers.map(({ done }) => done));
  const other = createHub({ bus, log: quiet, pollMs: 20 });
  const witness = new PlainLogs(randomUUID());
  witness.open('w');
  const watching = startReader(other.logs(witness), 'w', 0);
  // Another hub's polls tell that time has passed.
  while (witness.asked.heads < 6) await new Promise((resolve) => setImmediate(resolve));
  expect(plain.asked.heads).toBeLessThanOrEqual(before + 1);
  watching.abort();
  await watching.done;
  other.close();
});
