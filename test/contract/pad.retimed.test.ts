import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pad } from '../../src/scratchpads/pad.ts';
import {
  append,
  done,
  keysOf,
  newAuthor,
  newPad,
  type PadWorld,
  setContent,
  settled,
  startPadWorld,
} from '../support/pads.ts';

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

/** When all of it goes, Unix ms; -1: never. */
const expiryOf = async (pad: Pad): Promise<number> => {
  const { commands } = world.redis;
  const { meta, content, entries } = keysOf(pad);
  const times = new Set<number>();
  for (const key of [meta, content, entries])
    if ((await commands.exists(key)) === 1) times.add(await commands.pexpiretime(key));
  const [time = -2] = times;
  expect(times.size).toBe(1);
  return time;
};

const WRITES = {
  append: (pad: Pad) => append(world.plane, pad, 1, 'late'),
  'content set': (pad: Pad) => setContent(world.plane, pad, 1, 'late'),
  'long content set': (pad: Pad) => setContent(world.plane, pad, 1, 'x'.repeat(100_000)),
  clear: async (pad: Pad) =>
    done(await settled(1, (grant) => world.plane.clear(pad, grant, newAuthor(), 'CONTENT'))),
};

test.for(Object.entries(WRITES))(
  'what was authorised before a new ttlSeconds does not set the old one: %s',
  async ([, write]) => {
    const { plane } = world;
    for (const [before, now] of [
      [600, 0],
      [0, 3_600],
    ] as const) {
      const pad = newPad({ ttlSeconds: before, ttlVersion: 1_000 });
      await append(plane, pad, 1, 'first');
      await setContent(plane, pad, 1, 'short');
      await plane.retime({ ...pad, ttlSeconds: now, ttlVersion: 1_001 });
      await write(pad);
      const expiry = await expiryOf(pad);
      if (now === 0) expect(expiry).toBe(-1);
      else expect(expiry).toBeGreaterThan(Date.now() + 3_500_000);
      // Whoever knows of it, or of a later one, sets it as ever.
      await write({ ...pad, ttlSeconds: 60, ttlVersion: 1_002 });
      await append(plane, { ...pad, ttlSeconds: 60, ttlVersion: 1_002 }, 1, 'later');
      expect(await expiryOf(pad)).toBeGreaterThan(Date.now() + 50_000);
      expect(await expiryOf(pad)).toBeLessThan(Date.now() + 61_000);
    }
  },
);

test('a new ttlSeconds holds also for the first write that comes after it', async () => {
  const { plane } = world;
  const pad = newPad({ ttlSeconds: 600, ttlVersion: 1_000 });
  await plane.retime({ ...pad, ttlSeconds: 0, ttlVersion: 1_001 });
  await append(plane, pad, 1, 'first of all');
  expect(await expiryOf(pad)).toBe(-1);
});

test('of two that were told in the wrong order the later holds', async () => {
  const { plane } = world;
  const pad = newPad({ ttlVersion: 1_000 });
  await append(plane, pad, 1, 'first');
  await plane.retime({ ...pad, ttlSeconds: 0, ttlVersion: 1_002 });
  await plane.retime({ ...pad, ttlSeconds: 600, ttlVersion: 1_001 });
  expect(await expiryOf(pad)).toBe(-1);
});

test('it is kept no longer than an older grant may live: a restored row counts again', async () => {
  const { plane, redis } = world;
  const pad = newPad({ ttlVersion: 1_000 });
  const { meta } = keysOf(pad);
  await append(plane, pad, 1, 'first');
  const before = Date.now();
  await plane.retime({ ...pad, ttlSeconds: 0, ttlVersion: 1_001 });
  const after = Date.now();
  const told = (await redis.commands.hget(meta, 'retimed')) ?? '';
  const upTo = Number(told.split(' ')[2]);
  expect(upTo).toBeGreaterThanOrEqual(before + 15_000);
  expect(upTo).toBeLessThanOrEqual(after + 15_000);
  // As if a quarter of a minute had passed.
  await redis.commands.hset(meta, 'retimed', `1001 0 ${Date.now() - 1}`);
  await append(plane, { ...pad, ttlSeconds: 60 }, 1, 'second');
  expect(await expiryOf(pad)).toBeGreaterThan(Date.now());
  expect(await redis.commands.hexists(meta, 'retimed')).toBe(0);
});
