import { randomUUID } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Bus } from '../../../src/live/bus.ts';
import { createHub, type Hub } from '../../../src/live/hub.ts';
import type { Logs } from '../../../src/live/logs.ts';
import { createRedisBus } from '../../../src/live/redisBus.ts';
import { openRedis, type RedisConnections } from '../../../src/storage/redis.ts';
import { type RedisServer, startRedis } from '../../support/redis.ts';
import { type Entry, PlainLogs, withItem, withoutItem } from './plainLogs.ts';
import { type Reader, startReader } from './reader.ts';

const quiet = { info: () => undefined, warn: () => undefined };
const NEVER = 3_600_000;
const MEBIBYTE = 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const usedHeap = (): number => {
  collect();
  return process.memoryUsage().heapUsed;
};

let server: RedisServer;
let redis: RedisConnections;
let bus: Bus;
let hub: Hub;
let plain: PlainLogs;
let logs: Logs<Entry>;
let readers: Reader[];
let endOfTest: AbortController;

beforeAll(async () => {
  server = await startRedis();
  redis = await openRedis(server.url);
});
afterAll(async () => {
  await redis.close();
  await server.stop();
});

const open = (pollMs: number): void => {
  bus = createRedisBus({ ...redis, log: quiet });
  hub = createHub({ bus, log: quiet, pollMs });
  plain = new PlainLogs(randomUUID());
  plain.open('a');
  logs = hub.logs(plain);
  readers = [];
  endOfTest = new AbortController();
};
beforeEach(() => open(NEVER));
afterEach(async () => {
  endOfTest.abort();
  for (const reader of readers) reader.abort();
  await Promise.all(readers.map(({ done }) => done));
  expect(hub.counts).toEqual({ tails: 0, channels: 0, followers: 0 });
  hub.close();
  bus.close();
});

const follow = (after: number, key = 'a'): Reader => {
  const reader = startReader(logs, key, after);
  readers.push(reader);
  return reader;
};
const append = async (how: (entry: Entry) => string, text?: string): Promise<Entry> => {
  const entry = plain.append('a', text);
  await bus.publish(plain.channel('a'), how(entry));
  return entry;
};
const positions = (reader: Reader): number[] => reader.received.map(({ position }) => position);

/** Has the tail listen: once a follower has what was never announced, it has looked. Returns how to let go of it. */
const listening = async (): Promise<() => void> => {
  const steps = logs.follow('a', plain.append('a').position - 1, endOfTest.signal);
  await steps.next();
  return () => void steps.return?.();
};

describe('following a log', () => {
  test('hands over what is there and what comes, in order', async () => {
    for (let count = 0; count < 500; count += 1) plain.append('a');
    const old = follow(0);
    const late = follow(490);
    await old.has(500);
    await append(withItem);
    await append(withoutItem);
    await Promise.all([old.has(502), late.has(12)]);
    expect(old.received).toEqual(plain.entries('a'));
    expect(positions(late)).toEqual(
      plain
        .entries('a')
        .slice(490)
        .map(({ position }) => position),
    );
  });

  test('takes the next item from its publish without reading', async () => {
    await listening();
    const reader = follow(1);
    const before = plain.asked.reads;
    await append(withItem);
    await append(withItem);
    await reader.has(2);
    expect(plain.asked.reads).toBe(before);
  });

  test('reads a range once for 1,000 followers on one channel, and hands all the same objects', async () => {
    const many = Array.from({ length: 1_000 }, () => follow(0));
    await append(withoutItem);
    await Promise.all(many.map((reader) => reader.has(1)));
    for (let round = 2; round <= 20; round += 1) {
      await append(withoutItem);
      await Promise.all(many.map((reader) => reader.has(round)));
    }
    expect(hub.counts).toEqual({ tails: 1, channels: 1, followers: 1_000 });
    expect(new Set(plain.ranges).size).toBe(plain.ranges.length);
    expect(plain.asked.reads).toBeLessThanOrEqual(20);
    expect(plain.asked.heads).toBeLessThanOrEqual(2);
    for (const reader of many)
      for (const [index, entry] of reader.received.entries()) expect(entry).toBe(many[0]?.received[index]);
  });

  test('shares reads among 1,000 followers who come back at different positions, few at a time', async () => {
    while (plain.entries('a').length < 1_000) plain.append('a');
    plain.pace = () => redis.commands.ping().then(() => undefined);
    const many = Array.from({ length: 1_000 }, (_, index) => follow((index * 613) % 1_000));
    await Promise.all(many.map((reader) => reader.has(1_000 - reader.after)));
    for (const reader of many) expect(reader.received).toEqual(plain.entries('a').slice(reader.after));
    expect(plain.asked.atOnce).toBeLessThanOrEqual(8);
    expect(plain.asked.reads).toBeLessThan(100);
  });

  test('finds out by polling what was never published', async () => {
    hub.close();
    bus.close();
    open(20);
    const reader = follow(0);
    for (let count = 1; count <= 5; count += 1) {
      plain.append('a');
      await reader.has(count);
    }
    expect(positions(reader)).toEqual([1, 2, 3, 4, 5]);
  });

  test('ends with GONE when the log is deleted, also for one that is stalled', async () => {
    await listening();
    const reader = follow(0);
    const stalled = follow(0);
    stalled.stall();
    await reader.has(1);
    plain.delete('a');
    await bus.publish(plain.channel('a'), 'gone');
    await reader.done;
    expect(reader.ended).toBe('GONE');
    stalled.resume();
    await stalled.done;
    expect(stalled.ended).toBe('GONE');
  });

  test('believes storage, not a message, about what is gone', async () => {
    await listening();
    const reader = follow(1);
    await bus.publish(plain.channel('a'), 'gone');
    await bus.publish(plain.channel('a'), '?');
    await append(withItem);
    await reader.has(1);
    expect(reader.ended).toBeUndefined();
  });

  test('waits while storage fails, and goes on', async () => {
    await listening();
    const reader = follow(1);
    plain.isFailing = true;
    const [entry] = await Promise.all([append(withoutItem), append(withoutItem)]);
    while (plain.asked.failures < 3) await plain.read('nobody', 0, 1).catch(() => undefined);
    plain.isFailing = false;
    await reader.has(2);
    expect(reader.received[0]).toEqual(entry);
  });

  test('keeps a stalled follower from delaying others, and memory from growing with what it misses', async () => {
    const letGo = await listening();
    const stalled = follow(0);
    stalled.stall();
    const other = logs.follow('a', 0, endOfTest.signal);
    letGo();
    let last = 0;
    const write = async (count: number): Promise<void> => {
      const text = 'x'.repeat(1_000);
      const target = last + count;
      while (plain.entries('a').length < target) await append(withItem, text);
      while (last < target) {
        const { value } = await other.next();
        last += value?.item?.position === last + 1 ? 1 : Number.NaN;
      }
    };
    await write(10_000);
    const before = usedHeap();
    await write(10_000);
    expect(usedHeap() - before).toBeLessThan(4 * MEBIBYTE);
    expect(stalled.received.length).toBe(1);
    await other.return?.();
    stalled.resume();
    await stalled.has(20_000);
    expect(stalled.received).toEqual(plain.entries('a'));
  });
});

describe('leaving', () => {
  test('frees everything at once, whatever the follower is doing', async () => {
    plain.append('a');
    let answer: () => void = () => undefined;
    plain.pace = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const abort = new AbortController();
    const waiting = logs.follow('a', 0, abort.signal).next();
    abort.abort();
    expect(await waiting).toEqual({ value: undefined, done: true });
    expect(hub.counts).toEqual({ tails: 0, channels: 0, followers: 0 });
    answer();
    plain.pace = () => Promise.resolve();

    const other = logs.follow('a', 1, new AbortController().signal);
    const pulled = other.next();
    await other.return?.();
    expect(await pulled).toEqual({ value: undefined, done: true });
    expect(hub.counts.tails).toBe(0);
    expect(await logs.follow('a', 1, AbortSignal.abort()).next()).toEqual({ value: undefined, done: true });
  });

  test('leaves no channel, no listener and flat memory after 10,000 cycles', async () => {
    for (let count = 0; count < 100; count += 1) plain.append('a');
    const signal = new AbortController().signal;
    const cycle = async (index: number): Promise<void> => {
      const steps = logs.follow('a', index % 101, signal);
      if (index % 3 === 0) void steps.next();
      if (index % 7 === 0) await bus.publish(plain.channel('a'), withoutItem({ position: 100, text: '' }));
      if (index % 3 === 1) await steps.next();
      await steps.return?.();
    };
    for (let index = 0; index < 2_000; index += 1) if (index % 101 !== 100) await cycle(index);
    const before = usedHeap();
    for (let index = 0; index < 10_000; index += 1) if (index % 101 !== 100) await cycle(index);
    expect(usedHeap() - before).toBeLessThan(MEBIBYTE);
    expect(hub.counts).toEqual({ tails: 0, channels: 0, followers: 0 });
    await redis.subscriber.ping();
    expect(await redis.commands.pubsub('CHANNELS')).toEqual([]);
    expect(redis.subscriber.listenerCount('message')).toBe(1);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('on a drain everyone is told, and who comes meanwhile too', async () => {
    await listening();
    const many = Array.from({ length: 100 }, () => follow(0));
    await Promise.all(many.map((reader) => reader.has(1)));
    await hub.drain(200);
    await Promise.all(many.map(({ done }) => done));
    expect(new Set(many.map(({ ended }) => ended))).toEqual(new Set(['DRAINING']));
    const late = follow(0);
    await late.done;
    expect(late.ended).toBe('DRAINING');
  });
});
