import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pad } from '../../src/scratchpads/pad.ts';
import type { Plane } from '../../src/scratchpads/plane.ts';
import {
  append,
  contentsOf,
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

const draftsOf = async (pad: Pad): Promise<string[]> =>
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

test('what is lost before its script each time, as in a Redis that evicts it, is not written for ever', async () => {
  const pad = newPad();
  await setContent(world.plane, pad, 1, 'stays');
  const before = await look(world.plane, pad);
  let calls = 0;
  const losing = tappedPlane(world.redis, async (send) => {
    calls += 1;
    await world.redis.commands.unlink(...(await draftsOf(pad)));
    return send();
  });
  const input = { text: LONG['plain letters'], expectedEtag: null, key: null };
  await expect(losing.setContent(pad, grantAt(1), newAuthor(), input)).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  });
  expect(calls).toBe(5);
  expect(await look(world.plane, pad)).toEqual(before);
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

/** Something happens between what is laid aside and its script. */
const interrupted = (before: () => Promise<unknown>): Plane =>
  tappedPlane(world.redis, async (send) => {
    await before();
    return send();
  });

test('asked again under its key it leaves nothing laid aside', async () => {
  const pad = newPad();
  await append(world.plane, pad, 1, 'first');
  const author = newAuthor();
  const write = (hash: string) =>
    world.plane.setContent(pad, grantAt(1), author, {
      text: LONG['plain letters'],
      expectedEtag: null,
      key: { key: 'k', hash },
    });
  const first = done(await write('h'));
  expect(await write('h')).toEqual(first);
  expect(await draftsOf(pad)).toEqual([]);
  expect(await write('another')).toEqual({ kind: 'KEY_REUSED' });
  expect(await draftsOf(pad)).toEqual([]);
});

test('a removal or a purge between a long content and its script leaves nothing of it', async () => {
  const pad = newPad();
  const before = await setContent(world.plane, pad, 1, 'short');
  const write = (plane: Plane) =>
    plane.setContent(pad, grantAt(1), newAuthor(), {
      text: LONG['plain letters'],
      expectedEtag: null,
      key: null,
    });
  const removal = interrupted(() => world.plane.raise(pad, 2));
  expect(await write(removal)).toMatchObject({ kind: 'FENCED', mark: expect.any(String) });
  expect((await look(world.plane, pad)).content).toEqual(before.content);
  expect(await draftsOf(pad)).toEqual([]);

  expect(await write(interrupted(() => world.plane.purge(pad)))).toEqual({ kind: 'GONE' });
  expect(await world.redis.commands.keys(`*${pad.scratchpadId}*`)).toEqual([keysOf(pad).gone]);
});

test('what came too late for its script is taken away', async () => {
  const pad = newPad();
  await append(world.plane, pad, 1, 'first');
  const cut = tappedPlane(
    world.redis,
    async (send, call) => {
      if (call === 2) throw new Error('cut off');
      return send();
    },
    { partBytes: 900 },
  );
  const contents = Array.from({ length: 20 }, (_, index) => `${index}`);
  await expect(cut.append(pad, grantAt(1), newAuthor(), { contents, key: null })).rejects.toThrow('cut off');
  // The batch may go on for two seconds: so long the others are told to wait.
  const grant = { ...grantAt(1), goodForMs: 500 };
  const input = { text: LONG['plain letters'], expectedEtag: null, key: null };
  expect(await world.plane.setContent(pad, grant, newAuthor(), input)).toEqual({
    kind: 'FENCED',
    mark: null,
  });
  expect(await draftsOf(pad)).toEqual([]);
});

test('a refusal is told although Redis goes away right after it', async () => {
  await using mortal = await startPadWorld();
  const pad = newPad();
  const { content } = await setContent(mortal.plane, pad, 1, 'short');
  const dying = tappedPlane(mortal.redis, async (send) => {
    const reply = await send();
    await mortal.server.kill9();
    return reply;
  });
  const input = { text: LONG['plain letters'], expectedEtag: '', key: null };
  expect(await dying.setContent(pad, grantAt(1), newAuthor(), input)).toEqual({
    kind: 'ETAG_DIFFERS',
    etag: content.etag,
  });
});

test('of fifty writers with one etag and long contents one wins, and the others leave nothing', async () => {
  const pad = newPad();
  const { content } = await setContent(world.plane, pad, 1, 'short');
  const texts = Array.from({ length: 50 }, (_, index) => `${index} ${'é'.repeat(40_000)}`);
  const outcomes = await Promise.all(
    texts.map((text) =>
      world.plane.setContent(pad, grantAt(1), newAuthor(), { text, expectedEtag: content.etag, key: null }),
    ),
  );
  const won = outcomes.flatMap((outcome) => (outcome.kind === 'DONE' ? [outcome.content] : []));
  expect(won).toHaveLength(1);
  expect((await look(world.plane, pad)).content).toEqual(won[0]);
  expect(outcomes.filter(({ kind }) => kind === 'ETAG_DIFFERS')).toHaveLength(49);
  expect(await draftsOf(pad)).toEqual([]);
});

/** As JSON, quotation marks and all. */
const OF_64_KIB = {
  'plain letters': 'x'.repeat(64 * 1024 - 2),
  'characters of two bytes': 'é'.repeat(32 * 1024 - 1),
  'characters of three bytes': '海'.repeat(21_844) + 'xx',
  'characters of four bytes': '😀'.repeat(16_383) + 'xx',
};

test.for(Object.entries(OF_64_KIB))(
  'what has more than 64 KiB as JSON is laid aside, by one byte: %s',
  async ([, text]) => {
    const pad = newPad();
    await append(world.plane, pad, 1, 'first');
    const aside: number[] = [];
    const counting = interrupted(async () => aside.push((await draftsOf(pad)).length));
    for (const whole of [text, `${text}x`]) {
      const { content } = await setContent(counting, pad, 1, whole);
      expect(content.text === whole).toBe(true);
      expect((await look(world.plane, pad)).content).toEqual(content);
    }
    expect(aside).toEqual([0, 1]);
  },
);

test('a batch is cut by its bytes, whatever characters they make', async () => {
  const calls: number[] = [];
  for (const letter of ['x'.repeat(12), 'é'.repeat(6), '海'.repeat(4), '😀'.repeat(3)]) {
    const pad = newPad();
    await append(world.plane, pad, 1, 'first');
    let sent = 0;
    const counting = interrupted(async () => {
      sent += 1;
    });
    const contents = Array.from({ length: 64 }, () => letter.repeat(5_000));
    await append(counting, pad, 1, ...contents);
    expect(contentsOf(await look(world.plane, pad))).toEqual(['first', ...contents]);
    calls.push(sent);
  }
  expect(calls).toEqual([11, 11, 11, 11]);
});
