import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pad } from '../../src/scratchpads/pad.ts';
import type { PageWant, ThreadWindow } from '../../src/scratchpads/plane.ts';
import { append, grantAt, newAuthor, newPad, type PadWorld, startPadWorld } from '../support/pads.ts';

/** Reported, not asserted: what one script costs the server, in µs as SLOWLOG and commandstats count. */
let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const WINDOWS = 100;

/** `changes` membership changes, evenly along the list, each noted as a removal or re-add would. */
const fill = async (pad: Pad, entries: number, size: number, changes: number): Promise<void> => {
  const batch = Math.min(500, Math.floor((1024 * 1024) / size));
  let thread = 1;
  let nextChange = 0;
  for (let count = 0; count < entries; count += batch) {
    while (changes > 0 && count >= nextChange) {
      thread += 1;
      await world.plane.raise(pad, thread);
      nextChange += entries / changes;
    }
    const left = Math.min(batch, entries - count);
    await append(world.plane, pad, thread, ...Array.from({ length: left }, () => 'x'.repeat(size)));
  }
};

const cost = async (work: () => Promise<unknown>, rounds = 20): Promise<string> => {
  const { commands } = world.redis;
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await commands.config('RESETSTAT');
    await work();
    const stats = await commands.info('commandstats');
    // By digest, or by its text where the server did not know the script yet.
    const perCall = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+),usec=(\d+)/g)].map(
      ([, calls, usec]) => Number(usec) / Number(calls),
    );
    times.push(Math.max(...perCall));
  }
  times.sort((one, other) => one - other);
  return `median ${Math.round(times[times.length >> 1] ?? 0)} µs, worst ${Math.round(times.at(-1) ?? 0)} µs`;
};

const page = (want: Partial<PageWant>): PageWant => ({
  windows: null,
  after: null,
  before: null,
  limit: 51,
  isBackward: false,
  ...want,
});

const windows: ThreadWindow[] = Array.from({ length: WINDOWS }, (_, index) => ({
  from: 2 + 2 * index,
  until: 3 + 2 * index,
}));

test.each([
  ['100 entries of 600 bytes', 100, 600],
  ['100,000 entries of 600 bytes', 100_000, 600],
  ['16,000 entries of 4 KiB', 16_000, 4_096],
  ['1,000 entries of 64 KiB', 1_000, 64 * 1024],
])('what one script costs at %s', async (name, entries, size) => {
  const pad = newPad();
  await fill(pad, entries - 50, size, 2 * WINDOWS);
  const { plane } = world;
  const author = newAuthor();
  const thread = 2 * WINDOWS + 1;
  const read = (want: PageWant) => () =>
    plane.read([{ pad, grant: grantAt(thread), wants: { pages: [want] } }]);
  const [head] = await plane.heads([pad]);
  const middle = Math.floor(entries / 2);
  const wants = {
    append: () =>
      plane.append(pad, grantAt(thread), author, { contents: ['x'.repeat(Math.min(size, 4096))], key: null }),
    'last 50': read(page({ isBackward: true })),
    '50 in the middle': read(page({ after: middle })),
    'changes in the middle': () =>
      plane.changes(pad, { ...(head ?? { epoch: '', tag: '', seq: 0 }), rev: middle }, 50),
    'last 50, 100 windows': read(page({ windows, isBackward: true })),
    '50 in the middle, 100 windows': read(page({ windows, after: middle })),
    '200 by seq': () =>
      plane.read([
        {
          pad,
          grant: grantAt(thread),
          wants: { seqs: Array.from({ length: 200 }, (_, index) => 1 + Math.floor((index * entries) / 200)) },
        },
      ]),
  };
  const figures: string[] = [];
  for (const [what, work] of Object.entries(wants)) figures.push(`  ${what}: ${await cost(work)}`);
  console.log(`${name}\n${figures.join('\n')}`);
  expect(figures).toHaveLength(7);
});

test('what a batch and a content at their limits cost', async () => {
  const { plane } = world;
  const author = newAuthor();
  const fullBatch = Array.from({ length: 1_000 }, () => 'x'.repeat(4 * 1024));
  const wideBatch = Array.from({ length: 64 }, () => 'x'.repeat(64 * 1024));
  const wideControls = Array.from({ length: 64 }, () => '\u0001'.repeat(64 * 1024));
  const plain = 'x'.repeat(1024 * 1024);
  const escaped = '"'.repeat(1024 * 1024);
  const set = (text: string) => () =>
    plane.setContent(pad, grantAt(1), author, { text, expectedEtag: null, key: null });
  const pad = newPad();
  await append(plane, pad, 1, 'first');
  // The server gets to know the script.
  await plane.clear(newPad(), grantAt(1), author, 'ALL');
  const contents = (of: string[]) => () => plane.append(pad, grantAt(1), author, { contents: of, key: null });
  const figures = [
    `  a part of 1,000 entries of 4 KiB: ${await cost(contents(fullBatch), 5)}`,
    `  a part of 64 entries of 64 KiB: ${await cost(contents(wideBatch), 5)}`,
    `  1 MiB of content: ${await cost(set(plain), 5)}`,
    `  1 MiB of quotation marks: ${await cost(set(escaped), 5)}`,
    `  1 MiB of control characters: ${await cost(set('\u0001'.repeat(1024 * 1024)), 5)}`,
    `  a part of entries of 64 KiB of control characters: ${await cost(contents(wideControls), 5)}`,
    `  clear: ${await cost(() => plane.clear(pad, grantAt(1), author, 'ALL'), 1)}`,
  ];
  console.log(`batches\n${figures.join('\n')}`);
  expect(figures).toHaveLength(7);
});
