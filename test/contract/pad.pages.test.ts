import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PageWant } from '../../src/scratchpads/plane.ts';
import {
  append,
  contentsOf,
  grantAt,
  look,
  newPad,
  type PadWorld,
  startPadWorld,
  tappedPlane,
} from '../support/pads.ts';

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const ENTRIES = 160;

const page = (want: Partial<PageWant>): PageWant => ({
  windows: null,
  after: null,
  before: null,
  limit: 200,
  isBackward: false,
  ...want,
});

test('however many pages and entries one read asks for, no script reads more than its share', async () => {
  const pad = newPad();
  const contents = Array.from({ length: ENTRIES }, (_, index) => String(index).padEnd(4_096, 'x'));
  await append(world.plane, pad, 1, ...contents);
  // The server knows the script by now.
  await look(world.plane, pad);
  const sizes: number[] = [];
  const watched = tappedPlane(world.redis, async (send) => {
    const reply = await send();
    sizes.push(JSON.stringify(reply).length);
    return reply;
  });
  const windows = [{ from: 1, until: null }];
  const pages = Array.from({ length: 40 }, (_, index) => [
    page({ windows, after: index }),
    page({ windows, before: ENTRIES + 1 - index, isBackward: true }),
  ]).flat();
  const seqs = Array.from({ length: ENTRIES }, (_, index) => index + 1);
  const [state] = await watched.read([{ pad, grant: grantAt(1), wants: { pages, seqs } }]);
  if (state?.kind !== 'STATE') throw new Error('No state.');
  expect(Math.max(...sizes)).toBeLessThan(1024 * 1024);
  for (const [index, found] of state.pages.entries()) {
    const cut = Math.floor(index / 2);
    const isBackward = index % 2 === 1;
    expect(found.entries.map(({ content }) => content)).toEqual(
      isBackward ? contents.slice(0, ENTRIES - cut) : contents.slice(cut),
    );
    expect(found).toMatchObject({ total: ENTRIES, skipped: isBackward ? 0 : cut });
  }
  expect(state.entries.map(({ content }) => content)).toEqual(contents);
});

test('pages through many windows are what a plain filter gives, both ways and from anywhere', async () => {
  const pad = newPad();
  const threads = Array.from({ length: 60 }, (_, index) => index + 1);
  for (const thread of threads) await append(world.plane, pad, thread, `${thread}a`, `${thread}b`);
  const windows = threads.filter((at) => at % 3 === 1).map((from) => ({ from, until: from + 1 }));
  const all = (await look(world.plane, pad)).pages[0]?.entries ?? [];
  const shown = all.filter(({ threadSeq }) => threadSeq % 3 === 1);
  const places = [null, 0, 1, 2, 7, 40, 61, 119, 120, 130];
  const wants = places.flatMap((after) =>
    places.flatMap((before) =>
      [1, 3, 50].flatMap((limit) =>
        [false, true].map((isBackward) => page({ windows, after, before, limit, isBackward })),
      ),
    ),
  );
  const state = await look(world.plane, pad, { pages: wants });
  for (const [index, want] of wants.entries()) {
    const inside = shown.filter(({ seq }) => seq > (want.after ?? 0) && seq < (want.before ?? 1e9));
    const expected = want.isBackward ? inside.slice(-want.limit) : inside.slice(0, want.limit);
    const found = state.pages[index];
    expect(found?.entries, JSON.stringify(want)).toEqual(expected);
    expect(found?.total).toBe(shown.length);
    const [first] = expected;
    if (first !== undefined) expect(found?.skipped).toBe(shown.indexOf(first));
  }
  expect(contentsOf(state)).toEqual(['1a']);
});
