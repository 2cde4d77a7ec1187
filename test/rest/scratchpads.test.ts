import { describe, expect, test } from 'vitest';
import { newId } from '../../src/shared/ids.ts';
import { objectAs, parsedAs, type RestReply } from '../support/rest.ts';
import {
  extra,
  faults,
  PAD_GONE,
  problem,
  restScene,
  THREAD_GONE,
  TIME,
  tooShort,
} from '../support/restScene.ts';

/** Every row of the resource, by a client of its own that refuses fields it does not know. */
const scene = restScene();

describe('POST /v1/scratchpads', () => {
  test('makes the thread’s scratchpad, once', async () => {
    const thread = await scene.openThread('ada', 'nora');
    const reply = await scene.owner.post('/v1/scratchpads', { thread_id: thread });
    const made = parsedAs('ScratchpadRead', reply);
    expect(made).toMatchObject({ owner_id: scene.tenant.userId, thread_id: thread, meta_data: {} });
    expect(made.id).toMatch(/^sp_/);
    expect([made.created_at, made.updated_at].every((time) => TIME.test(String(time)))).toBe(true);
    const again = await scene.owner.post('/v1/scratchpads', { thread_id: thread });
    expect([problem(again), again.code]).toEqual([
      '409 {"detail":"Scratchpad already exists for this thread"}',
      'CONFLICT',
    ]);
  });

  test('makes one in a race of many', async () => {
    const thread = await scene.openThread('ada', 'nora');
    const replies = await Promise.all(
      Array.from({ length: 16 }, () => scene.owner.post('/v1/scratchpads', { thread_id: thread })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(15).fill(409)]);
  });

  test('is 404 for a thread that is missing or another’s, and 422 for a body that does not fit', async () => {
    const theirs = parsedAs('Thread', await scene.stranger.post('/v1/threads', {}));
    for (const id of [newId('Thread'), theirs.id, 'x', scene.padId])
      expect(problem(await scene.owner.post('/v1/scratchpads', { thread_id: id }))).toBe(THREAD_GONE);
    expect(faults(await scene.owner.post('/v1/scratchpads', {}))).toEqual([
      { type: 'missing', loc: ['body', 'thread_id'], msg: 'Field required', input: {} },
    ]);
    expect(faults(await scene.owner.post('/v1/scratchpads', { thread_id: '' }))).toEqual([
      tooShort('thread_id'),
    ]);
    for (const name of ['owner_id', 'user_id', 'tenant_id', 'scratchpad_id', 'meta_data'])
      expect(
        faults(await scene.owner.post('/v1/scratchpads', { thread_id: scene.threadId, [name]: 'x' })),
      ).toEqual([extra(name, 'x')]);
  });
});

describe('GET /v1/scratchpads', () => {
  const idsIn = (reply: RestReply): unknown[] => {
    const { object, data } = parsedAs('List', reply);
    expect(object).toBe('list');
    return (data as unknown[]).map((pad) => objectAs('ScratchpadRead', pad).id);
  };

  test('lists one’s own by the time of creation, all of them', async () => {
    const made = [scene.padId];
    for (let count = 0; count < 4; count += 1) made.push(await scene.newPad());
    expect(idsIn(await scene.owner.get('/v1/scratchpads'))).toEqual(made);
    expect(idsIn(await scene.stranger.get('/v1/scratchpads'))).toEqual([]);
  });

  test('pages, and says where the next page is', async () => {
    const made = [scene.padId];
    for (let count = 0; count < 4; count += 1) made.push(await scene.newPad());
    const walked: unknown[] = [];
    let path: string | undefined = '/v1/scratchpads?limit=2';
    let pages = 0;
    while (path !== undefined) {
      const reply: RestReply = await scene.owner.get(path);
      walked.push(...idsIn(reply));
      pages += 1;
      path = /^<([^>]+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1];
    }
    expect([walked, pages]).toEqual([made, 3]);
    const cursor = (await scene.owner.get('/v1/scratchpads?limit=4')).headers.get('x-cursor');
    expect(idsIn(await scene.owner.get(`/v1/scratchpads?after=${cursor}`))).toEqual(made.slice(4));
    expect((await scene.owner.get('/v1/scratchpads?limit=2&after=x')).code).toBe('INVALID_CURSOR');
    expect((await scene.owner.get('/v1/scratchpads?limit=0')).status).toBe(422);
  });

  test('streams what is asked for without parameters', async () => {
    const reply = await scene.owner.get('/v1/scratchpads');
    expect([reply.headers.get('transfer-encoding'), reply.headers.get('content-length')]).toEqual([
      'chunked',
      null,
    ]);
  });

  test('lists to a participant the pads of its threads', async () => {
    await scene.newPad();
    expect(idsIn(await scene.as('scout').get('/v1/scratchpads'))).toEqual([scene.padId]);
    expect(idsIn(await scene.as('nora').get('/v1/scratchpads'))).toEqual([]);
    await scene.remove('scout');
    expect(idsIn(await scene.as('scout').get('/v1/scratchpads'))).toEqual([scene.padId]);
    expect(idsIn(await scene.as('scout').get('/v1/scratchpads?limit=10'))).toEqual([scene.padId]);
  });
});

describe('GET, PATCH and DELETE /v1/scratchpads/{id}', () => {
  test('read it, by its id and by its thread', async () => {
    const reply = await scene.owner.get(`/v1/scratchpads/${scene.padId}`);
    expect(parsedAs('ScratchpadRead', reply)).toMatchObject({ id: scene.padId, thread_id: scene.threadId });
    for (const threads of ['/v1/threads', '/api/v1/threads'])
      expect((await scene.owner.get(`${threads}/${scene.threadId}/scratchpad`)).text).toBe(reply.text);
    expect((await scene.as('ada').get(`/v1/scratchpads/${scene.padId}`)).text).toBe(reply.text);
  });

  test('say 404 for what is not there, and never make one', async () => {
    const thread = await scene.openThread('ada', 'nora');
    expect(problem(await scene.owner.get(`/v1/threads/${thread}/scratchpad`))).toBe(PAD_GONE);
    expect(problem(await scene.owner.get(`/v1/threads/${newId('Thread')}/scratchpad`))).toBe(THREAD_GONE);
    expect(problem(await scene.as('nora').get(`/v1/threads/${scene.threadId}/scratchpad`))).toBe(THREAD_GONE);
    for (const id of [newId('Scratchpad'), 'x', scene.threadId])
      for (const reply of [
        await scene.owner.get(`/v1/scratchpads/${id}`),
        await scene.owner.patch(`/v1/scratchpads/${id}`, { meta_data: {} }),
        await scene.owner.patch(`/v1/scratchpads/${id}`, {}),
        await scene.owner.delete(`/v1/scratchpads/${id}`),
      ])
        expect(problem(reply)).toBe(PAD_GONE);
  });

  test('replace the metadata whole, or change nothing', async () => {
    const patch = (body: unknown) => scene.owner.patch(`/v1/scratchpads/${scene.padId}`, body);
    const before = parsedAs('ScratchpadRead', await scene.owner.get(`/v1/scratchpads/${scene.padId}`));
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
    expect((await scene.as('ada').patch(`/v1/scratchpads/${scene.padId}`, { meta_data: {} })).status).toBe(
      403,
    );
  });

  test('delete it, once, with all that is in it', async () => {
    await scene.owner.post(scene.entries(), { content: 'a finding' });
    expect((await scene.as('ada').delete(`/v1/scratchpads/${scene.padId}`)).status).toBe(403);
    const reply = await scene.owner.delete(`/v1/scratchpads/${scene.padId}`);
    expect(parsedAs('ScratchpadDeleted', reply)).toEqual({
      id: scene.padId,
      object: 'scratchpad.deleted',
      deleted: true,
    });
    for (const gone of [
      await scene.owner.delete(`/v1/scratchpads/${scene.padId}`),
      await scene.owner.get(`/v1/scratchpads/${scene.padId}`),
      await scene.owner.get(scene.content()),
      await scene.owner.get(scene.entries()),
      await scene.owner.put(scene.content(), { content: 'x' }),
      await scene.owner.post(scene.entries(), { content: 'x' }),
      await scene.owner.delete(scene.content()),
      await scene.owner.delete(scene.entries()),
      await scene.owner.post(`/v1/scratchpads/${scene.padId}/clear`),
    ])
      expect(problem(gone)).toBe(PAD_GONE);
    const next = parsedAs(
      'ScratchpadRead',
      await scene.owner.post('/v1/scratchpads', { thread_id: scene.threadId }),
    );
    expect(next.id).not.toBe(scene.padId);
  });
});
