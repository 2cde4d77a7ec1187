import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { legacyKeys } from '../../src/scratchpads/keys.ts';
import { PAD_LIMITS, type Pad } from '../../src/scratchpads/pad.ts';
import { createPlane, type Plane } from '../../src/scratchpads/plane.ts';
import { log } from '../../src/shared/log.ts';
import { openRedis } from '../../src/storage/redis.ts';
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
  settled,
  startPadWorld,
  tappedPlane,
} from '../support/pads.ts';
import { startCluster } from '../support/redisFleet.ts';

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

type Commands = Pick<PadWorld['redis']['commands'], 'set' | 'rpush' | 'exists' | 'lpush'>;

const legacyPad = (options: Partial<Pad> = {}): Pad => newPad({ legacyPending: true, ...options });

const leaveNotebook = (commands: Commands, pad: Pad, content = 'from the notebook') =>
  commands.set(legacyKeys(pad).notebook, JSON.stringify({ content, last_updated: 1_700_000_000.25 }));

const leaveState = async (
  commands: Commands,
  pad: Pad,
  entries: readonly string[] = ['e1', 'e2'],
  content = 'canonical',
) => {
  const keys = legacyKeys(pad);
  const updated_at = '2024-02-03T04:05:06+00:00';
  await commands.set(keys.content, JSON.stringify({ content, updated_at }));
  const values = entries.map((content) => JSON.stringify({ content, created_at: '2024-01-02T03:04:05Z' }));
  for (let start = 0; start < values.length; start += 1_000)
    await commands.rpush(keys.entries, ...values.slice(start, start + 1_000));
};

const left = async (commands: Commands, pad: Pad): Promise<number> => {
  let count = 0;
  for (const key of Object.values(legacyKeys(pad))) count += await commands.exists(key);
  return count;
};

const read = (plane: Plane, pad: Pad) =>
  settled(1, async (grant) => {
    const page = { windows: null, after: null, before: null, limit: 200_000, isBackward: false };
    const [state] = await plane.read([{ pad, grant, wants: { content: true, pages: [page] } }]);
    if (state === undefined) throw new Error('No answer.');
    return state.kind === 'FENCED' && state.mark === null ? { ...state, mark: '' } : state;
  });

const stateOf = async (plane: Plane, pad: Pad) => {
  const state = await read(plane, pad);
  if (state.kind !== 'STATE') throw new Error(state.kind);
  return { content: state.content?.text ?? null, entries: contentsOf(state) };
};

test('a notebook is taken over by the first read, and its key goes', async () => {
  const { plane, redis, checked } = world;
  const pad = legacyPad();
  await leaveNotebook(redis.commands, pad);
  expect(await stateOf(plane, pad)).toEqual({ content: 'from the notebook', entries: [] });
  expect((await look(plane, { ...pad, legacyPending: false })).content).toMatchObject({
    updatedAt: '2023-11-14T22:13:20.250Z',
    version: 1,
    authorId: null,
    threadSeq: 1,
  });
  expect(checked.has(pad.scratchpadId)).toBe(true);
  expect(await left(redis.commands, pad)).toBe(0);
});

test('the earlier keys are taken over by the first append, below it; of two contents the newer', async () => {
  const { plane, redis } = world;
  const pad = legacyPad();
  await leaveNotebook(redis.commands, pad);
  await leaveState(redis.commands, pad);
  await append(plane, pad, 1, 'new');
  const state = await look(plane, { ...pad, legacyPending: false });
  expect(contentsOf(state)).toEqual(['e1', 'e2', 'new']);
  expect(state.pages[0]?.entries[0]).toMatchObject({ seq: 1, rev: 1, createdAt: '2024-01-02T03:04:05.000Z' });
  expect(state.content).toMatchObject({ text: 'canonical', rev: 3 });
  expect(state.position).toMatchObject({ rev: 4, seq: 3 });
  expect(await left(redis.commands, pad)).toBe(0);
});

test('nothing left behind: nothing is made, and the row says so', async () => {
  const { plane, redis, checked } = world;
  const pad = legacyPad();
  expect(await stateOf(plane, pad)).toEqual({ content: null, entries: [] });
  expect(checked.has(pad.scratchpadId)).toBe(true);
  expect(await redis.commands.keys(`*${pad.scratchpadId}*`)).toEqual([]);
});

test('it never comes over newer state, nor back after a clear', async () => {
  const { plane, redis } = world;
  const pad = legacyPad();
  await setContent(plane, { ...pad, legacyPending: false }, 1, 'newer');
  await leaveNotebook(redis.commands, pad);
  expect((await stateOf(plane, pad)).content).toBe('newer');
  expect(await left(redis.commands, pad)).toBe(0);

  const cleared = legacyPad();
  await leaveState(redis.commands, cleared);
  await settled(1, (grant) => plane.clear(cleared, grant, newAuthor(), 'ALL'));
  await leaveState(redis.commands, cleared);
  expect(await stateOf(plane, cleared)).toEqual({ content: null, entries: [] });
});

test('what cannot be read is kept and reported, and holds up nothing', async () => {
  const { plane, redis, checked } = world;
  const warn = vi.spyOn(log, 'warn');
  const pad = legacyPad();
  const keys = legacyKeys(pad);
  await redis.commands.set(keys.notebook, '{"content": "cut off');
  await leaveState(redis.commands, pad);
  await redis.commands.rpush(keys.entries, 'no JSON', '{"content": 7}', '{"content":"e3"}');
  expect(await stateOf(plane, pad)).toEqual({ content: 'canonical', entries: ['e1', 'e2', 'e3'] });
  expect(checked.has(pad.scratchpadId)).toBe(true);
  expect(await redis.commands.exists(keys.notebook, keys.content, keys.entries)).toBe(2);
  const reported = warn.mock.calls.map(([facts]) => (facts as { key?: string }).key);
  expect(reported).toEqual([keys.notebook, keys.entries]);

  for (const spoil of [
    (key: string) => redis.commands.lpush(key, 'a list'),
    (key: string) => redis.commands.set(key, 'null'),
    (key: string) => redis.commands.set(key, JSON.stringify({ content: 'x'.repeat(PAD_LIMITS.content + 1) })),
  ]) {
    const other = legacyPad();
    await spoil(legacyKeys(other).notebook);
    await append(plane, other, 1, 'a');
    expect(contentsOf(await look(plane, { ...other, legacyPending: false }))).toEqual(['a']);
    expect(await left(redis.commands, other)).toBe(1);
  }
  warn.mockRestore();
});

test('a list of any size comes over whole, also with several who want it at once', async () => {
  const { plane, redis } = world;
  const pad = legacyPad();
  const entries = Array.from({ length: 20_000 }, (_, index) => `${index} ${'x'.repeat(100)}`);
  await leaveState(redis.commands, pad, entries);
  const reads = [1, 2, 3].map(() => stateOf(plane, pad));
  const writes = ['a', 'b'].map((content) => append(plane, pad, 1, content));
  for (const state of await Promise.all(reads)) expect(state.entries.slice(0, 20_000)).toEqual(entries);
  await Promise.all(writes);
  const state = await look(plane, { ...pad, legacyPending: false });
  expect(state.count).toBe(20_002);
  expect(await redis.commands.exists(keysOf(pad).importing)).toBe(0);
  expect(await redis.commands.pttl(keysOf(pad).entries)).toBe(-1);
});

test('two readers and a writer at once: once', async () => {
  const { plane, redis } = world;
  for (let round = 0; round < 100; round += 1) {
    const pad = legacyPad({ ttlSeconds: round % 2 });
    await leaveState(redis.commands, pad);
    await Promise.all([stateOf(plane, pad), append(plane, pad, 1, 'new'), stateOf(plane, pad)]);
    expect(await stateOf(plane, { ...pad, legacyPending: false })).toEqual({
      content: 'canonical',
      entries: ['e1', 'e2', 'new'],
    });
  }
});

/** A driver that is cut off at its `step`th command: before it is sent, or before its reply arrives. */
const cutOff = (
  redis: Redis,
  step: number,
  when: 'before' | 'after',
): { redis: Redis; steps: () => number } => {
  let count = 0;
  const proxy = new Proxy(redis, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]) => {
        count += 1;
        if (count > step || (count === step && when === 'before')) throw new Error('killed');
        const reply: unknown = await Reflect.apply(member, target, args);
        if (count >= step) throw new Error('killed');
        return reply;
      };
    },
  });
  return { redis: proxy, steps: () => count };
};

test.each([
  ['append', [true, ['e1', 'e2', 'new']]],
  ['read', [true, ['e1', 'e2']]],
  ['clear', [false, []]],
] as const)(
  'killed at every step of its import, the repeat does no harm (%s)',
  async (verb, [isKept, entries]) => {
    const { redis } = world;
    if (!(redis.commands instanceof Redis)) throw new Error('Not a single server.');
    for (const [size, body] of [
      [2, 'short'],
      [1_200, 'short'],
      [2, 'é'.repeat(40_000)],
    ] as const)
      for (const when of ['before', 'after'] as const)
        for (let step = 1, isOver = false; !isOver; step += 1) {
          const row = { pending: true };
          const pad = (): Pad => ({ ...base, legacyPending: row.pending });
          const base = legacyPad({ ttlSeconds: 1 });
          const many = Array.from({ length: size }, (_, index) => `e${index + 1}`);
          await leaveState(redis.commands, base, many, body);
          const killed = cutOff(redis.commands, step, when);
          const markLegacyChecked = async (): Promise<void> => {
            row.pending = false;
          };
          const dying = createPlane({ redis: killed.redis, markLegacyChecked });
          const outcome = await settled(1, (grant) => dying.importLegacy(pad(), grant)).catch(() => null);
          isOver = outcome?.kind === 'DONE' && killed.steps() < step;
          // What the killed one had laid aside is gone by then.
          await redis.commands.unlink(keysOf(base).importing);

          const plane = createPlane({ redis: redis.commands, markLegacyChecked });
          if (verb === 'append') await append(plane, pad(), 1, 'new');
          else if (verb === 'clear')
            await settled(1, (grant) => plane.clear(pad(), grant, newAuthor(), 'ALL'));
          const state = await stateOf(plane, pad());
          const expected = entries.length === 0 ? [] : [...many, ...entries.slice(2)];
          const content = isKept ? body : null;
          expect(state, `${when} step ${step}`).toEqual({ content, entries: expected });
          expect(row.pending).toBe(false);
        }
  },
);

test('what was imported does not expire before its old key is gone', async () => {
  const { plane, redis } = world;
  const pad = legacyPad({ ttlSeconds: 1 });
  await leaveNotebook(redis.commands, pad);
  const stuck = createPlane({
    redis: redis.commands,
    markLegacyChecked: () => Promise.reject(new Error('The database is away.')),
  });
  await expect(settled(1, (grant) => stuck.importLegacy(pad, grant))).rejects.toThrow('away');
  expect(await redis.commands.pttl(keysOf(pad).meta)).toBe(-1);
  done(await settled(1, (grant) => plane.importLegacy(pad, grant)));
  expect(await redis.commands.pttl(keysOf(pad).content)).toBeGreaterThan(25_000);
  expect(await left(redis.commands, pad)).toBe(0);
});

const draftsOf = (pad: Pad): Promise<string[]> =>
  world.redis.commands.keys(keysOf(pad).content.replace(/content$/, 'draft:*'));

/** Something happens before each script. */
const interrupted = (before: (call: number) => Promise<unknown>): Plane =>
  tappedPlane(world.redis, async (send, call) => {
    await before(call);
    return send();
  });

test('a long content is laid aside for its script, again where that was lost, and stands whole', async () => {
  const { plane, redis } = world;
  const content = '"'.repeat(PAD_LIMITS.content);
  for (const ttlSeconds of [0, 600]) {
    const pad = legacyPad({ ttlSeconds });
    await leaveNotebook(redis.commands, pad, content);
    const { mark } = (await plane.importLegacy(pad, grantAt(1))) as { mark: string };
    expect(await draftsOf(pad)).toEqual([]);
    const aside: number[] = [];
    const losing = interrupted(async (call) => {
      const drafts = await draftsOf(pad);
      if (call <= 2) aside.push(drafts.length);
      if (call === 1) await redis.commands.unlink(...drafts);
    });
    expect(await losing.importLegacy(pad, grantAt(1, mark))).toEqual({ kind: 'DONE' });
    expect(aside).toEqual([1, 1]);
    const state = await look(plane, { ...pad, legacyPending: false });
    expect(state.content?.text === content).toBe(true);
    expect(state.content).toMatchObject({ version: 1, updatedAt: '2023-11-14T22:13:20.250Z' });
    const { content: contentKey, meta } = keysOf(pad);
    expect(await redis.commands.pexpiretime(contentKey)).toBe(await redis.commands.pexpiretime(meta));
    expect(await draftsOf(pad)).toEqual([]);
  }
});

test('a long content that is not taken over leaves nothing laid aside', async () => {
  const { plane, redis } = world;
  const content = 'x'.repeat(PAD_LIMITS.content);
  const pad = legacyPad();
  await leaveNotebook(redis.commands, pad, content);
  const { mark } = (await plane.importLegacy(pad, grantAt(1))) as { mark: string };
  const overtaken = interrupted(async (call) => {
    if (call === 1) await setContent(plane, { ...pad, legacyPending: false }, 1, 'newer');
  });
  expect(await overtaken.importLegacy(pad, grantAt(1, mark))).toEqual({ kind: 'DONE' });
  expect((await stateOf(plane, pad)).content).toBe('newer');
  expect(await draftsOf(pad)).toEqual([]);

  const deleted = legacyPad();
  await leaveNotebook(redis.commands, deleted, content);
  const late = interrupted(() => plane.purge(deleted));
  expect(await late.importLegacy(deleted, grantAt(1))).toEqual({ kind: 'GONE' });
  expect(await redis.commands.keys(`*${deleted.scratchpadId}*`)).toEqual([keysOf(deleted).gone]);
});

test('a purge takes the old keys too, and nothing is imported after it', async () => {
  const { plane, redis } = world;
  const pad = legacyPad();
  await leaveNotebook(redis.commands, pad);
  await leaveState(redis.commands, pad);
  await plane.purge(pad);
  expect(await left(redis.commands, pad)).toBe(0);
  await leaveNotebook(redis.commands, pad);
  expect(await plane.importLegacy(pad, grantAt(1))).toEqual({ kind: 'GONE' });
  expect(await redis.commands.exists(keysOf(pad).content)).toBe(0);
});

test('in a Cluster the old keys lie in other slots', async () => {
  await using fleet = await startCluster();
  const redis = await openRedis(fleet.url);
  await redis.ping();
  const plane = createPlane({ redis: redis.commands, markLegacyChecked: () => Promise.resolve() });
  const pads = Array.from({ length: 12 }, () => legacyPad());
  for (const pad of pads) {
    await leaveNotebook(redis.commands, pad);
    await leaveState(redis.commands, pad);
  }
  for (const pad of pads) await append(plane, pad, 1, 'new');
  const page = { windows: null, after: null, before: null, limit: 10, isBackward: false };
  const states = await plane.read(
    pads.map((pad) => ({
      pad: { ...pad, legacyPending: false },
      grant: grantAt(1),
      wants: { content: true, pages: [page] },
    })),
  );
  for (const state of states)
    expect(state).toMatchObject({
      content: { text: 'canonical' },
      pages: [{ entries: [{ content: 'e1' }, { content: 'e2' }, { content: 'new' }] }],
    });
  for (const pad of pads) {
    expect(await left(redis.commands, pad)).toBe(0);
    // What is laid aside lies in the slot of the rest.
    const text = `${pad.scratchpadId}${'x'.repeat(100_000)}`;
    await setContent(plane, { ...pad, legacyPending: false }, 1, text);
    expect((await look(plane, { ...pad, legacyPending: false })).content?.text === text).toBe(true);
    await plane.purge(pad);
  }
  await redis.close();
});
