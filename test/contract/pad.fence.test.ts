import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Fenced, Pad } from '../../src/scratchpads/pad.ts';
import type { ThreadWindow } from '../../src/scratchpads/plane.ts';
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
} from '../support/pads.ts';

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const put = (pad: Pad, threadSeq: number, settles: string | null = null, content = 'x') =>
  world.plane.append(pad, grantAt(threadSeq, settles), newAuthor(), { contents: [content], key: null });

const markOf = (outcome: { kind: string }): string => {
  expect(outcome).toMatchObject({ kind: 'FENCED', mark: expect.any(String) });
  return (outcome as Fenced).mark ?? '';
};

const seen = async (pad: Pad, ...windows: ThreadWindow[]) => {
  const page = { windows, after: null, before: null, limit: 1_000, isBackward: false };
  const state = await look(world.plane, pad, { pages: [page] });
  return { contents: contentsOf(state), page: state.pages[0] };
};

test('the first write of an epoch is authorised once more, under the mark it was refused with', async () => {
  const pad = newPad();
  const mark = markOf(await put(pad, 5));
  expect(markOf(await put(pad, 6))).toBe(mark);
  expect(markOf(await put(pad, 6, 'another'))).toBe(mark);
  expect((await look(world.plane, pad)).position.epoch).toBe('');
  done(await put(pad, 6, mark));
  done(await put(pad, 6));
  markOf(await put(pad, 5));
});

test('a write that was authorised before a removal and arrives after it is refused', async () => {
  const pad = newPad();
  await append(world.plane, pad, 3, 'a');
  await world.plane.raise(pad, 4);
  const mark = markOf(await put(pad, 3));
  done(await put(pad, 4));
  done(await put(pad, 4, mark));
});

test('a raise that was rolled back holds up nobody: the true head settles it', async () => {
  const pad = newPad();
  await append(world.plane, pad, 3, 'a');
  await world.plane.raise(pad, 4);
  const mark = markOf(await put(pad, 3));
  const settled = done(await put(pad, 3, mark, 'b'));
  expect(settled.entries[0]?.threadSeq).toBe(3);
  done(await put(pad, 3, null, 'b2'));
  // The position is taken by a message, then by a removal: its note is where the list stands by then.
  done(await put(pad, 4, null, 'c'));
  await world.plane.raise(pad, 5);
  done(await put(pad, 5, null, 'd'));
  expect((await seen(pad, { from: 1, until: 5 })).contents).toEqual(['a', 'b', 'b2', 'c']);
  expect((await seen(pad, { from: 4, until: null })).contents).toEqual(['c', 'd']);
});

test('of several raises that were rolled back together no note is left', async () => {
  const pad = newPad();
  await append(world.plane, pad, 3, 'a');
  for (const seq of [4, 5, 6]) await world.plane.raise(pad, seq);
  done(await put(pad, 3, markOf(await put(pad, 3)), 'b'));
  const { meta } = keysOf(pad);
  expect((await world.redis.commands.hkeys(meta)).filter((name) => name.startsWith('n:'))).toEqual([]);
  done(await put(pad, 9, null, 'c'));
  expect((await seen(pad, { from: 1, until: 5 })).contents).toEqual(['a', 'b']);
});

test.each([4, 5])(
  'a mark settles nothing once another raise has come, be it at the same position (%i)',
  async (seq) => {
    const pad = newPad();
    await append(world.plane, pad, 3, 'a');
    await world.plane.raise(pad, 5);
    const mark = markOf(await put(pad, 3));
    // Rolled back; the statement that settles it has read head 3, then a true removal is under way.
    await world.plane.raise(pad, seq);
    const next = markOf(await put(pad, 3, mark));
    expect(next).not.toBe(mark);
    done(await put(pad, seq, next));
  },
);

test('neither a wipe nor an expiry lets through what was authorised before it, settled or not', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  await append(plane, pad, 3, 'a');
  await plane.raise(pad, 4);
  const mark = markOf(await put(pad, 3));
  await redis.commands.unlink(...Object.values(keysOf(pad)));
  const fresh = markOf(await put(pad, 3, mark));
  expect(fresh).not.toBe(mark);
  // A removal comes while the settling statement is under way: its raise finds no state, and is noticed all the same.
  await plane.raise(pad, 5);
  const last = markOf(await put(pad, 4, fresh));
  await redis.commands.unlink(...Object.values(keysOf(pad)));
  markOf(await put(pad, 4, last));
});

test('another server, which may have lost the last raise, lets nothing through that was not settled there', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  await append(plane, pad, 3, 'a');
  const { meta } = keysOf(pad);
  const before = await redis.commands.hgetall(meta);
  await plane.raise(pad, 4);
  await redis.commands.unlink(meta);
  await redis.commands.hset(meta, { ...before, tag: '0123abcd', fencer: '0123abcd' });
  const mark = markOf(await put(pad, 3));
  expect(mark).not.toBe(before.mark);
  expect(markOf(await put(pad, 3, before.mark))).toBe(mark);
  await plane.raise(pad, 4);
  const next = markOf(await put(pad, 3, mark));
  done(await put(pad, 4, next));
  done(await put(pad, 4));
  markOf(await put(pad, 3));
});

test('a late raise changes no fence, and its place in the list is found', async () => {
  const pad = newPad();
  await append(world.plane, pad, 3, 'a');
  await append(world.plane, pad, 5, 'b', 'c');
  await append(world.plane, pad, 8, 'd');
  await world.plane.raise(pad, 8);
  await world.plane.raise(pad, 5);
  await world.plane.raise(pad, 8);
  markOf(await put(pad, 7));
  expect((await seen(pad, { from: 1, until: 5 })).contents).toEqual(['a']);
  expect((await seen(pad, { from: 5, until: 8 })).contents).toEqual(['b', 'c']);
});

test('a grant older than ten seconds sends nothing', async () => {
  const { plane } = world;
  const pad = newPad();
  await append(plane, pad, 3, 'a');
  const late = { ...grantAt(3), readAt: performance.now() - 10_001 };
  const again = { kind: 'FENCED', mark: null };
  expect(await plane.append(pad, late, newAuthor(), { contents: ['b'], key: null })).toEqual(again);
  expect(await plane.clear(pad, late, newAuthor(), 'ALL')).toEqual(again);
  expect(await plane.read([{ pad, grant: late, wants: {} }])).toEqual([again]);
  expect((await look(plane, pad)).count).toBe(1);
});

test('a read that meets a position above what its grant saw is authorised again', async () => {
  const { plane } = world;
  const pad = newPad();
  await append(plane, pad, 3, 'a');
  expect(await plane.read([{ pad, grant: grantAt(3), wants: {} }])).toMatchObject([{ kind: 'STATE' }]);
  await setContent(plane, pad, 4, 'text');
  markOf((await plane.read([{ pad, grant: grantAt(3), wants: {} }]))[0] ?? { kind: 'none' });
  expect(await plane.read([{ pad, grant: grantAt(4), wants: {} }])).toMatchObject([{ kind: 'STATE' }]);
});

test('a head that is lower than the pad’s positions also under the lock shows what was there, and no more', async () => {
  const { plane } = world;
  const pad = newPad();
  await append(plane, pad, 9, 'a');
  const page = {
    windows: [{ from: 1, until: null }],
    after: null,
    before: null,
    limit: 9,
    isBackward: false,
  };
  const read = async (settles: string | null) => {
    const [outcome] = await plane.read([{ pad, grant: grantAt(3, settles), wants: { pages: [page] } }]);
    if (outcome === undefined) throw new Error('No answer.');
    return outcome;
  };
  const mark = markOf(await read(null));
  expect(await read(mark)).toMatchObject({ kind: 'STATE', pages: [{ entries: [{ content: 'a' }] }] });
  await append(plane, pad, 10, 'b');
  expect(markOf(await read(mark))).not.toBe(mark);
});

test('a change of membership below the pad’s positions is a place in the list, also for single entries', async () => {
  const { plane } = world;
  const pad = newPad();
  await append(plane, pad, 9, 'a', 'b');
  await plane.raise(pad, 3, () => true);
  await append(plane, pad, 3, 'gap');
  await plane.raise(pad, 5, () => true);
  await append(plane, pad, 5, 'c');
  const windows = [
    { from: 1, until: 3 },
    { from: 5, until: null },
  ];
  const page = { windows, after: null, before: null, limit: 9, isBackward: false };
  const seqs = [1, 2, 3, 4];
  const [state] = await plane.read([
    { pad, grant: grantAt(20), wants: { pages: [page], seqs, seqWindows: windows } },
  ]);
  if (state?.kind !== 'STATE') throw new Error('No state.');
  const shown = [state.pages[0]?.entries, state.entries].map((those) => those?.map(({ content }) => content));
  expect(shown).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ]);
  expect(state.over).toBe(9);
});

test.each([true, false])(
  'where a removal was not noted in time, its reader’s last position holds (raised late: %s)',
  async (isRaised) => {
    const { plane } = world;
    const pad = newPad();
    await append(plane, pad, 2, 'a');
    const { position } = await setContent(plane, pad, 3, 'text');
    await append(plane, pad, 5, 'b');
    if (isRaised) await plane.raise(pad, 5);
    const end = { ...position, rev: 2, seq: 1 };
    expect((await seen(pad, { from: 1, until: 5 })).page?.end).toEqual(end);
    await plane.clear(pad, grantAt(5), newAuthor(), 'ENTRIES');
    await append(plane, pad, 6, 'c');
    expect((await seen(pad, { from: 1, until: 5 })).page?.end).toEqual(end);
  },
);

test.each([true, false])(
  'the end of a reader who was removed before there was any state does not move (raised late: %s)',
  async (isRaised) => {
    const { plane } = world;
    const pad = newPad();
    const gone = { from: 1, until: 5 };
    await append(plane, pad, 6, 'a', 'b');
    await plane.clear(pad, grantAt(6), newAuthor(), 'ENTRIES');
    await append(plane, pad, 7, 'c');
    if (isRaised) await plane.raise(pad, 5);
    expect((await seen(pad, gone)).page).toMatchObject({ entries: [], total: 0, end: { rev: 0, seq: 0 } });
  },
);

test('threadSeq never decreases along the list', async () => {
  const pad = newPad();
  await append(world.plane, pad, 9, 'a');
  expect((await append(world.plane, pad, 9, 'b')).entries[0]?.threadSeq).toBe(9);
  await world.redis.commands.hset(keysOf(pad).meta, 'fence', 2);
  expect((await append(world.plane, pad, 5, 'c')).entries[0]?.threadSeq).toBe(9);
});

test('windows without notes are found in the list, once, however many there are', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  const count = 120;
  for (let thread = 1; thread <= count; thread += 1)
    await append(plane, pad, thread, `${thread}a`, `${thread}b`);
  const windows = Array.from({ length: count / 4 }, (_, index) => ({
    from: 4 * index + 2,
    until: 4 * index + 4,
  }));
  const expected = windows.flatMap(({ from }) => [from, from + 1].flatMap((at) => [`${at}a`, `${at}b`]));
  expect((await seen(pad, ...windows)).contents).toEqual(expected);
  const notes = (await redis.commands.hkeys(keysOf(pad).meta)).filter((name) => name.startsWith('n:'));
  expect(notes).toHaveLength(2 * windows.length);
  expect((await seen(pad, ...windows)).page).toMatchObject({ total: expected.length, skipped: 0 });
});

test('a removed viewer’s end is where its last window closed; an open window’s is the log’s', async () => {
  const { plane } = world;
  const pad = newPad();
  await append(plane, pad, 2, 'a', 'b');
  await plane.raise(pad, 3);
  const { position } = await append(plane, pad, 3, 'c');
  expect((await seen(pad, { from: 1, until: 3 })).page?.end).toEqual({ ...position, rev: 2, seq: 2 });
  expect((await seen(pad, { from: 1, until: null })).page?.end).toEqual(position);
  expect((await seen(pad)).page).toMatchObject({ entries: [], total: 0, end: { rev: 0, seq: 0 } });
  // Positions stay what they were after a clear.
  await plane.clear(pad, grantAt(3), newAuthor(), 'ENTRIES');
  expect((await seen(pad, { from: 1, until: 3 })).page).toMatchObject({ total: 0, end: { rev: 2, seq: 2 } });
});
