import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHub } from '../../../src/live/hub.ts';
import { createRedisBus } from '../../../src/live/redisBus.ts';
import { setLogLevel } from '../../../src/shared/log.ts';
import { openRedis, type RedisConnections } from '../../../src/storage/redis.ts';
import { type RedisServer, startRedis } from '../../support/redis.ts';
import { type Action, history } from './history.ts';
import { type Entry, PlainLogs, withItem, withoutItem } from './plainLogs.ts';
import { type Reader, startReader } from './reader.ts';
import { ready } from './ready.ts';

const quiet = { info: () => undefined, warn: () => undefined };
setLogLevel('silent');
const RUNS = 150;
const LIMITS = { ringItems: 8, ringBytes: 2_000, pageItems: 40, pageBytes: 4_000 };

let server: RedisServer;
/** Of two processes. */
let connections: [RedisConnections, RedisConnections];
let commands: RedisConnections['commands'];

beforeAll(async () => {
  server = await startRedis();
  connections = [await openRedis(server.url), await openRedis(server.url)];
  commands = connections[0].commands;
});
afterAll(async () => {
  for (const redis of connections) await redis.close();
  await server.stop();
});

/** Two processes' worth of hubs over the same logs, and everyone who ever followed. */
const createWorld = () => {
  const plain = new PlainLogs(randomUUID());
  const keys = ['a', 'b'];
  for (const key of keys) plain.open(key);
  const deleted = new Map<string, readonly Entry[]>();
  const late: { key: string; entry: Entry }[] = [];
  const readers: { key: string; reader: Reader }[] = [];
  const buses = connections.map((redis) => createRedisBus({ ...redis, log: quiet }));
  const hubs = buses.map((bus) => createHub({ bus, log: quiet, pollMs: 10, limits: LIMITS }));
  const logs = hubs.map((hub) => hub.logs(plain));

  const publish = async (key: string, message: string): Promise<void> => {
    await commands.publish(plain.channel(key), message).catch(() => 0);
  };
  const announce = async (key: string, entry: Entry, how: 'carried' | 'bare' | 'twice'): Promise<void> => {
    await publish(key, how === 'bare' ? withoutItem(entry) : withItem(entry));
    if (how === 'twice') await publish(key, withItem(entry));
  };
  const keyOf = (log: number): string => keys[log % keys.length] ?? 'a';

  const act = async (action: Action): Promise<void> => {
    const one = 'who' in action ? readers[action.who % Math.max(1, readers.length)]?.reader : undefined;
    switch (action.kind) {
      case 'append': {
        const key = keyOf(action.log);
        if (deleted.has(key)) return;
        for (let count = 0; count < action.count; count += 1) {
          const entry = plain.append(key, `${key} ${'.'.repeat(count * 7)}`);
          if (action.how === 'late') late.push({ key, entry });
          else if (action.how !== 'lost') await announce(key, entry, action.how);
        }
        return;
      }
      case 'announceLate': {
        const [late1] = late.splice(action.which % Math.max(1, late.length), 1);
        if (late1 !== undefined) await announce(late1.key, late1.entry, 'carried');
        return;
      }
      case 'follow': {
        const key = keyOf(action.log);
        const followed = logs[action.process];
        if (followed === undefined) return;
        const end = plain.entries(key).length;
        readers.push({ key, reader: startReader(followed, key, Math.max(0, end - (action.at % (end + 1)))) });
        return;
      }
      case 'stall':
        return one?.stall();
      case 'resume':
        return one?.resume();
      case 'abort':
        return one?.abort();
      case 'storage':
        plain.isFailing = action.isFailing;
        return;
      case 'slow':
        plain.pace = action.isSlow ? () => commands.ping().then(() => undefined) : () => Promise.resolve();
        return;
      case 'cut':
        await commands.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
        return;
      case 'noise':
        return publish(keyOf(action.log), action.message);
      case 'delete': {
        const key = keyOf(action.log);
        if (deleted.has(key)) return;
        deleted.set(key, plain.entries(key));
        plain.delete(key);
        return publish(key, 'gone');
      }
      case 'breathe':
        await commands.ping();
        return;
      default:
        return action satisfies never;
    }
  };

  /** Everything works again; whoever still follows gets the rest. */
  const settle = async (): Promise<void> => {
    plain.isFailing = false;
    for (const { key, reader } of readers) {
      reader.resume();
      if (reader.isAborted || deleted.has(key)) await reader.done;
      else await reader.has(plain.entries(key).length - reader.after);
    }
  };

  const check = (): void => {
    for (const { key, reader } of readers) {
      const log = deleted.get(key) ?? plain.entries(key);
      const expected = log.slice(reader.after);
      if (deleted.has(key) && !reader.isAborted) expect(reader.ended).toBe('GONE');
      const isPartial = reader.isAborted || deleted.has(key);
      expect(reader.received).toEqual(isPartial ? expected.slice(0, reader.received.length) : expected);
    }
  };

  const close = async (): Promise<void> => {
    for (const { reader } of readers) reader.abort();
    await Promise.all(readers.map(({ reader }) => reader.done));
    for (const hub of hubs) expect(hub.counts).toEqual({ tails: 0, channels: 0, followers: 0 });
    for (const hub of hubs) hub.close();
    for (const bus of buses) bus.close();
  };
  return { act, settle, check, close, readers };
};

test('every follower of a random history receives its part of the log, in order, once', async () => {
  let received = 0;
  await fc.assert(
    fc.asyncProperty(history, async (actions) => {
      const world = createWorld();
      for (const action of actions) await world.act(action);
      await world.settle();
      world.check();
      received += world.readers.reduce((sum, { reader }) => sum + reader.received.length, 0);
      await world.close();
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
  expect(received).toBeGreaterThan(RUNS * 20);
  for (const { subscriber } of connections) {
    await ready(subscriber);
    await subscriber.ping();
  }
  expect(await commands.pubsub('CHANNELS')).toEqual([]);
});
