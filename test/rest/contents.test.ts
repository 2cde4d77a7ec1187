import { describe, expect, test } from 'vitest';
import { parsedAs, type RestReply } from '../support/rest.ts';
import { extra, faults, problem, restScene, TIME, tooShort } from '../support/restScene.ts';

/** Every row of content and entries, by a client of its own that refuses fields it does not know. */
const scene = restScene();

describe('content', () => {
  test('is empty, not missing, where nothing was written', async () => {
    const reply = await scene.owner.get(scene.content());
    expect(parsedAs('ContentRead', reply)).toEqual({
      scratchpad_id: scene.padId,
      content: '',
      updated_at: null,
    });
    expect(reply.headers.get('etag')).toBe('""');
    expect(reply.headers.get('x-expires-at')).toBeNull();
  });

  test('is replaced, and read as it was written', async () => {
    const text = ' Plan:\n1. 数据 🧭 "quoted" \\ \t\r\n';
    const written = await scene.owner.put(scene.content(), { content: text });
    const { content: echoed, updated_at: at } = parsedAs('ContentRead', written);
    expect([echoed, TIME.test(String(at))]).toEqual([text, true]);
    const reply = await scene.owner.get(scene.content());
    expect(reply.text).toBe(written.text);
    expect(reply.headers.get('etag')).toBe(written.headers.get('etag'));
    expect(reply.headers.get('etag')).toMatch(/^"[\w-]+"$/);
    expect(reply.headers.get('x-cursor')).toBe(written.headers.get('x-cursor'));
    const empty = parsedAs('ContentRead', await scene.owner.put(scene.content(), { content: '' }));
    expect(empty.content).toBe('');
    expect(empty.updated_at).not.toBeNull();
  });

  test('does not move the resource’s updated_at', async () => {
    const before = await scene.owner.get(`/v1/scratchpads/${scene.padId}`);
    await scene.owner.put(scene.content(), { content: 'x' });
    await scene.owner.post(scene.entries(), { content: 'y' });
    await scene.owner.post(`/v1/scratchpads/${scene.padId}/clear`);
    expect((await scene.owner.get(`/v1/scratchpads/${scene.padId}`)).text).toBe(before.text);
  });

  test('is replaced on condition with If-Match', async () => {
    const put = (text: string, etag: string) =>
      scene.owner.put(scene.content(), { content: text }, { 'if-match': etag });
    const first = await put('one', '""');
    expect(first.status).toBe(200);
    const etag = first.headers.get('etag') ?? '';
    const refused = await put('two', '""');
    expect([refused.status, refused.code, refused.headers.get('etag')]).toEqual([
      412,
      'VERSION_CONFLICT',
      etag,
    ]);
    expect((await put('two', etag)).status).toBe(200);
    expect((await put('three', etag)).status).toBe(412);
    const bare = (await scene.owner.get(scene.content())).headers.get('etag')?.slice(1, -1) ?? '';
    const third = await put('three', bare);
    expect(third.status).toBe(200);
    expect((await put('four', `W/${third.headers.get('etag')}`)).status).toBe(200);
    expect((await put('five', '*')).status).toBe(200);
    expect((await put('six', '"a", "b"')).status).toBe(422);
    expect((await put('six', '')).status).toBe(422);
    expect((await scene.readContent()).content).toBe('five');
    expect((await put('seven', '"nothing-1"')).status).toBe(412);
    expect((await scene.owner.put(scene.content(), { content: 'last writer' })).status).toBe(200);
  });

  test('lets exactly one of many win an etag', async () => {
    const etag = (await scene.owner.put(scene.content(), { content: 'start' })).headers.get('etag') ?? '';
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        scene.owner.put(scene.content(), { content: `by ${index}` }, { 'if-match': etag }),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(412)]);
  });

  test('refuses what does not fit', async () => {
    expect(faults(await scene.owner.put(scene.content(), {}))).toEqual([
      { type: 'missing', loc: ['body', 'content'], msg: 'Field required', input: {} },
    ]);
    expect(faults(await scene.owner.put(scene.content(), { content: 5 }))).toMatchObject([
      { type: 'string_type' },
    ]);
    expect(faults(await scene.owner.put(scene.content(), { content: null }))).toMatchObject([
      { type: 'string_type' },
    ]);
    expect(faults(await scene.owner.put(scene.content(), { content: 'x', owner_id: 'y' }))).toEqual([
      extra('owner_id', 'y'),
    ]);
    const limit = 1024 * 1024;
    expect((await scene.owner.put(scene.content(), { content: 'x'.repeat(limit) })).status).toBe(200);
    // A megabyte that is six when it is escaped is a megabyte.
    expect((await scene.owner.put(scene.content(), { content: '\u0001'.repeat(limit) })).status).toBe(200);
    const tooLong = await scene.owner.put(scene.content(), { content: 'x'.repeat(limit + 1) });
    expect([problem(tooLong), tooLong.code]).toEqual([
      '413 {"detail":"content is larger than 1048576 bytes."}',
      'PAYLOAD_TOO_LARGE',
    ]);
    const huge = await scene.owner.put(scene.content(), { content: 'x'.repeat(9 * limit) });
    expect([huge.status, huge.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });
});

describe('entries', () => {
  test('are appended and listed, oldest first', async () => {
    const texts = ['one', ' ', '\n', 'zwei 数据 🧭', 'one'];
    for (const [index, text] of texts.entries()) {
      const reply = await scene.owner.post(scene.entries(), { content: text });
      const entry = parsedAs('EntryRead', reply);
      expect(entry).toMatchObject({ scratchpad_id: scene.padId, content: text });
      expect(TIME.test(String(entry.created_at))).toBe(true);
      expect(reply.headers.get('x-entry-seq')).toBe(String(index + 1));
      expect(reply.headers.get('x-cursor')).not.toBeNull();
    }
    expect(await scene.readEntries()).toEqual(texts);
  });

  test('are pages, and go on where one was', async () => {
    const texts = Array.from({ length: 7 }, (_, index) => `entry ${index}`);
    const cursors: string[] = [];
    for (const text of texts)
      cursors.push(
        (await scene.owner.post(scene.entries(), { content: text })).headers.get('x-cursor') ?? '',
      );
    const walked: unknown[] = [];
    let path: string | undefined = `${scene.entries()}?limit=3`;
    while (path !== undefined) {
      const reply: RestReply = await scene.owner.get(path);
      walked.push(...(parsedAs('List', reply).data as { content: string }[]).map((entry) => entry.content));
      path = /^<([^>]+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1];
    }
    expect(walked).toEqual(texts);
    expect(await scene.readEntries(scene.owner, `${scene.entries()}?after=${cursors[4]}`)).toEqual(
      texts.slice(5),
    );
    const end = (await scene.owner.get(scene.entries())).headers.get('x-cursor');
    expect(await scene.readEntries(scene.owner, `${scene.entries()}?after=${end}`)).toEqual([]);
    await scene.owner.delete(scene.entries());
    await scene.owner.post(scene.entries(), { content: 'after the clear' });
    expect(await scene.readEntries(scene.owner, `${scene.entries()}?after=${end}`)).toEqual([
      'after the clear',
    ]);
    expect((await scene.owner.get(`${scene.entries()}?after=x`)).code).toBe('INVALID_CURSOR');
    const other = `/v1/scratchpads/${await scene.newPad()}/entries`;
    expect((await scene.owner.get(`${other}?after=${end}`)).code).toBe('INVALID_CURSOR');
  });

  test('are one, however often one is sent with its key', async () => {
    const key = { 'idempotency-key': 'k-1' };
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => scene.owner.post(scene.entries(), { content: 'once' }, key)),
    );
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(new Set(replies.map(({ headers }) => headers.get('x-entry-seq')))).toEqual(new Set(['1']));
    expect(await scene.readEntries()).toEqual(['once']);
    const other = await scene.owner.post(scene.entries(), { content: 'something else' }, key);
    expect([other.status, other.code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
    expect(
      faults(
        await scene.owner.post(scene.entries(), { content: 'x' }, { 'idempotency-key': 'k'.repeat(129) }),
      ),
    ).toMatchObject([{ type: 'value_error', loc: ['header', 'Idempotency-Key'] }]);
    await scene.owner.post(scene.entries(), { content: 'without a key' });
    await scene.owner.post(scene.entries(), { content: 'without a key' });
    expect(await scene.readEntries()).toEqual(['once', 'without a key', 'without a key']);
  });

  test('lose none of many at once', async () => {
    const texts = Array.from({ length: 120 }, (_, index) => `note ${index}`);
    const replies = await Promise.all(
      texts.map((text) => scene.owner.post(scene.entries(), { content: text })),
    );
    expect(replies.every(({ status }) => status === 200)).toBe(true);
    expect((await scene.readEntries()).sort()).toEqual([...texts].sort());
    const seqs = replies.map(({ headers }) => Number(headers.get('x-entry-seq'))).sort((a, b) => a - b);
    expect(seqs).toEqual(texts.map((_, index) => index + 1));
  });

  test('are listed whole, also where they are more than one read takes', async () => {
    const texts = Array.from({ length: 2_300 }, (_, index) => `note ${index} ${'x'.repeat(700)}`);
    for (let start = 0; start < texts.length; start += 1_000)
      await scene.server.graphql(
        scene.tenant.apiKey,
        'mutation($input: AppendScratchpadEntriesInput!) { appendScratchpadEntries(input: $input) { cursor } }',
        { input: { scratchpadId: scene.padId, contents: texts.slice(start, start + 1_000) } },
      );
    expect(await scene.readEntries()).toEqual(texts);
  });

  test('refuse what does not fit', async () => {
    expect(faults(await scene.owner.post(scene.entries(), {}))).toEqual([
      { type: 'missing', loc: ['body', 'content'], msg: 'Field required', input: {} },
    ]);
    expect(faults(await scene.owner.post(scene.entries(), { content: '' }))).toEqual([tooShort('content')]);
    expect(
      faults(await scene.owner.post(scene.entries(), { content: 'x', scratchpad_id: scene.padId })),
    ).toEqual([extra('scratchpad_id', scene.padId)]);
    expect(faults(await scene.owner.post(scene.entries(), { content: ['x'] }))).toMatchObject([
      { type: 'string_type' },
    ]);
    const tooLong = await scene.owner.post(scene.entries(), { content: 'x'.repeat(64 * 1024 + 1) });
    expect([problem(tooLong), tooLong.code]).toEqual([
      '413 {"detail":"content is larger than 65536 bytes."}',
      'PAYLOAD_TOO_LARGE',
    ]);
    expect(await scene.readEntries()).toEqual([]);
  });
});

describe('clearing', () => {
  test.for([
    ['content', 'DELETE', '/content'],
    ['entries', 'DELETE', '/entries'],
    ['all', 'POST', '/clear'],
  ] as const)('%s', async ([scope, method, path]) => {
    const clear = () =>
      method === 'POST'
        ? scene.owner.post(`/v1/scratchpads/${scene.padId}${path}`)
        : scene.owner.delete(`/v1/scratchpads/${scene.padId}${path}`);
    const cleared = { id: scene.padId, object: 'scratchpad.state.cleared', scope, cleared: true };
    expect(parsedAs('StateCleared', await clear())).toEqual(cleared);
    await scene.owner.put(scene.content(), { content: 'the plan' });
    await scene.owner.post(scene.entries(), { content: 'a finding' });
    expect(parsedAs('StateCleared', await clear())).toEqual(cleared);
    const now = await scene.readContent();
    expect(now.content).toBe(scope === 'entries' ? 'the plan' : '');
    expect(now.updated_at === null).toBe(scope !== 'entries');
    expect(await scene.readEntries()).toEqual(scope === 'content' ? ['a finding'] : []);
    expect((await scene.owner.get(scene.content())).headers.get('etag') === '""').toBe(scope !== 'entries');
    expect((await scene.owner.get(`/v1/scratchpads/${scene.padId}`)).status).toBe(200);
    expect((await scene.owner.post(scene.entries(), { content: 'next' })).headers.get('x-entry-seq')).toBe(
      '2',
    );
  });
});

describe('members', () => {
  test('read and write as the user does', async () => {
    expect(
      parsedAs('ContentRead', await scene.as('scout').put(scene.content(), { content: 'by scout' })).content,
    ).toBe('by scout');
    await scene.as('ada').post(scene.entries(), { content: 'by ada' });
    await scene.acting('scout').post(scene.entries(), { content: 'as scout' });
    expect(await scene.readEntries(scene.as('scout'))).toEqual(['by ada', 'as scout']);
    expect((await scene.readContent(scene.as('ada'))).content).toBe('by scout');
    expect((await scene.as('ada').delete(scene.entries())).status).toBe(200);
  });

  test('who are removed keep what was theirs to see, and write nothing', async () => {
    await scene.as('scout').put(scene.content(), { content: 'plan' });
    await scene.as('scout').post(scene.entries(), { content: 'mine' }, { 'idempotency-key': 'k' });
    await scene.remove('scout');
    await scene.owner.post(scene.entries(), { content: 'in between' });
    await scene.owner.put(scene.content(), { content: 'changed' });
    const scout = scene.as('scout');
    for (const reply of [
      await scout.get(scene.content()),
      await scout.put(scene.content(), { content: 'x' }),
      await scout.post(scene.entries(), { content: 'x' }),
      await scout.delete(scene.content()),
      await scout.delete(scene.entries()),
      await scout.post(`/v1/scratchpads/${scene.padId}/clear`),
      await scout.post('/v1/tools/scratchpad/read', { thread_id: scene.threadId }),
      await scout.post('/v1/tools/scratchpad/update', { thread_id: scene.threadId, content: 'x' }),
      await scout.post('/v1/tools/scratchpad/append', { thread_id: scene.threadId, note: 'x' }),
    ]) {
      expect([reply.status, reply.code]).toEqual([409, 'PARTICIPANT_NOT_ACTIVE']);
      for (const name of ['etag', 'x-cursor', 'x-expires-at']) expect(reply.headers.has(name)).toBe(false);
      expect(reply.text).not.toMatch(/in between|changed/);
    }
    const listed = await scout.get(scene.entries());
    expect(listed.headers.has('x-expires-at')).toBe(false);
    expect(await scene.readEntries(scout)).toEqual(['mine']);
    expect(await scene.readEntries(scout, `${scene.entries()}?limit=5`)).toEqual(['mine']);
    const replayed = await scout.post(scene.entries(), { content: 'mine' }, { 'idempotency-key': 'k' });
    expect(parsedAs('EntryRead', replayed).content).toBe('mine');
    for (const name of ['x-cursor', 'x-entry-seq', 'x-expires-at'])
      expect([name, replayed.headers.has(name)]).toEqual([name, false]);
    await scene.readd('scout');
    await scene.owner.post(scene.entries(), { content: 'afterwards' });
    expect(await scene.readEntries(scout)).toEqual(['mine', 'afterwards']);
    expect((await scene.readContent(scout)).content).toBe('changed');
    expect(await scene.readEntries()).toEqual(['mine', 'in between', 'afterwards']);
  });
});

test('what expires says when', async () => {
  const made = await scene.server.graphql<{ updateScratchpad: unknown }>(
    scene.tenant.apiKey,
    'mutation($id: ID!) { updateScratchpad(input: { scratchpadId: $id, ttlSeconds: 3600 }) { scratchpad { id } } }',
    { id: scene.padId },
  );
  expect(made.errors).toBeUndefined();
  for (const reply of [
    await scene.owner.put(scene.content(), { content: 'x' }),
    await scene.owner.post(scene.entries(), { content: 'y' }),
    await scene.owner.get(scene.content()),
    await scene.owner.get(scene.entries()),
    await scene.owner.get(`${scene.entries()}?limit=1`),
  ]) {
    const at = Date.parse(reply.headers.get('x-expires-at') ?? '');
    expect(Math.abs(at - Date.now() - 3_600_000)).toBeLessThan(60_000);
  }
});
