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
  tappedPlane,
} from '../support/pads.ts';

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const MIB = 1024 * 1024;
const LONG = {
  'plain letters': 'x'.repeat(MIB),
  'quotation marks': '"'.repeat(MIB),
  'control characters': '\u0001'.repeat(MIB),
  'characters of four bytes': '😀'.repeat(MIB / 4),
};

const draftsOf = async (pad: ReturnType<typeof newPad>): Promise<string[]> =>
  world.redis.commands.keys(keysOf(pad).content.replace(/content$/, 'draft:*'));

test.for(Object.entries(LONG))('a content of 1 MiB stands whole and as JSON: %s', async ([, text]) => {
  const { plane, redis } = world;
  const pad = { ...newPad(), ttlSeconds: 600 };
  await setContent(plane, pad, 1, 'short');
  const author = { ...newAuthor(), sourceIds: Array.from({ length: 16 }, (_, index) => `event_${index}`) };
  const set = await plane.setContent(pad, grantAt(1), author, { text, expectedEtag: null, key: null });
  const { content } = done(set);
  expect(content).toMatchObject({ version: 2, rev: 2, ...author });
  expect(content.text === text).toBe(true);
  expect((await look(plane, pad)).content).toEqual(content);
  const stands = JSON.parse((await redis.commands.get(keysOf(pad).content)) ?? '') as { content: string };
  expect(stands.content === text).toBe(true);
  expect(await redis.commands.pttl(keysOf(pad).content)).toBeGreaterThan(500_000);
  expect(await draftsOf(pad)).toEqual([]);
});

test('a content that does not expire goes on standing after it was long', async () => {
  const pad = newPad();
  await setContent(world.plane, pad, 1, LONG['plain letters']);
  expect(await world.redis.commands.pttl(keysOf(pad).content)).toBe(-1);
});

test('what was laid aside and lost before its script is laid aside again', async () => {
  const pad = newPad();
  await append(world.plane, pad, 1, 'first');
  let lost = 0;
  const losing = tappedPlane(world.redis, async (send, call) => {
    if (call === 1) lost = await world.redis.commands.unlink(...(await draftsOf(pad)));
    return send();
  });
  const { content } = await setContent(losing, pad, 1, LONG['quotation marks']);
  expect(lost).toBe(1);
  expect(content).toMatchObject({ version: 1, rev: 2 });
  expect((await look(world.plane, pad)).content).toEqual(content);
});

test('sent twice it acts once, and refused it leaves nothing', async () => {
  const pad = newPad();
  const doubled = tappedPlane(world.redis, async (send) => {
    await send();
    return send();
  });
  const { content } = await setContent(doubled, pad, 1, LONG['plain letters']);
  expect(content).toMatchObject({ version: 1, rev: 1 });
  const refused = await world.plane.setContent(pad, grantAt(1), newAuthor(), {
    text: LONG['quotation marks'],
    expectedEtag: '',
    key: null,
  });
  expect(refused).toEqual({ kind: 'ETAG_DIFFERS', etag: content.etag });
  expect((await look(world.plane, pad)).content).toEqual(content);
  expect(await draftsOf(pad)).toEqual([]);
});
