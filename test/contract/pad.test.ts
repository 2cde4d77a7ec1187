import { afterAll, beforeAll, expect, test } from 'vitest';
import { NOWHERE, PAD_LIMITS } from '../../src/scratchpads/pad.ts';
import { kindOfId, readEntryId } from '../../src/shared/ids.ts';
import {
  append,
  changesAfter,
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
import { until } from '../support/until.ts';

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

test('entries stand in the order of their seq, with who wrote them, when and from what', async () => {
  const { plane } = world;
  const pad = newPad();
  const author = { authorId: 'part_a', runId: 'run_b', sourceIds: ['event_c', 'mem_d'] };
  const before = Date.now();
  const { entries, position } = done(
    await settled(7, (grant) =>
      plane.append(pad, grant, author, { contents: ['a', 'b "é"\n\u2028'], key: null }),
    ),
  );
  expect(entries).toMatchObject([
    { seq: 1, rev: 1, threadSeq: 7, content: 'a', ...author },
    { seq: 2, rev: 2, threadSeq: 7, content: 'b "é"\n\u2028', ...author },
  ]);
  const state = await look(plane, pad);
  expect(state.pages[0]?.entries).toEqual(entries);
  expect(state).toMatchObject({ position, count: 2, content: null, expiresAt: null });
  const at = Date.parse(entries[0]?.createdAt ?? '');
  expect(at).toBeGreaterThanOrEqual(before - 1);
  expect(at).toBeLessThanOrEqual(Date.now() + 1);
  expect(entries[0]?.createdAt).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

test('an entry’s id says where it stands', async () => {
  const pad = newPad();
  const { entries, position } = await append(world.plane, pad, 1, 'a', 'b');
  const id = entries[1]?.id ?? '';
  expect(kindOfId(id)).toBe('ScratchpadEntry');
  expect(readEntryId(id)).toEqual({ scratchpadId: pad.scratchpadId, epoch: position.epoch, seq: 2 });
  expect(readEntryId(`${id}0`)).toBeUndefined();
  expect(kindOfId(pad.scratchpadId.replace('sp_', 'entry_'))).toBeUndefined();
});

test('keys, types and values are those that other programs read', async () => {
  const pad = newPad();
  await append(world.plane, pad, 1, 'a');
  await setContent(world.plane, pad, 1, 'text');
  const { commands } = world.redis;
  const prefix = `scratchpad:${pad.ownerId}:{${pad.scratchpadId}}:`;
  expect((await commands.keys(`${prefix}*`)).sort()).toEqual(
    ['content', 'entries', 'idem', 'meta'].map((name) => prefix + name),
  );
  expect(JSON.parse((await commands.get(`${prefix}content`)) ?? '')).toMatchObject({
    content: 'text',
    updated_at: expect.stringMatching(/Z$/),
  });
  expect(JSON.parse((await commands.lindex(`${prefix}entries`, 0)) ?? '')).toMatchObject({
    content: 'a',
    created_at: expect.stringMatching(/Z$/),
  });
});

test('content is replaced by whoever names the present etag, or none', async () => {
  const { plane } = world;
  const pad = newPad();
  const set = (text: string, expectedEtag: string | null) =>
    settled(1, (grant) => plane.setContent(pad, grant, newAuthor(), { text, expectedEtag, key: null }));
  expect(await set('x', 'abcdefghjkmn-1')).toEqual({ kind: 'ETAG_DIFFERS', etag: '' });
  const first = done(await set('', '')).content;
  expect(first).toMatchObject({ text: '', version: 1 });
  expect(await set('x', '')).toEqual({ kind: 'ETAG_DIFFERS', etag: first.etag });
  const second = done(await set('two', first.etag)).content;
  expect(second.version).toBe(2);
  expect(await set('x', first.etag)).toEqual({ kind: 'ETAG_DIFFERS', etag: second.etag });
  expect(done(await set('three', null)).content.version).toBe(3);
  expect((await look(plane, pad)).content?.text).toBe('three');
  await settled(1, (grant) => plane.clear(pad, grant, newAuthor(), 'CONTENT'));
  expect(await set('x', second.etag)).toEqual({ kind: 'ETAG_DIFFERS', etag: '' });
  expect(done(await set('four', '')).content.version).toBe(4);
});

test('50 writers with one etag: one wins each time', async () => {
  const { plane } = world;
  const pad = newPad();
  let { etag } = (await setContent(plane, pad, 1, '0')).content;
  for (let round = 0; round < 20; round += 1) {
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, writer) =>
        plane.setContent(pad, grantAt(1), newAuthor(), {
          text: String(writer),
          expectedEtag: etag,
          key: null,
        }),
      ),
    );
    const won = outcomes.filter((outcome) => outcome.kind === 'DONE');
    expect(won).toHaveLength(1);
    etag = won[0]?.content.etag ?? '';
    for (const outcome of outcomes)
      if (outcome.kind !== 'DONE') expect(outcome).toEqual({ kind: 'ETAG_DIFFERS', etag });
  }
});

test('an old etag never matches again after a wipe', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  const { etag } = (await setContent(plane, pad, 1, 'one')).content;
  await redis.commands.unlink(...Object.values(keysOf(pad)));
  const outcome = await settled(1, (grant) =>
    plane.setContent(pad, grant, newAuthor(), { text: 'two', expectedEtag: etag, key: null }),
  );
  expect(outcome).toEqual({ kind: 'ETAG_DIFFERS', etag: '' });
  expect((await setContent(plane, pad, 1, 'two')).content.etag).not.toBe(etag);
});

test('the same key tells the first result again, whatever has changed since; other input is refused', async () => {
  const { plane } = world;
  const pad = newPad();
  const author = newAuthor();
  const input = { contents: ['a', 'b'], key: { key: 'append part_x k', hash: 'h' } };
  const first = await settled(1, (grant) => plane.append(pad, grant, author, input));
  await append(plane, pad, 1, 'c');
  await settled(1, (grant) => plane.clear(pad, grant, author, 'ALL'));
  await plane.raise(pad, 9);
  expect(await plane.append(pad, grantAt(1), author, input)).toEqual(first);
  expect(await plane.replayAppend(pad, author, input)).toEqual(first);
  const other = { ...input, key: { ...input.key, hash: 'i' } };
  expect(await plane.append(pad, grantAt(1), author, other)).toEqual({ kind: 'KEY_REUSED' });
  expect(await plane.replayAppend(pad, author, other)).toEqual({ kind: 'KEY_REUSED' });
  const unknown = { ...input, key: { key: 'another', hash: 'h' } };
  expect(await plane.replayAppend(pad, author, unknown)).toBeNull();
  expect((await look(plane, pad)).count).toBe(0);

  const content = { text: 't', expectedEtag: '', key: { key: 'set part_x k', hash: 'h' } };
  const set = await settled(9, (grant) => plane.setContent(pad, grant, author, content));
  await setContent(plane, pad, 9, 'later');
  expect(await plane.setContent(pad, grantAt(9), author, content)).toEqual(set);
  expect(await plane.replayContent(pad, author, content)).toEqual(set);
});

test('a key’s record lives for 24 h and is then forgotten by a later write', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  const { idem } = keysOf(pad);
  const keyed = (key: string) => ({ contents: [key], key: { key, hash: 'h' } });
  await settled(1, (grant) => plane.append(pad, grant, newAuthor(), keyed('old')));
  const life = 24 * 3_600_000;
  const [expiry = ''] = ((await redis.commands.hget(idem, 'k:old')) ?? '').split(' ');
  expect(Math.abs(Number(expiry) - Date.now() - life)).toBeLessThan(5_000);
  expect(Math.abs((await redis.commands.pttl(idem)) - life)).toBeLessThan(5_000);

  const age = async (field: string): Promise<void> => {
    const value = (await redis.commands.hget(idem, field)) ?? '';
    await redis.commands.hset(idem, field, value.replace(/^\d+/, '1'));
  };
  await age('k:old');
  await age('kq0');
  const again = done(await plane.append(pad, grantAt(1), newAuthor(), keyed('old')));
  expect(again.entries[0]?.seq).toBe(2);
  await plane.append(pad, grantAt(1), newAuthor(), keyed('new'));
  expect(await redis.commands.hexists(idem, 'kq0')).toBe(0);
  // The record that was made anew stays, though the old place in the queue is gone.
  expect(done(await plane.append(pad, grantAt(1), newAuthor(), keyed('old'))).entries[0]?.seq).toBe(2);
});

test('what goes over a limit is refused whole', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  const put = (...contents: string[]) =>
    settled(1, (grant) => plane.append(pad, grant, newAuthor(), { contents, key: null }));
  const refused = (what: string, limit: number) => ({ kind: 'TOO_LARGE', what, limit });
  done(await put('é'.repeat(32 * 1024)));
  expect(await put('fine', `${'é'.repeat(32 * 1024)}x`)).toEqual(refused('ENTRY', PAD_LIMITS.entry));
  expect(await put(...Array.from({ length: 1_001 }, () => 'x'))).toEqual(refused('BATCH_ENTRIES', 1_000));
  const part = 'x'.repeat(64 * 1024);
  done(await put(...Array.from({ length: 64 }, () => part)));
  expect(await put(...Array.from({ length: 64 }, () => part), 'x')).toEqual(
    refused('BATCH_BYTES', PAD_LIMITS.batchBytes),
  );
  const set = (text: string) =>
    settled(1, (grant) => plane.setContent(pad, grant, newAuthor(), { text, expectedEtag: null, key: null }));
  done(await set('x'.repeat(PAD_LIMITS.content)));
  expect(await set('é'.repeat(PAD_LIMITS.content / 2 + 1))).toEqual(refused('CONTENT', PAD_LIMITS.content));
  expect((await look(plane, pad)).count).toBe(65);

  const { meta } = keysOf(pad);
  const bytes = Number(await redis.commands.hget(meta, 'bytes'));
  expect(bytes).toBe(65 * 64 * 1024);
  await redis.commands.hset(meta, 'bytes', PAD_LIMITS.bytes - 2);
  expect(await put('a', 'bc')).toEqual(refused('PAD_BYTES', PAD_LIMITS.bytes));
  done(await put('a', 'b'));
  await settled(1, (grant) => plane.clear(pad, grant, newAuthor(), 'ENTRIES'));
  expect(await redis.commands.hget(meta, 'bytes')).toBe('0');
});

test('a pad takes 100,000 entries and no more', async () => {
  const { plane } = world;
  const pad = newPad();
  const batch = Array.from({ length: 1_000 }, () => 'x');
  for (let count = 0; count < 99; count += 1) await append(plane, pad, 1, ...batch);
  await append(plane, pad, 1, ...batch.slice(1));
  const put = (...contents: string[]) => plane.append(pad, grantAt(1), newAuthor(), { contents, key: null });
  expect(await put('a', 'b')).toEqual({ kind: 'TOO_LARGE', what: 'PAD_ENTRIES', limit: 100_000 });
  done(await put('last'));
  expect(await put('one more')).toMatchObject({ kind: 'TOO_LARGE' });
  expect((await look(plane, pad, { pages: [] })).count).toBe(100_000);
});

test('clears take what they name, count on, and are told; clearing what is empty changes nothing', async () => {
  const { plane } = world;
  const pad = newPad();
  const author = newAuthor();
  const clear = async (what: 'CONTENT' | 'ENTRIES' | 'ALL') =>
    done(await settled(2, (grant) => plane.clear(pad, grant, author, what))).position;
  expect(await clear('ALL')).toEqual(NOWHERE);
  await append(plane, pad, 1, 'a', 'b');
  await setContent(plane, pad, 1, 'text');
  expect((await clear('ENTRIES')).rev).toBe(4);
  expect((await clear('ENTRIES')).rev).toBe(4);
  expect(await look(plane, pad)).toMatchObject({ count: 0, content: { text: 'text' } });
  expect((await append(plane, pad, 2, 'c')).entries[0]).toMatchObject({ seq: 3, rev: 5 });
  expect(await clear('ALL')).toMatchObject({ rev: 7, seq: 3 });
  expect(await look(plane, pad)).toMatchObject({ count: 0, content: null });
  expect(await changesAfter(plane, pad)).toMatchObject([
    { kind: 'CONTENT_CLEARED', position: 6, actorId: author.authorId, threadSeq: 2, at: { rev: 6, seq: 3 } },
    { kind: 'ENTRIES_CLEARED', position: 7, actorId: author.authorId, threadSeq: 2 },
  ]);
});

test('all keys of a pad expire together, the longer the later it was written; then it begins anew', async () => {
  const { plane, redis } = world;
  const pad = newPad({ ttlSeconds: 100 });
  const { position } = await append(plane, pad, 1, 'a');
  const { meta, entries, content, idem } = keysOf(pad);
  await redis.commands.pexpire(meta, 5_000);
  await setContent(plane, pad, 1, 'text');
  const times = await Promise.all(
    [meta, entries, content, idem].map((key) => redis.commands.call('PEXPIRETIME', key)),
  );
  expect(new Set(times).size).toBe(1);
  expect(Math.abs(Number(times[0]) - Date.now() - 100_000)).toBeLessThan(5_000);
  expect((await look(plane, pad)).expiresAt).toBe(Number(times[0]));

  await plane.retime({ ...pad, ttlSeconds: 0 });
  expect((await look(plane, pad)).expiresAt).toBeNull();
  expect(await redis.commands.pttl(entries)).toBe(-1);
  await plane.retime({ ...pad, ttlSeconds: 1 });
  for (const key of [meta, entries, content, idem]) await redis.commands.pexpire(key, 1);
  await until(async () => (await redis.commands.exists(meta, entries, content, idem)) === 0);
  expect(await look(plane, pad)).toMatchObject({ position: NOWHERE, count: 0, content: null });
  const again = await append(plane, pad, 1, 'b');
  expect(again.position).toMatchObject({ rev: 1, seq: 1 });
  expect(again.position.epoch).not.toBe(position.epoch);
});

test.each(['meta', 'content', 'entries'] as const)(
  '%s evicted alone: the rest goes too, at once',
  async (gone) => {
    const { plane, redis } = world;
    const pad = newPad();
    const keys = keysOf(pad);
    const { position } = await append(plane, pad, 1, 'a', 'b');
    await setContent(plane, pad, 1, 'text');
    await redis.commands.unlink(keys[gone]);
    expect(await look(plane, pad, { position })).toMatchObject({
      position: NOWHERE,
      count: 0,
      content: null,
      positionHolds: false,
    });
    expect(await redis.commands.exists(...Object.values(keys))).toBe(0);
    expect(await plane.changes(pad, position, 10)).toBeNull();
  },
);

test('a purged pad refuses all that still comes, and leaves its tombstone alone', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  const author = newAuthor();
  const { position } = await append(plane, pad, 1, 'a');
  await setContent(plane, pad, 1, 'text');
  await plane.purge(pad);
  const GONE = { kind: 'GONE' };
  const key = { key: 'k', hash: 'h' };
  const content = { text: 'x', expectedEtag: null, key };
  expect(await plane.append(pad, grantAt(1), author, { contents: ['b'], key })).toEqual(GONE);
  expect(await plane.setContent(pad, grantAt(1), author, content)).toEqual(GONE);
  expect(await plane.clear(pad, grantAt(1), author, 'ALL')).toEqual(GONE);
  expect(await plane.replayContent(pad, author, content)).toEqual(GONE);
  expect(await plane.read([{ pad, grant: grantAt(1), wants: {} }])).toEqual([GONE]);
  expect(await plane.heads([pad])).toEqual([null]);
  expect(await plane.changes(pad, position, 10)).toBeNull();
  await plane.raise(pad, 2);
  await plane.retime(pad);
  const keys = await redis.commands.keys(`*${pad.scratchpadId}*`);
  expect(keys).toEqual([keysOf(pad).gone]);
  const life = await redis.commands.ttl(keysOf(pad).gone);
  expect(life).toBeGreaterThan(3_590);
  expect(life).toBeLessThanOrEqual(3_600);
});

test('1,000 appends that race a purge: none is left', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  await append(plane, pad, 1, 'a');
  const appends = Array.from({ length: 1_000 }, (_, index) => async () => {
    if (index === 500) await plane.purge(pad);
    return plane.append(pad, grantAt(1), newAuthor(), { contents: [String(index)], key: null });
  });
  const outcomes = await Promise.all(appends.map((one) => one()));
  expect(outcomes.at(-1)).toEqual({ kind: 'GONE' });
  expect(await redis.commands.keys(`*${pad.scratchpadId}*`)).toEqual([keysOf(pad).gone]);
});

test('64 concurrent writers leave every entry once, numbered without a gap', async () => {
  const { plane } = world;
  const pad = newPad();
  await append(plane, pad, 1, 'first');
  const write = async (writer: number): Promise<void> => {
    for (let count = 0; count < 25; count += 1) {
      const contents =
        count % 5 === 0 ? [`${writer}-${count}a`, `${writer}-${count}b`] : [`${writer}-${count}`];
      done(await plane.append(pad, grantAt(1), newAuthor(), { contents, key: null }));
      if (count % 9 === 0) await setContent(plane, pad, 1, `${writer}`);
    }
  };
  await Promise.all(Array.from({ length: 64 }, (_, writer) => write(writer)));
  const state = await look(plane, pad);
  const entries = state.pages[0]?.entries ?? [];
  expect(entries).toHaveLength(1 + 64 * 30);
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
  expect(new Set(contentsOf(state)).size).toBe(entries.length);
  expect(state.position.rev).toBe(entries.length + 64 * 3);
});

test('what the driver sends again acts once, whatever came in between', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  const resending = tappedPlane(redis, async (send) => {
    await send();
    await append(plane, pad, 1, 'between');
    return send();
  });
  await append(plane, pad, 1, 'first');
  const cleared = done(await resending.clear(pad, grantAt(1), newAuthor(), 'ALL'));
  expect(cleared.position).toMatchObject({ rev: 2, seq: 1 });
  const input = { contents: ['once'], key: null };
  const once = done(await resending.append(pad, grantAt(1), newAuthor(), input));
  expect(once.entries[0]).toMatchObject({ seq: 3, rev: 4 });
  const set = { text: 'text', expectedEtag: '', key: null };
  expect(done(await resending.setContent(pad, grantAt(1), newAuthor(), set)).content.version).toBe(1);
  expect(contentsOf(await look(plane, pad))).toEqual(['between', 'once', 'between', 'between']);
});

test('a server that has forgotten the scripts is told them again', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  await append(plane, pad, 1, 'a');
  await redis.commands.script('FLUSH');
  await append(plane, pad, 1, 'b');
  await redis.commands.script('FLUSH');
  const reads = [pad, pad, newPad()].map((one) => ({ pad: one, grant: grantAt(1), wants: {} }));
  expect(await plane.read(reads)).toMatchObject([{ count: 2 }, { count: 2 }, { count: 0 }]);
});

test('a body of any length stands whole, also in the place of a longer one, in no more than its own room', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  const texts = [
    8,
    16_000,
    16_382,
    16_383,
    16_384,
    100_000,
    PAD_LIMITS.content,
    40_000,
    10,
    PAD_LIMITS.content,
  ].map((length) => 'x'.repeat(length));
  texts.push('"'.repeat(200_000), 'é\n\u2028'.repeat(30_000), '');
  for (const [index, text] of texts.entries()) {
    const { content } = await setContent(plane, pad, 1, text);
    expect(content).toMatchObject({ text, version: index + 1 });
    expect((await look(plane, pad)).content).toEqual(content);
    const { content: key } = keysOf(pad);
    const stored = await redis.commands.strlen(key);
    expect(stored).toBe(Buffer.byteLength((await redis.commands.get(key)) ?? ''));
    const room = Number(await redis.commands.call('MEMORY', 'USAGE', key));
    if (stored > 65_536) expect(room).toBeLessThan(1.3 * stored);
  }
});
