import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  append,
  done,
  grantAt,
  keysOf,
  look,
  newAuthor,
  newPad,
  type PadWorld,
  setContent,
  startPadWorld,
} from '../support/pads.ts';

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

/** While Redis takes nothing more: its memory is full, and it evicts nothing. */
const whileFull = async <T>(act: () => Promise<T>): Promise<T> => {
  const { commands } = world.redis;
  await commands.config('SET', 'maxmemory', '1');
  try {
    await expect(commands.set('more', '1')).rejects.toThrow('OOM');
    return await act();
  } finally {
    await commands.config('SET', 'maxmemory', '0');
  }
};

const filled = async () => {
  const pad = newPad({ ttlSeconds: 600 });
  await append(world.plane, pad, 1, 'first');
  await setContent(world.plane, pad, 1, 'x'.repeat(100_000));
  return pad;
};

test('a full Redis refuses what is to be written, and nothing has changed', async () => {
  const { plane } = world;
  const pad = await filled();
  const before = await look(plane, pad);
  await whileFull(async () => {
    for (const text of ['short', 'x'.repeat(100_000)])
      await expect(
        plane.setContent(pad, grantAt(1), newAuthor(), { text, expectedEtag: null, key: null }),
      ).rejects.toThrow('OOM');
    const input = { contents: ['second'], key: null };
    await expect(plane.append(pad, grantAt(1), newAuthor(), input)).rejects.toThrow('OOM');
  });
  expect(await look(plane, pad)).toEqual(before);
});

test.for(['CONTENT', 'ENTRIES', 'ALL'] as const)(
  'a full Redis is made room in by clearing: %s',
  async (what) => {
    const { plane } = world;
    const pad = await filled();
    done(await whileFull(() => plane.clear(pad, grantAt(1), newAuthor(), what)));
    const state = await look(plane, pad);
    expect(state.content === null).toBe(what !== 'ENTRIES');
    expect(state.count).toBe(what === 'CONTENT' ? 1 : 0);
  },
);

test('a full Redis is made room in by deleting', async () => {
  const { plane, redis } = world;
  const pad = await filled();
  await whileFull(() => plane.purge(pad));
  expect(await redis.commands.keys(`*${pad.scratchpadId}*`)).toEqual([keysOf(pad).gone]);
});

test('a full Redis takes a fence, and another time of expiry', async () => {
  const { plane } = world;
  const pad = await filled();
  await whileFull(async () => {
    await plane.raise(pad, 2);
    await plane.retime({ ...pad, ttlSeconds: 0 });
  });
  const input = { contents: ['late'], key: null };
  expect(await plane.append(pad, grantAt(1), newAuthor(), input)).toMatchObject({ kind: 'FENCED' });
  expect((await look(plane, pad)).expiresAt).toBeNull();
});
