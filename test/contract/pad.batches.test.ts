import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPlane, type Plane } from '../../src/scratchpads/plane.ts';
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
/** Takes in a few entries at a time. */
let plane: Plane;
beforeAll(async () => {
  world = await startPadWorld();
  plane = createPlane({
    redis: world.redis.commands,
    markLegacyChecked: async () => undefined,
    partBytes: 900,
  });
});
afterAll(() => world[Symbol.asyncDispose]());

const batch = (name: string, size = 20): string[] =>
  Array.from({ length: size }, (_, index) => `${name} ${index}`);

/** Something happens before a script is sent. */
const interrupted = (before: (call: number) => Promise<void>): Plane =>
  tappedPlane(
    world.redis,
    async (send, call) => {
      await before(call);
      return send();
    },
    { partBytes: 900 },
  );

test('a batch that comes in parts is seen whole or not at all', async () => {
  const pad = newPad();
  await append(plane, pad, 1, 'first');
  const seen: number[] = [];
  const watched = interrupted(async () => {
    seen.push((await look(plane, pad)).count);
  });
  const outcome = await watched.append(pad, grantAt(1), newAuthor(), { contents: batch('a'), key: null });
  const { entries, position } = done(outcome);
  expect(seen.length).toBeGreaterThan(3);
  expect(new Set(seen)).toEqual(new Set([1]));
  const state = await look(plane, pad);
  expect(state.pages[0]?.entries.slice(1)).toEqual(entries);
  expect(contentsOf(state)).toEqual(['first', ...batch('a')]);
  expect(state.position).toEqual(position);
  expect(await world.redis.commands.hexists(keysOf(pad).meta, 'open')).toBe(0);
});

test('of a batch that was cut off nothing stays, and nobody waits for it for long', async () => {
  const pad = newPad();
  await append(plane, pad, 1, 'first');
  const cut = interrupted(async (call) => {
    if (call === 3) throw new Error('cut off');
  });
  const contents = batch('a');
  await expect(cut.append(pad, grantAt(1), newAuthor(), { contents, key: null })).rejects.toThrow('cut off');
  expect(contentsOf(await look(plane, pad))).toEqual(['first']);
  // It may go on for two seconds; so long the others wait.
  const started = performance.now();
  await setContent(plane, pad, 1, 'text');
  expect(performance.now() - started).toBeLessThan(4_000);
  await append(plane, pad, 1, 'second');
  expect(contentsOf(await look(plane, pad))).toEqual(['first', 'second']);
  expect(await world.redis.commands.llen(keysOf(pad).entries)).toBe(2);
});

test('the first of all entries may come in parts; cut off, they leave an empty pad', async () => {
  const pad = newPad();
  const { mark } = (await plane.append(pad, grantAt(1), newAuthor(), { contents: ['x'], key: null })) as {
    mark: string;
  };
  const cut = interrupted(async (call) => {
    if (call === 3) throw new Error('cut off');
  });
  const write = (by: Plane) =>
    by.append(pad, grantAt(1, mark), newAuthor(), { contents: batch('a'), key: { key: 'k', hash: 'h' } });
  await expect(write(cut)).rejects.toThrow('cut off');
  expect(await look(plane, pad)).toMatchObject({ count: 0, position: { rev: 0, seq: 0 } });
  const { position } = done(await write(plane));
  expect(position).toMatchObject({ rev: 20, seq: 20 });
  expect(contentsOf(await look(plane, pad))).toEqual(batch('a'));
});

test('a removal, a purge or a loss between two parts leaves none of them', async () => {
  const pad = newPad();
  await append(plane, pad, 1, 'first');
  const removal = interrupted(async (call) => {
    if (call === 3) await plane.raise(pad, 2);
  });
  const write = (by: Plane, of = pad) =>
    by.append(of, grantAt(1), newAuthor(), { contents: batch('a'), key: null });
  expect(await write(removal)).toMatchObject({ kind: 'FENCED', mark: expect.any(String) });
  expect(await world.redis.commands.llen(keysOf(pad).entries)).toBe(1);
  expect(contentsOf(await look(plane, pad))).toEqual(['first']);

  const lost = newPad();
  await append(plane, lost, 1, 'first');
  const loss = interrupted(async (call) => {
    if (call === 3) await world.redis.commands.unlink(keysOf(lost).meta);
  });
  expect(await write(loss, lost)).toMatchObject({ kind: 'FENCED', mark: expect.any(String) });
  expect(await look(plane, lost)).toMatchObject({ count: 0 });

  const purged = newPad();
  await append(plane, purged, 1, 'first');
  const purge = interrupted(async (call) => {
    if (call === 3) await plane.purge(purged);
  });
  expect(await write(purge, purged)).toEqual({ kind: 'GONE' });
  expect(await world.redis.commands.exists(keysOf(purged).entries)).toBe(0);
});

test('batches in parts and single entries of many writers: each whole, numbered without a gap', async () => {
  const pad = newPad();
  await append(plane, pad, 1, 'first');
  const write = async (writer: number): Promise<void> => {
    for (let round = 0; round < 5; round += 1) {
      const contents = writer % 2 === 0 ? batch(`${writer}-${round}`) : [`${writer}-${round}`];
      const key = { key: `${writer} ${round}`, hash: 'h' };
      const twice = [1, 2].map(() => plane.append(pad, grantAt(1), newAuthor(), { contents, key }));
      const [one, other] = await Promise.all(twice);
      expect(done(one ?? { kind: '' }).position).toEqual(done(other ?? { kind: '' }).position);
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, writer) => write(writer)));
  const state = await look(plane, pad);
  const entries = state.pages[0]?.entries ?? [];
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
  expect(entries).toHaveLength(1 + 8 * 5 * 20 + 8 * 5);
  const texts = contentsOf(state);
  for (const text of texts.filter((one) => one.endsWith(' 0'))) {
    const at = texts.indexOf(text);
    expect(texts.slice(at, at + 20)).toEqual(batch(text.slice(0, -2)));
  }
});
