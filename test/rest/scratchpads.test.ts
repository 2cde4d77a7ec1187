import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/rest/routes.ts';
import { newId } from '../../src/shared/ids.ts';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';
import {
  answered,
  createRestClient,
  objectAs,
  parsedAs,
  type RestClient,
  type RestReply,
} from '../support/rest.ts';

/** Every row of the contract, by a client of its own that refuses fields it does not know. */
let server: Server;
let tenant: Tenant;
let stranger: Tenant;
let owner: RestClient;
beforeAll(async () => {
  server = await startApp();
  stranger = await createTenant(server, { zoe: 'HUMAN' });
});
afterAll(() => server.close());

let threadId: string;
let padId: string;
beforeEach(async () => {
  tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT', nora: 'HUMAN' });
  owner = createRestClient(server, tenant.apiKey);
  threadId = await openThread('ada', 'scout');
  padId = String(parsedAs('ScratchpadRead', await owner.post('/v1/scratchpads', { thread_id: threadId })).id);
});

const idOf = (handle: string): string => tenant.participants[handle]?.id ?? '';
const as = (handle: string): RestClient => createRestClient(server, tenant.participants[handle]?.token ?? '');
const openThread = async (...handles: string[]): Promise<string> =>
  String(parsedAs('Thread', await owner.post('/v1/threads', { participant_ids: handles.map(idOf) })).id);
const newPad = async (): Promise<string> => {
  const { id } = parsedAs('Thread', await owner.post('/v1/threads', {}));
  return String(parsedAs('ScratchpadRead', await owner.post('/v1/scratchpads', { thread_id: id })).id);
};
const remove = (handle: string): Promise<RestReply> =>
  owner.post(`/v1/threads/${threadId}/participants/${idOf(handle)}/remove`);
const readd = (handle: string): Promise<RestReply> =>
  owner.post(`/v1/threads/${threadId}/participants/${idOf(handle)}/readd`);

const content = (): string => `/v1/scratchpads/${padId}/content`;
const entries = (): string => `/v1/scratchpads/${padId}/entries`;
const readContent = async (client = owner) => parsedAs('ContentRead', await client.get(content()));
const readEntries = async (client = owner, path = entries()): Promise<unknown[]> => {
  const { object, data } = parsedAs('List', await client.get(path));
  expect(object).toBe('list');
  return (data as unknown[]).map((entry) => objectAs('EntryRead', entry)).map((entry) => entry.content);
};

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const problem = ({ status, text }: RestReply): string => `${status} ${text}`;
const THREAD_GONE = '404 {"detail":"Thread not found"}';
const PAD_GONE = '404 {"detail":"Scratchpad not found"}';
const faults = (reply: RestReply): unknown => {
  expect([reply.status, reply.code]).toEqual([422, 'BAD_USER_INPUT']);
  return (reply.body as { detail: unknown }).detail;
};
const extra = (name: string, input: unknown) => ({
  type: 'extra_forbidden',
  loc: ['body', name],
  msg: 'Extra inputs are not permitted',
  input,
});
const TOO_SHORT = (name: string) => ({
  type: 'string_too_short',
  loc: ['body', name],
  msg: 'String should have at least 1 character',
  input: '',
});

describe('POST /v1/scratchpads', () => {
  test('makes the thread’s scratchpad, once', async () => {
    const thread = await openThread('ada', 'nora');
    const reply = await owner.post('/v1/scratchpads', { thread_id: thread });
    const made = parsedAs('ScratchpadRead', reply);
    expect(made).toMatchObject({ owner_id: tenant.userId, thread_id: thread, meta_data: {} });
    expect(made.id).toMatch(/^sp_/);
    expect([made.created_at, made.updated_at].every((time) => TIME.test(String(time)))).toBe(true);
    const again = await owner.post('/v1/scratchpads', { thread_id: thread });
    expect([problem(again), again.code]).toEqual([
      '409 {"detail":"Scratchpad already exists for this thread"}',
      'CONFLICT',
    ]);
  });

  test('makes one in a race of many', async () => {
    const thread = await openThread('ada', 'nora');
    const replies = await Promise.all(
      Array.from({ length: 16 }, () => owner.post('/v1/scratchpads', { thread_id: thread })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(15).fill(409)]);
  });

  test('is 404 for a thread that is missing or another’s, and 422 for a body that does not fit', async () => {
    const theirs = parsedAs(
      'Thread',
      await createRestClient(server, stranger.apiKey).post('/v1/threads', {}),
    );
    for (const id of [newId('Thread'), theirs.id, 'x', padId])
      expect(problem(await owner.post('/v1/scratchpads', { thread_id: id }))).toBe(THREAD_GONE);
    expect(faults(await owner.post('/v1/scratchpads', {}))).toEqual([
      { type: 'missing', loc: ['body', 'thread_id'], msg: 'Field required', input: {} },
    ]);
    expect(faults(await owner.post('/v1/scratchpads', { thread_id: '' }))).toEqual([TOO_SHORT('thread_id')]);
    for (const name of ['owner_id', 'user_id', 'tenant_id', 'scratchpad_id', 'meta_data'])
      expect(faults(await owner.post('/v1/scratchpads', { thread_id: threadId, [name]: 'x' }))).toEqual([
        extra(name, 'x'),
      ]);
  });
});

describe('GET /v1/scratchpads', () => {
  const idsIn = (reply: RestReply): unknown[] => {
    const { object, data } = parsedAs('List', reply);
    expect(object).toBe('list');
    return (data as unknown[]).map((pad) => objectAs('ScratchpadRead', pad).id);
  };

  test('lists one’s own by the time of creation, all of them', async () => {
    const made = [padId];
    for (let count = 0; count < 4; count += 1) made.push(await newPad());
    expect(idsIn(await owner.get('/v1/scratchpads'))).toEqual(made);
    expect(idsIn(await createRestClient(server, stranger.apiKey).get('/v1/scratchpads'))).toEqual([]);
  });

  test('pages, and says where the next page is', async () => {
    const made = [padId];
    for (let count = 0; count < 4; count += 1) made.push(await newPad());
    const walked: unknown[] = [];
    let path: string | undefined = '/v1/scratchpads?limit=2';
    let pages = 0;
    while (path !== undefined) {
      const reply: RestReply = await owner.get(path);
      walked.push(...idsIn(reply));
      pages += 1;
      path = /^<([^>]+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1];
    }
    expect([walked, pages]).toEqual([made, 3]);
    const cursor = (await owner.get('/v1/scratchpads?limit=4')).headers.get('x-cursor');
    expect(idsIn(await owner.get(`/v1/scratchpads?after=${cursor}`))).toEqual(made.slice(4));
    expect((await owner.get('/v1/scratchpads?limit=2&after=x')).code).toBe('INVALID_CURSOR');
    expect((await owner.get('/v1/scratchpads?limit=0')).status).toBe(422);
  });

  test('streams what is asked for without parameters', async () => {
    const reply = await owner.get('/v1/scratchpads');
    expect([reply.headers.get('transfer-encoding'), reply.headers.get('content-length')]).toEqual([
      'chunked',
      null,
    ]);
  });

  test('lists to a participant the pads of its threads', async () => {
    await newPad();
    expect(idsIn(await as('scout').get('/v1/scratchpads'))).toEqual([padId]);
    expect(idsIn(await as('nora').get('/v1/scratchpads'))).toEqual([]);
    await remove('scout');
    expect(idsIn(await as('scout').get('/v1/scratchpads'))).toEqual([padId]);
    expect(idsIn(await as('scout').get('/v1/scratchpads?limit=10'))).toEqual([padId]);
  });
});

describe('GET, PATCH and DELETE /v1/scratchpads/{id}', () => {
  test('read it, by its id and by its thread', async () => {
    const reply = await owner.get(`/v1/scratchpads/${padId}`);
    expect(parsedAs('ScratchpadRead', reply)).toMatchObject({ id: padId, thread_id: threadId });
    for (const threads of ['/v1/threads', '/api/v1/threads'])
      expect((await owner.get(`${threads}/${threadId}/scratchpad`)).text).toBe(reply.text);
    expect((await as('ada').get(`/v1/scratchpads/${padId}`)).text).toBe(reply.text);
  });

  test('say 404 for what is not there, and never make one', async () => {
    const thread = await openThread('ada', 'nora');
    expect(problem(await owner.get(`/v1/threads/${thread}/scratchpad`))).toBe(PAD_GONE);
    expect(problem(await owner.get(`/v1/threads/${newId('Thread')}/scratchpad`))).toBe(THREAD_GONE);
    expect(problem(await as('nora').get(`/v1/threads/${threadId}/scratchpad`))).toBe(THREAD_GONE);
    for (const id of [newId('Scratchpad'), 'x', threadId])
      for (const reply of [
        await owner.get(`/v1/scratchpads/${id}`),
        await owner.patch(`/v1/scratchpads/${id}`, { meta_data: {} }),
        await owner.patch(`/v1/scratchpads/${id}`, {}),
        await owner.delete(`/v1/scratchpads/${id}`),
      ])
        expect(problem(reply)).toBe(PAD_GONE);
  });

  test('replace the metadata whole, or change nothing', async () => {
    const patch = (body: unknown) => owner.patch(`/v1/scratchpads/${padId}`, body);
    const before = parsedAs('ScratchpadRead', await owner.get(`/v1/scratchpads/${padId}`));
    expect((await patch({})).body).toEqual(before);
    expect((await patch({ meta_data: null })).body).toEqual(before);
    const first = parsedAs('ScratchpadRead', await patch({ meta_data: { a: 1, b: { c: [null] } } }));
    expect(first.meta_data).toEqual({ a: 1, b: { c: [null] } });
    expect(Date.parse(String(first.updated_at))).toBeGreaterThan(Date.parse(String(before.updated_at)));
    expect((await patch({ meta_data: null })).body).toEqual(first);
    expect(parsedAs('ScratchpadRead', await patch({ meta_data: { d: 2 } })).meta_data).toEqual({ d: 2 });
    expect(parsedAs('ScratchpadRead', await patch({ meta_data: {} })).meta_data).toEqual({});
    expect(faults(await patch({ meta_data: 'x' }))).toEqual([
      {
        type: 'dict_type',
        loc: ['body', 'meta_data'],
        msg: 'Input should be a valid dictionary',
        input: 'x',
      },
    ]);
    expect(faults(await patch({ title: 'x' }))).toEqual([extra('title', 'x')]);
    expect((await patch({ meta_data: { x: 'y'.repeat(17_000) } })).status).toBe(413);
    expect((await as('ada').patch(`/v1/scratchpads/${padId}`, { meta_data: {} })).status).toBe(403);
  });

  test('delete it, once, with all that is in it', async () => {
    await owner.post(entries(), { content: 'a finding' });
    expect((await as('ada').delete(`/v1/scratchpads/${padId}`)).status).toBe(403);
    const reply = await owner.delete(`/v1/scratchpads/${padId}`);
    expect(parsedAs('ScratchpadDeleted', reply)).toEqual({
      id: padId,
      object: 'scratchpad.deleted',
      deleted: true,
    });
    for (const gone of [
      await owner.delete(`/v1/scratchpads/${padId}`),
      await owner.get(`/v1/scratchpads/${padId}`),
      await owner.get(content()),
      await owner.get(entries()),
      await owner.put(content(), { content: 'x' }),
      await owner.post(entries(), { content: 'x' }),
      await owner.delete(content()),
      await owner.delete(entries()),
      await owner.post(`/v1/scratchpads/${padId}/clear`),
    ])
      expect(problem(gone)).toBe(PAD_GONE);
    const next = parsedAs('ScratchpadRead', await owner.post('/v1/scratchpads', { thread_id: threadId }));
    expect(next.id).not.toBe(padId);
  });
});

describe('content', () => {
  test('is empty, not missing, where nothing was written', async () => {
    const reply = await owner.get(content());
    expect(parsedAs('ContentRead', reply)).toEqual({ scratchpad_id: padId, content: '', updated_at: null });
    expect(reply.headers.get('etag')).toBe('""');
    expect(reply.headers.get('x-expires-at')).toBeNull();
  });

  test('is replaced, and read as it was written', async () => {
    const text = ' Plan:\n1. 数据 🧭 "quoted" \\ \t\r\n';
    const written = await owner.put(content(), { content: text });
    const { content: echoed, updated_at: at } = parsedAs('ContentRead', written);
    expect([echoed, TIME.test(String(at))]).toEqual([text, true]);
    const reply = await owner.get(content());
    expect(reply.text).toBe(written.text);
    expect(reply.headers.get('etag')).toBe(written.headers.get('etag'));
    expect(reply.headers.get('etag')).toMatch(/^"[\w-]+"$/);
    expect(reply.headers.get('x-cursor')).toBe(written.headers.get('x-cursor'));
    const empty = parsedAs('ContentRead', await owner.put(content(), { content: '' }));
    expect(empty.content).toBe('');
    expect(empty.updated_at).not.toBeNull();
  });

  test('does not move the resource’s updated_at', async () => {
    const before = await owner.get(`/v1/scratchpads/${padId}`);
    await owner.put(content(), { content: 'x' });
    await owner.post(entries(), { content: 'y' });
    await owner.post(`/v1/scratchpads/${padId}/clear`);
    expect((await owner.get(`/v1/scratchpads/${padId}`)).text).toBe(before.text);
  });

  test('is replaced on condition with If-Match', async () => {
    const put = (text: string, etag: string) => owner.put(content(), { content: text }, { 'if-match': etag });
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
    const bare = (await owner.get(content())).headers.get('etag')?.slice(1, -1) ?? '';
    const third = await put('three', bare);
    expect(third.status).toBe(200);
    expect((await put('four', `W/${third.headers.get('etag')}`)).status).toBe(200);
    expect((await put('five', '*')).status).toBe(200);
    expect((await put('six', '"a", "b"')).status).toBe(422);
    expect((await readContent()).content).toBe('five');
    expect((await put('seven', '"nothing-1"')).status).toBe(412);
    expect((await owner.put(content(), { content: 'last writer' })).status).toBe(200);
  });

  test('lets exactly one of many win an etag', async () => {
    const etag = (await owner.put(content(), { content: 'start' })).headers.get('etag') ?? '';
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        owner.put(content(), { content: `by ${index}` }, { 'if-match': etag }),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(412)]);
  });

  test('refuses what does not fit', async () => {
    expect(faults(await owner.put(content(), {}))).toEqual([
      { type: 'missing', loc: ['body', 'content'], msg: 'Field required', input: {} },
    ]);
    expect(faults(await owner.put(content(), { content: 5 }))).toMatchObject([{ type: 'string_type' }]);
    expect(faults(await owner.put(content(), { content: null }))).toMatchObject([{ type: 'string_type' }]);
    expect(faults(await owner.put(content(), { content: 'x', owner_id: 'y' }))).toEqual([
      extra('owner_id', 'y'),
    ]);
    const limit = 1024 * 1024;
    expect((await owner.put(content(), { content: 'x'.repeat(limit) })).status).toBe(200);
    // A megabyte that is six when it is escaped is a megabyte.
    expect((await owner.put(content(), { content: '\u0001'.repeat(limit) })).status).toBe(200);
    const tooLong = await owner.put(content(), { content: 'x'.repeat(limit + 1) });
    expect([problem(tooLong), tooLong.code]).toEqual([
      '413 {"detail":"content is larger than 1048576 bytes."}',
      'PAYLOAD_TOO_LARGE',
    ]);
    const huge = await owner.put(content(), { content: 'x'.repeat(9 * limit) });
    expect([huge.status, huge.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });
});

describe('entries', () => {
  test('are appended and listed, oldest first', async () => {
    const texts = ['one', ' ', '\n', 'zwei 数据 🧭', 'one'];
    for (const [index, text] of texts.entries()) {
      const reply = await owner.post(entries(), { content: text });
      const entry = parsedAs('EntryRead', reply);
      expect(entry).toMatchObject({ scratchpad_id: padId, content: text });
      expect(TIME.test(String(entry.created_at))).toBe(true);
      expect(reply.headers.get('x-entry-seq')).toBe(String(index + 1));
      expect(reply.headers.get('x-cursor')).not.toBeNull();
    }
    expect(await readEntries()).toEqual(texts);
  });

  test('are pages, and go on where one was', async () => {
    const texts = Array.from({ length: 7 }, (_, index) => `entry ${index}`);
    const cursors: string[] = [];
    for (const text of texts)
      cursors.push((await owner.post(entries(), { content: text })).headers.get('x-cursor') ?? '');
    const walked: unknown[] = [];
    let path: string | undefined = `${entries()}?limit=3`;
    while (path !== undefined) {
      const reply: RestReply = await owner.get(path);
      walked.push(...(parsedAs('List', reply).data as { content: string }[]).map((entry) => entry.content));
      path = /^<([^>]+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1];
    }
    expect(walked).toEqual(texts);
    expect(await readEntries(owner, `${entries()}?after=${cursors[4]}`)).toEqual(texts.slice(5));
    const end = (await owner.get(entries())).headers.get('x-cursor');
    expect(await readEntries(owner, `${entries()}?after=${end}`)).toEqual([]);
    await owner.delete(entries());
    await owner.post(entries(), { content: 'after the clear' });
    expect(await readEntries(owner, `${entries()}?after=${end}`)).toEqual(['after the clear']);
    expect((await owner.get(`${entries()}?after=x`)).code).toBe('INVALID_CURSOR');
    const other = `/v1/scratchpads/${await newPad()}/entries`;
    expect((await owner.get(`${other}?after=${end}`)).code).toBe('INVALID_CURSOR');
  });

  test('are one, however often one is sent with its key', async () => {
    const key = { 'idempotency-key': 'k-1' };
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => owner.post(entries(), { content: 'once' }, key)),
    );
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(new Set(replies.map(({ headers }) => headers.get('x-entry-seq')))).toEqual(new Set(['1']));
    expect(await readEntries()).toEqual(['once']);
    const other = await owner.post(entries(), { content: 'something else' }, key);
    expect([other.status, other.code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
    expect(
      faults(await owner.post(entries(), { content: 'x' }, { 'idempotency-key': 'k'.repeat(129) })),
    ).toMatchObject([{ type: 'value_error', loc: ['header', 'Idempotency-Key'] }]);
    await owner.post(entries(), { content: 'without a key' });
    await owner.post(entries(), { content: 'without a key' });
    expect(await readEntries()).toEqual(['once', 'without a key', 'without a key']);
  });

  test('lose none of many at once', async () => {
    const texts = Array.from({ length: 120 }, (_, index) => `note ${index}`);
    const replies = await Promise.all(texts.map((text) => owner.post(entries(), { content: text })));
    expect(replies.every(({ status }) => status === 200)).toBe(true);
    expect((await readEntries()).sort()).toEqual([...texts].sort());
    const seqs = replies.map(({ headers }) => Number(headers.get('x-entry-seq'))).sort((a, b) => a - b);
    expect(seqs).toEqual(texts.map((_, index) => index + 1));
  });

  test('are listed whole, also where they are more than one read takes', async () => {
    const texts = Array.from({ length: 2_300 }, (_, index) => `note ${index} ${'x'.repeat(700)}`);
    for (let start = 0; start < texts.length; start += 1_000)
      await server.graphql(
        tenant.apiKey,
        'mutation($input: AppendScratchpadEntriesInput!) { appendScratchpadEntries(input: $input) { cursor } }',
        { input: { scratchpadId: padId, contents: texts.slice(start, start + 1_000) } },
      );
    expect(await readEntries()).toEqual(texts);
  });

  test('refuse what does not fit', async () => {
    expect(faults(await owner.post(entries(), {}))).toEqual([
      { type: 'missing', loc: ['body', 'content'], msg: 'Field required', input: {} },
    ]);
    expect(faults(await owner.post(entries(), { content: '' }))).toEqual([TOO_SHORT('content')]);
    expect(faults(await owner.post(entries(), { content: 'x', scratchpad_id: padId }))).toEqual([
      extra('scratchpad_id', padId),
    ]);
    expect(faults(await owner.post(entries(), { content: ['x'] }))).toMatchObject([{ type: 'string_type' }]);
    const tooLong = await owner.post(entries(), { content: 'x'.repeat(64 * 1024 + 1) });
    expect([problem(tooLong), tooLong.code]).toEqual([
      '413 {"detail":"content is larger than 65536 bytes."}',
      'PAYLOAD_TOO_LARGE',
    ]);
    expect(await readEntries()).toEqual([]);
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
        ? owner.post(`/v1/scratchpads/${padId}${path}`)
        : owner.delete(`/v1/scratchpads/${padId}${path}`);
    const cleared = { id: padId, object: 'scratchpad.state.cleared', scope, cleared: true };
    expect(parsedAs('StateCleared', await clear())).toEqual(cleared);
    await owner.put(content(), { content: 'the plan' });
    await owner.post(entries(), { content: 'a finding' });
    expect(parsedAs('StateCleared', await clear())).toEqual(cleared);
    const now = await readContent();
    expect(now.content).toBe(scope === 'entries' ? 'the plan' : '');
    expect(now.updated_at === null).toBe(scope !== 'entries');
    expect(await readEntries()).toEqual(scope === 'content' ? ['a finding'] : []);
    expect((await owner.get(content())).headers.get('etag') === '""').toBe(scope !== 'entries');
    expect((await owner.get(`/v1/scratchpads/${padId}`)).status).toBe(200);
    expect((await owner.post(entries(), { content: 'next' })).headers.get('x-entry-seq')).toBe('2');
  });
});

describe('members', () => {
  test('read and write as the user does', async () => {
    expect(parsedAs('ContentRead', await as('scout').put(content(), { content: 'by scout' })).content).toBe(
      'by scout',
    );
    await as('ada').post(entries(), { content: 'by ada' });
    await createRestClient(server, tenant.apiKey, idOf('scout')).post(entries(), { content: 'as scout' });
    expect(await readEntries(as('scout'))).toEqual(['by ada', 'as scout']);
    expect((await readContent(as('ada'))).content).toBe('by scout');
    expect((await as('ada').delete(entries())).status).toBe(200);
  });

  test('who are removed keep what was theirs to see, and write nothing', async () => {
    await as('scout').put(content(), { content: 'plan' });
    await as('scout').post(entries(), { content: 'mine' }, { 'idempotency-key': 'k' });
    await remove('scout');
    await owner.post(entries(), { content: 'in between' });
    await owner.put(content(), { content: 'changed' });
    const scout = as('scout');
    for (const reply of [
      await scout.get(content()),
      await scout.put(content(), { content: 'x' }),
      await scout.post(entries(), { content: 'x' }),
      await scout.delete(content()),
      await scout.delete(entries()),
      await scout.post(`/v1/scratchpads/${padId}/clear`),
      await scout.post('/v1/tools/scratchpad/read', { thread_id: threadId }),
      await scout.post('/v1/tools/scratchpad/update', { thread_id: threadId, content: 'x' }),
      await scout.post('/v1/tools/scratchpad/append', { thread_id: threadId, note: 'x' }),
    ]) {
      expect([reply.status, reply.code]).toEqual([409, 'PARTICIPANT_NOT_ACTIVE']);
      for (const name of ['etag', 'x-cursor', 'x-expires-at']) expect(reply.headers.has(name)).toBe(false);
      expect(reply.text).not.toMatch(/in between|changed/);
    }
    const listed = await scout.get(entries());
    expect(listed.headers.has('x-expires-at')).toBe(false);
    expect(await readEntries(scout)).toEqual(['mine']);
    expect(await readEntries(scout, `${entries()}?limit=5`)).toEqual(['mine']);
    const replayed = await scout.post(entries(), { content: 'mine' }, { 'idempotency-key': 'k' });
    expect(parsedAs('EntryRead', replayed).content).toBe('mine');
    await readd('scout');
    await owner.post(entries(), { content: 'afterwards' });
    expect(await readEntries(scout)).toEqual(['mine', 'afterwards']);
    expect((await readContent(scout)).content).toBe('changed');
    expect(await readEntries()).toEqual(['mine', 'in between', 'afterwards']);
  });
});

test('what expires says when', async () => {
  const made = await server.graphql<{ updateScratchpad: unknown }>(
    tenant.apiKey,
    'mutation($id: ID!) { updateScratchpad(input: { scratchpadId: $id, ttlSeconds: 3600 }) { scratchpad { id } } }',
    { id: padId },
  );
  expect(made.errors).toBeUndefined();
  for (const reply of [
    await owner.put(content(), { content: 'x' }),
    await owner.post(entries(), { content: 'y' }),
    await owner.get(content()),
    await owner.get(entries()),
    await owner.get(`${entries()}?limit=1`),
  ]) {
    const at = Date.parse(reply.headers.get('x-expires-at') ?? '');
    expect(Math.abs(at - Date.now() - 3_600_000)).toBeLessThan(60_000);
  }
});

describe.each(['/v1/tools/scratchpad', '/tools/scratchpad'])('%s', (tools) => {
  test('reads, updates and appends by thread, and makes the scratchpad', async () => {
    const thread = await openThread('ada', 'nora');
    const read = async (client = owner): Promise<string> =>
      String(parsedAs('ToolRead', await client.post(`${tools}/read`, { thread_id: thread })).content);
    const empty = await read();
    expect(empty).toMatch(/^\(.*update_scratchpad.*\)$/s);
    expect((await owner.get(`/v1/threads/${thread}/scratchpad`)).status).toBe(200);
    expect(
      (
        await owner.post(`${tools}/update`, {
          thread_id: thread,
          content: 'The plan.',
          user_id: 'x',
          mode: 1,
        })
      ).text,
    ).toBe('{"status":"success","message":"Scratchpad updated successfully."}');
    expect(await read()).toBe(
      '--- 📝 RESEARCH SCRATCHPAD ---\n\nWORKING BODY\nThe plan.\n\nAPPENDED ENTRIES\n(none)',
    );
    for (const note of ['first', 'second'])
      expect((await as('ada').post(`${tools}/append`, { thread_id: thread, note })).text).toBe(
        '{"status":"success","message":"Note appended successfully."}',
      );
    expect(await read(as('nora'))).toContain('[1] first\n[2] second');
    await owner.post(`${tools}/update`, { thread_id: thread, content: '' });
    expect(await read()).toContain('WORKING BODY\n(empty)');
  });

  test('says 404 for a thread that is not the caller’s, and makes nothing', async () => {
    const theirs = parsedAs(
      'Thread',
      await createRestClient(server, stranger.apiKey).post('/v1/threads', {}),
    );
    const thread = await openThread('ada', 'nora');
    for (const [client, id] of [
      [owner, newId('Thread')],
      [owner, theirs.id],
      [owner, 'x'],
      [owner, ''],
      [as('scout'), thread],
    ] as const)
      for (const [tool, rest] of [
        ['read', {}],
        ['update', { content: 'x' }],
        ['append', { note: 'x' }],
      ] as const)
        expect(problem(await client.post(`${tools}/${tool}`, { thread_id: id, ...rest }))).toBe(THREAD_GONE);
    expect(problem(await owner.get(`/v1/threads/${thread}/scratchpad`))).toBe(PAD_GONE);
  });

  test('refuses an empty note and what is missing', async () => {
    expect(faults(await owner.post(`${tools}/append`, { thread_id: threadId, note: '' }))).toEqual([
      TOO_SHORT('note'),
    ]);
    expect(faults(await owner.post(`${tools}/append`, { thread_id: threadId }))).toMatchObject([
      { type: 'missing', loc: ['body', 'note'] },
    ]);
    expect(faults(await owner.post(`${tools}/update`, { thread_id: threadId }))).toMatchObject([
      { type: 'missing', loc: ['body', 'content'] },
    ]);
    expect(faults(await owner.post(`${tools}/read`, {}))).toMatchObject([
      { type: 'missing', loc: ['body', 'thread_id'] },
    ]);
    const tooLong = await owner.post(`${tools}/append`, { thread_id: threadId, note: 'x'.repeat(65_537) });
    expect(problem(tooLong)).toBe('413 {"detail":"note is larger than 65536 bytes."}');
  });
});

test('every scratchpad and tool route has answered, as its document says', () => {
  const wanted = ROUTES.filter(({ tag }) => tag !== 'threads').map(({ operationId }) => operationId);
  expect(wanted.filter((operationId) => !answered.has(operationId))).toEqual([]);
});
