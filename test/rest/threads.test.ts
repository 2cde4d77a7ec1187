import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ID_PREFIX, newId } from '../../src/shared/ids.ts';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';
import { createRestClient, objectAs, parsedAs, type RestClient, type RestReply } from '../support/rest.ts';

let server: Server;
let tenant: Tenant;
let owner: RestClient;
const newTenant = async (): Promise<void> => {
  tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT', rex: 'AGENT', nora: 'HUMAN' });
  owner = createRestClient(server, tenant.apiKey);
};
beforeAll(async () => {
  server = await startApp();
  await newTenant();
});
afterAll(() => server.close());

const idOf = (handle: string): string => tenant.participants[handle]?.id ?? '';
const as = (handle: string): RestClient => createRestClient(server, tenant.participants[handle]?.token ?? '');

interface ThreadBody {
  readonly id: string;
  readonly created_at: number;
  readonly meta_data: Record<string, unknown>;
  readonly participants: readonly { id: string; handle: string; kind: string; state: string }[];
}
const threadIn = (reply: RestReply): ThreadBody => parsedAs('Thread', reply) as unknown as ThreadBody;

const openThread = async (...handles: string[]): Promise<string> =>
  threadIn(await owner.post('/v1/threads', { participant_ids: handles.map(idOf) })).id;

const detailOf = ({ body }: RestReply): unknown => (body as { detail: unknown }).detail;
const typesOf = (reply: RestReply): unknown[] =>
  (detailOf(reply) as { type: string; loc: unknown[] }[]).map(({ type, loc }) => [type, ...loc]);

describe.each(['/v1/threads', '/api/v1/threads'])('%s', (threads) => {
  beforeAll(newTenant);

  test('opens the thread of a set, in whichever order, and reads it', async () => {
    const ids = [idOf('ada'), idOf('scout')];
    const first = await owner.post(threads, { participant_ids: ids });
    const opened = threadIn(first);
    expect(opened).toMatchObject({
      object: 'thread',
      owner_id: tenant.userId,
      participants: [
        { id: idOf('ada'), handle: 'ada', kind: 'HUMAN', state: 'ACTIVE' },
        { id: idOf('scout'), handle: 'scout', kind: 'AGENT', state: 'ACTIVE' },
      ],
    });
    expect(Number.isInteger(opened.created_at)).toBe(true);
    expect(Math.abs(opened.created_at - Date.now() / 1_000)).toBeLessThan(300);
    const again = await owner.post(threads, { participant_ids: [...ids].reverse().concat(ids) });
    expect(again.text).toBe(first.text);
    expect((await owner.get(`${threads}/${opened.id}`)).text).toBe(first.text);
  });

  test('opens a new thread each time where no participants are named', async () => {
    const made = [
      threadIn(await owner.post(threads, {})),
      threadIn(await owner.post(threads, { meta_data: {} })),
      threadIn(await owner.post(threads, { meta_data: { project: 'x' }, participant_ids: null })),
    ];
    expect(new Set(made.map(({ id }) => id)).size).toBe(3);
    expect(made.map(({ meta_data }) => meta_data)).toEqual([{}, {}, { project: 'x' }]);
    const owners = made.map(({ participants }) => participants.find(({ handle }) => handle === 'owner'));
    expect(new Set(owners.map((own) => own?.id)).size).toBe(1);
    expect(owners[0]?.kind).toBe('HUMAN');
    for (const { participants } of made)
      expect(participants.map(({ kind }) => kind).sort()).toEqual(['AGENT', 'HUMAN']);
  });

  test('makes the user’s own participant once, also for many at once', async () => {
    const other = await createTenant(server, { ada: 'HUMAN' });
    const client = createRestClient(server, other.apiKey);
    const made = await Promise.all(Array.from({ length: 12 }, () => client.post(threads, {})));
    const owners = made.map(
      (reply) => threadIn(reply).participants.find(({ handle }) => handle === 'owner')?.id,
    );
    expect(new Set(owners).size).toBe(1);
    expect(new Set(made.map((reply) => threadIn(reply).id)).size).toBe(12);
  });

  test('refuses fewer than two, and whoever is not there', async () => {
    for (const ids of [[], [idOf('ada')], [idOf('ada'), idOf('ada')]]) {
      const reply = await owner.post(threads, { participant_ids: ids });
      expect([reply.status, reply.code, typesOf(reply)]).toEqual([
        422,
        'BAD_USER_INPUT',
        [['value_error', 'body', 'participant_ids']],
      ]);
    }
    const stranger = await createTenant(server, { zoe: 'HUMAN' });
    for (const id of [stranger.participants.zoe?.id, newId('Participant'), 'x']) {
      const reply = await owner.post(threads, { participant_ids: [idOf('ada'), id] });
      expect([reply.status, reply.text, reply.code]).toEqual([
        404,
        '{"detail":"Participant not found"}',
        'NOT_FOUND',
      ]);
    }
  });

  test('deletes a thread once', async () => {
    const id = await openThread('ada', 'scout', 'rex', 'nora');
    const deleted = await owner.delete(`${threads}/${id}`);
    expect([deleted.status, deleted.body]).toEqual([200, { id, object: 'thread.deleted', deleted: true }]);
    for (const reply of [await owner.delete(`${threads}/${id}`), await owner.get(`${threads}/${id}`)])
      expect([reply.status, reply.text]).toEqual([404, '{"detail":"Thread not found"}']);
  });

  test('pages the record, posts, retracts, removes, re-adds and leaves', async () => {
    const id = await openThread('ada', 'rex');
    const ada = as('ada');
    const texts = ['one', 'two', 'three', 'four'];
    for (const content of texts) {
      const reply = await ada.post(`${threads}/${id}/messages`, { content });
      expect(reply.body).toMatchObject({ message: { content, sender: { handle: 'ada' }, thread_id: id } });
    }
    const posted = await owner.post(`${threads}/${id}/messages`, {
      as: idOf('rex'),
      content: '',
      data: { deep: [1, { two: null }] },
      context: { kind: 'observation' },
      mention_ids: [idOf('ada')],
      idempotency_key: 'k-1',
    });
    const { message, cursor } = posted.body as { message: { id: string; seq: number }; cursor: string };
    expect(message).toMatchObject({
      type: 'MESSAGE',
      data: { deep: [1, { two: null }] },
      context: { kind: 'observation', task: null, originating_message_id: null },
      mentions: [{ handle: 'ada' }],
      client_key: 'k-1',
      is_retracted: false,
    });
    expect(posted.headers.get('x-cursor')).toBe(cursor);
    const replayed = await owner.post(`${threads}/${id}/messages`, {
      as: idOf('rex'),
      content: '',
      data: { deep: [1, { two: null }] },
      context: { kind: 'observation' },
      mention_ids: [idOf('ada')],
      idempotency_key: 'k-1',
    });
    expect(replayed.text).toBe(posted.text);

    const retracted = await as('rex').post(`/v1/messages/${message.id}/retract`, { reason: 'too early' });
    expect(retracted.body).toMatchObject({ retraction: { message_id: message.id, reason: 'too early' } });
    const again = await as('rex').post(`/v1/messages/${message.id}/retract`, {});
    expect([again.status, again.code]).toEqual([409, 'ALREADY_RETRACTED']);

    const removed = await owner.post(`${threads}/${id}/participants/${idOf('rex')}/remove`);
    expect(removed.body).toMatchObject({ event: { transition: 'REMOVED', participant: { handle: 'rex' } } });
    const twice = await owner.post(`${threads}/${id}/participants/${idOf('rex')}/remove`);
    expect([twice.status, twice.code]).toEqual([409, 'INVALID_TRANSITION']);
    const late = await as('rex').post(`${threads}/${id}/messages`, { content: 'still here?' });
    expect([late.status, late.code]).toEqual([409, 'PARTICIPANT_NOT_ACTIVE']);
    await ada.post(`${threads}/${id}/messages`, { content: 'in between' });
    const back = await owner.post(`${threads}/${id}/participants/${idOf('rex')}/readd`);
    expect(back.body).toMatchObject({ event: { transition: 'READDED', from: 'REMOVED', to: 'ACTIVE' } });
    const left = await as('rex').post(`${threads}/${id}/leave`);
    expect(left.body).toMatchObject({ event: { transition: 'REMOVED', actor: { handle: 'rex' } } });

    interface Page {
      readonly data: readonly { seq: number; type: string; content?: string }[];
      readonly page_info: { has_next_page: boolean; has_previous_page: boolean; end_cursor: string };
      readonly end: string;
    }
    const pageOf = ({ body }: RestReply): Page => body as Page;
    const all = pageOf(await owner.get(`${threads}/${id}/events?limit=200`));
    expect(all.data.map(({ seq }) => seq)).toEqual(all.data.map((_, index) => index + 1));
    const walked: number[] = [];
    let path: string | null = `${threads}/${id}/events?limit=3&after=${await startOf(id)}`;
    while (path !== null) {
      const reply: RestReply = await owner.get(path);
      const { data, page_info: info, end } = pageOf(reply);
      walked.push(...data.map(({ seq }) => seq));
      expect(end).toBe(all.end);
      const next = /<([^>]+)>; rel="next"/.exec(reply.headers.get('link') ?? '');
      expect(next !== null).toBe(info.has_next_page);
      path = next?.[1] ?? null;
    }
    expect(walked).toEqual(all.data.map(({ seq }) => seq));
    const newest = pageOf(await owner.get(`${threads}/${id}/events?limit=2`));
    expect(newest.data).toEqual(all.data.slice(-2));
    const seenByRex = pageOf(await as('rex').get(`${threads}/${id}/events`));
    expect(seenByRex.data.map(({ content }) => content)).not.toContain('in between');
    expect(seenByRex.data.map(({ seq }) => seq)).toContain(all.data.length);
  });
});

/** The position before the first event. */
const startOf = async (threadId: string): Promise<string> => {
  const { data } = await server.graphql<{ thread: { timeline: { windows: { after: string }[] } } }>(
    tenant.apiKey,
    'query($id: ID!) { thread(id: $id) { timeline { windows { after } } } }',
    { id: threadId },
  );
  return data?.thread.timeline.windows[0]?.after ?? '';
};

describe('an agent', () => {
  beforeAll(newTenant);
  const ask = async <Data>(token: string, query: string, variables: object): Promise<Data> => {
    const { data, errors } = await server.graphql<Data>(token, query, { ...variables });
    if (!data || errors) throw new Error(JSON.stringify(errors));
    return data;
  };
  const tokenOf = (handle: string): string => tenant.participants[handle]?.token ?? '';
  const messagesIn = async (threadId: string) => {
    const { body } = await as('ada').get(`/v1/threads/${threadId}/events`);
    return (body as { data: { id: string; type: string; [field: string]: unknown }[] }).data.filter(
      ({ type }) => type === 'MESSAGE',
    );
  };

  test('answers what it took and acknowledges it in one commit, and not what is another delivery by now', async () => {
    const id = await openThread('ada', 'scout');
    const messages = `/v1/threads/${id}/messages`;
    const take = async (): Promise<string> => {
      const { takePending } = await ask<{
        takePending: { deliveries: { deliveryId: string | null }[] };
      }>(
        tokenOf('scout'),
        'mutation ($t: ID!) { takePending(input: { threadId: $t }) { deliveries { deliveryId } } }',
        { t: id },
      );
      return takePending.deliveries[0]?.deliveryId ?? '';
    };
    for (const content of ['first', 'second']) await as('ada').post(messages, { content });
    const first = await take();
    const answered = await as('scout').post(messages, { content: 'done', delivery_id: first });
    expect(answered.status).toBe(200);
    const second = await take();
    expect(second).not.toBe('');
    for (const [delivery, status, code] of [
      [first, 409, 'CONFLICT'],
      ['x', 404, 'NOT_FOUND'],
    ] as const) {
      const reply = await as('scout').post(messages, { content: 'again', delivery_id: delivery });
      expect([reply.status, reply.code]).toEqual([status, code]);
    }
    expect((await messagesIn(id)).map(({ content }) => content)).toEqual(['first', 'second', 'done']);
  });

  test('is shown the memories that its message derives from, and the run that it was written in', async () => {
    const id = await openThread('ada', 'scout');
    const { storeMemory } = await ask<{ storeMemory: { entry: { id: string } } }>(
      tokenOf('scout'),
      'mutation ($t: ID!) { storeMemory(input: { threadId: $t, payload: "a habit" }) { entry { id } } }',
      { t: id },
    );
    const memory = storeMemory.entry.id;
    const { delegateRun } = await ask<{ delegateRun: { run: { id: string }; token: string } }>(
      tenant.apiKey,
      `mutation ($p: ID!, $t: ID!) {
        delegateRun(input: { participantId: $p, conversationThreadId: $t }) { run { id } token } }`,
      { p: idOf('scout'), t: id },
    );
    const inRun = createRestClient(server, delegateRun.token);
    const posted = await inRun.post(`/v1/threads/${id}/messages`, { content: 'so', source_ids: [memory] });
    const mine = { run_id: delegateRun.run.id, source_ids: [memory] };
    expect(posted.body).toMatchObject({ message: mine });
    const read = async (client: RestClient): Promise<unknown> => {
      const { body } = await client.get(`/v1/threads/${id}/events`);
      return (body as { data: unknown[] }).data.at(-1);
    };
    for (const client of [owner, as('scout'), inRun]) expect(await read(client)).toMatchObject(mine);
    expect(await read(as('ada'))).toMatchObject({ content: 'so', run_id: null, source_ids: [] });
  });
});

test('a token opens only threads it is in, and none without participants', async () => {
  const ada = as('ada');
  const own = await ada.post('/v1/threads', { participant_ids: [idOf('ada'), idOf('scout')] });
  expect(objectAs('Thread', own.body).owner_id).toBe(tenant.userId);
  for (const body of [{ participant_ids: [idOf('scout'), idOf('rex')] }, {}, { meta_data: {} }])
    expect((await ada.post('/v1/threads', body)).status).toBe(403);
  expect((await createRestClient(server, tenant.apiKey, idOf('ada')).post('/v1/threads', {})).status).toBe(
    403,
  );
});

test('ids of another kind are no threads', async () => {
  for (const id of [
    'x',
    newId('Thread'),
    newId('Scratchpad'),
    `${ID_PREFIX.Thread}_`,
    '%00',
    '%FF',
    'a%2Fb',
  ]) {
    const reply = await owner.get(`/v1/threads/${id}`);
    expect([id, reply.status, id === '%00' ? 422 : reply.text]).toEqual([
      id,
      id === '%00' ? 422 : 404,
      id === '%00' ? 422 : '{"detail":"Thread not found"}',
    ]);
  }
});
