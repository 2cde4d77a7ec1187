import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Bus } from '../../../src/live/bus.ts';
import { createRedisBus } from '../../../src/live/redisBus.ts';
import { setLogLevel } from '../../../src/shared/log.ts';
import { openRedis, type RedisConnections } from '../../../src/storage/redis.ts';
import { announceOn } from '../../../src/timeline/announce.ts';
import { userChannel } from '../../../src/timeline/live.ts';
import { type RedisServer, startRedis } from '../../support/redis.ts';
import { ready } from './ready.ts';

setLogLevel('silent');

let server: RedisServer;
let redis: RedisConnections;
let bus: Bus;
let warnings: string[];

beforeAll(async () => {
  server = await startRedis();
  redis = await openRedis(server.url);
});
afterAll(async () => {
  await redis.close();
  await server.stop();
});
beforeEach(() => {
  warnings = [];
  bus = createRedisBus({
    ...redis,
    log: { info: () => undefined, warn: (_facts, message) => void warnings.push(message) },
  });
});
afterEach(async () => {
  expect(bus.channels).toBe(0);
  bus.close();
  await ready(redis.subscriber);
  await redis.subscriber.ping();
  expect(await redis.commands.pubsub('CHANNELS')).toEqual([]);
});

/** Resolves with the first message, or when listening holds. */
const heard = (channel: string) => {
  const messages: string[] = [];
  let onMessage: () => void = () => undefined;
  let onListening: () => void = () => undefined;
  const message = new Promise<void>((resolve) => {
    onMessage = resolve;
  });
  const listening = new Promise<void>((resolve) => {
    onListening = resolve;
  });
  const leave = bus.subscribe(
    channel,
    (text) => {
      messages.push(text);
      onMessage();
    },
    () => onListening(),
  );
  return { messages, message, listening, leave };
};

test('what is published once listening holds is heard by every listener, and by them alone', async () => {
  const [one, two, other] = [heard('a'), heard('a'), heard('b')];
  await Promise.all([one.listening, two.listening, other.listening]);
  expect(await bus.publish('a', 'hello')).toBe(true);
  await Promise.all([one.message, two.message]);
  one.leave();
  await bus.publish('a', 'again');
  await bus.publish('b', 'end');
  await other.message;
  expect([one.messages, two.messages, other.messages]).toEqual([['hello'], ['hello', 'again'], ['end']]);
  two.leave();
  other.leave();
  other.leave();
});

test('who joins a channel that is already listened to is told so too', async () => {
  const first = heard('a');
  await first.listening;
  const second = heard('a');
  await second.listening;
  first.leave();
  second.leave();
});

test('leaving and coming back at once listens again', async () => {
  const first = heard('a');
  await first.listening;
  for (let round = 0; round < 50; round += 1) {
    const leaving = heard('a');
    leaving.leave();
    if (round % 2 === 0) await redis.commands.ping();
  }
  first.leave();
  const again = heard('a');
  await again.listening;
  await bus.publish('a', 'hello');
  await again.message;
  again.leave();
});

test('listening is told again after each reconnect', async () => {
  let count = 0;
  let onListening: () => void = () => undefined;
  const leave = bus.subscribe(
    'a',
    () => undefined,
    () => {
      count += 1;
      onListening();
    },
  );
  for (let round = 1; round <= 3; round += 1) {
    const told = new Promise<void>((resolve) => {
      onListening = resolve;
    });
    if (round > 1) await redis.commands.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await told;
    expect(count).toBe(round);
  }
  leave();
});

test('a listener that throws harms no other', async () => {
  const leave = bus.subscribe('a', () => {
    throw new Error('mine');
  });
  const other = heard('a');
  await other.listening;
  await bus.publish('a', 'hello');
  await other.message;
  expect(warnings).toEqual(['A bus listener failed.']);
  leave();
  other.leave();
});

test('channels beyond one command are all listened to, and all let go', async () => {
  const many = Array.from({ length: 2_500 }, (_, index) => heard(`channel ${index}`));
  await Promise.all(many.map(({ listening }) => listening));
  expect(bus.channels).toBe(2_500);
  expect(await redis.commands.pubsub('CHANNELS')).toHaveLength(2_500);
  for (const { leave } of many) leave();
});

test('publishing without Redis says so at once and throws nothing', async () => {
  await server.kill9();
  expect(await bus.publish('a', 'hello')).toBe(false);
  await server.restart();
  await Promise.all([ready(redis.commands), ready(redis.subscriber)]);
  expect(await bus.publish('a', 'hello')).toBe(true);
});

test('what was gathered is announced before it closes, and nothing is published after', async () => {
  const log = {
    info: () => undefined,
    warn: (_facts: object, message: string) => void warnings.push(message),
  };
  const closing = createRedisBus({ ...redis, log });
  const announce = announceOn(closing, { wake: () => undefined });
  const [list, other] = [heard(userChannel('user_1')), heard('other')];
  await Promise.all([list.listening, other.listening]);
  announce.moved('user_1', 'thread_1', 7);
  announce.close();
  closing.close();
  await list.message;
  expect(await closing.publish('other', 'too late')).toBe(false);
  await bus.publish('other', 'end');
  await other.message;
  list.leave();
  other.leave();
  expect([list.messages.length, other.messages, warnings]).toEqual([1, ['end'], []]);
});
