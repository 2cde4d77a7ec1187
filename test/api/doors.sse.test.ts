import { once } from 'node:events';
import { get as httpGet } from 'node:http';
import { createClient } from 'graphql-sse';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { codesOf, KEY, openTestDoors, post, type TestDoors, type TestOptions } from '../support/doors.ts';
import { openEventStream } from '../support/eventStream.ts';
import { until } from '../support/until.ts';

let doors: TestDoors;
const reopen = async (options: TestOptions): Promise<void> => {
  await doors.close();
  doors = await openTestDoors(options);
};

beforeEach(async () => {
  doors = await openTestDoors();
});
afterEach(async () => {
  await until(async () => (await doors.gauge('threadpad_subscriptions')) === 0);
  await until(() => doors.numbers.open === 0 && doors.credentials.state.sessions === 0);
  expect(doors.numbers.events.listenerCount('change')).toBe(0);
  await doors.close();
});

const stream = (query: string, headers: Readonly<Record<string, string>> = KEY, variables?: object) =>
  openEventStream(doors.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  });
const streamByGet = (
  params: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = KEY,
) => openEventStream(`${doors.url}?${new URLSearchParams(params)}`, { headers });

const COUNT = 'subscription { count(to: 3) { value } }';

describe('an event stream', () => {
  test('is served by POST and GET: each payload with its cursor as id, then complete', async () => {
    for (const events of [await stream(COUNT), await streamByGet({ query: COUNT })]) {
      expect(events.response.status).toBe(200);
      expect(events.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      expect(events.response.headers.get('x-request-id')).toBeTruthy();
      expect(await events.rest()).toEqual([
        ...[1, 2, 3].map((value) => ({
          event: 'next',
          id: `c${value}`,
          data: { data: { count: { value } }, extensions: { cursor: `c${value}` } },
        })),
        { event: 'complete', id: undefined, data: null },
      ]);
    }
    expect(doors.credentials.issued).toEqual(['c1', 'c2', 'c3', 'c1', 'c2', 'c3']);
  });

  test('is read by a stock client in the distinct connections mode', async () => {
    const client = createClient({ url: doors.url, headers: KEY });
    const values: unknown[] = [];
    for await (const { data } of client.iterate({ query: COUNT })) values.push(data);
    expect(values).toEqual([1, 2, 3].map((value) => ({ count: { value } })));
    await expect(
      client.iterate({ query: 'subscription { nothing }' })[Symbol.asyncIterator]().next(),
    ).resolves.toMatchObject({ value: { errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }] } });
    client.dispose();
  });

  test('is also what a client gets that takes both and subscribes', async () => {
    const events = await stream(COUNT, { ...KEY, accept: 'application/json, text/event-stream;q=0.5' });
    expect(await events.rest()).toHaveLength(4);
    const { body } = await post(
      doors.url,
      { query: '{ ping }' },
      { ...KEY, accept: 'application/json, text/event-stream' },
    );
    expect(body.data).toEqual({ ping: 'pong' });
  });

  test('begins after Last-Event-ID rather than `after`', async () => {
    const query = 'subscription S($after: Cursor) { count(to: 3, after: $after) { value } }';
    const events = await stream(query, { ...KEY, 'last-event-id': 'c2' }, { after: 'c0' });
    expect((await events.rest()).map(({ id }) => id)).toEqual(['c3', undefined]);
  });

  test('answers queries and mutations too, the latter by POST only', async () => {
    for (const query of ['{ ping }', 'mutation { bump }']) {
      const [result, complete] = await (await stream(query)).rest();
      expect(result?.data?.data).toBeTruthy();
      expect(complete?.event).toBe('complete');
    }
    const refused = await streamByGet({ query: 'mutation { bump }' });
    expect(refused.response.status).toBe(405);
  });

  test('tells faults of the document as a result', async () => {
    for (const [query, code] of [
      ['subscription {', 'GRAPHQL_PARSE_FAILED'],
      ['subscription { nothing }', 'GRAPHQL_VALIDATION_FAILED'],
      ['subscription { refused { value } }', 'NOT_FOUND'],
    ] as const) {
      const events = await stream(query);
      expect(events.response.status).toBe(200);
      const [result, complete] = await events.rest();
      expect(codesOf(result?.data ?? {})).toEqual([code]);
      expect(complete?.event).toBe('complete');
    }
  });

  test('masks what breaks in between', async () => {
    const events = await (await stream('subscription { broken(how: "unexpectedly") { value } }')).rest();
    expect(events.map(({ event }) => event)).toEqual(['next', 'next', 'complete']);
    expect(codesOf(events[1]?.data ?? {})).toEqual(['INTERNAL']);
    expect(JSON.stringify(events)).not.toContain('hunter2');
  });

  test('needs a credential in a header, or a ticket', async () => {
    for (const events of [
      await stream(COUNT, {}),
      await streamByGet({ query: COUNT }, {}),
      await stream(COUNT, { authorization: 'Bearer nobody' }),
      await streamByGet({ query: COUNT, ticket: 'unknown' }, {}),
    ])
      expect(events.response.status).toBe(401);
    expect((await streamByGet({ query: COUNT, key: 'key-1' }, {})).response.status).toBe(400);
    doors.credentials.issueTicket('ticket-1', 'key-1', COUNT);
    const events = await streamByGet({ query: COUNT, ticket: 'ticket-1' }, {});
    expect(await events.rest()).toHaveLength(4);
  });

  test('is kept alive by comments', async () => {
    await reopen({ limits: { webSocket: { heartbeat: 20 } } });
    const events = await stream('subscription { live { value } }');
    await events.next();
    const next = events.next();
    await until(() => events.comments > 2);
    doors.numbers.grow();
    expect(await next).toMatchObject({ event: 'next', data: { data: { live: { value: 1 } } } });
    events.abort();
  });

  test('counts as a connection of its credential', async () => {
    await reopen({ limits: { connections: { perCredential: 1, perUser: 10, unknownPerAddress: 10 } } });
    const first = await stream('subscription { live { value } }');
    const second = await stream('subscription { live { value } }');
    expect(second.response.status).toBe(429);
    first.abort();
    await until(() => doors.credentials.state.sessions === 0);
    const third = await stream(COUNT);
    expect(await third.rest()).toHaveLength(4);
  });

  test('ends with a last payload when its credential does', async () => {
    const events = await stream('subscription { live { value ended } }');
    await events.next();
    doors.numbers.grow();
    await events.next();
    doors.credentials.end('key-1');
    expect(await events.rest()).toMatchObject([
      { event: 'next', id: 'c1', data: { data: { live: { ended: 'CREDENTIAL_ENDED' } } } },
      { event: 'complete' },
    ]);
  });

  test('ends when its credential does, also when nothing comes from the source', async () => {
    const waiting = once(doors.gates, 'waiting never');
    const events = await stream('subscription { never { value } }');
    await waiting;
    doors.credentials.end('key-1');
    expect(await events.rest()).toMatchObject([{ event: 'complete' }]);
  });

  test('that is aborted, also while it is set up, frees everything', async () => {
    const events = await stream('subscription { live { value } }');
    await events.next();
    events.abort();
    await until(() => doors.numbers.open === 0);
    const waiting = once(doors.gates, 'waiting slowly');
    const gone = once(doors.gates, 'gone slowly');
    const setUp = await stream('subscription { setUp(name: "slowly") { value } }');
    await waiting;
    setUp.abort();
    await gone;
  });

  test('pulls no faster than its client reads, and gives one up that stays behind', async () => {
    await reopen({
      limits: { webSocket: { flow: { pause: 256 * 1024, most: 1024 * 1024, patience: 300 } } },
    });
    const params = new URLSearchParams({ query: 'subscription { blob(bytes: 100000) { text } }' });
    const request = httpGet(`${doors.url}?${params}`, { headers: { ...KEY, accept: 'text/event-stream' } });
    request.on('error', () => {});
    const [response] = await once(request, 'response');
    response.on('error', () => {});
    response.pause();
    await until(async () => (await doors.gauge('threadpad_subscriptions')) === 1);
    await until(async () => (await doors.gauge('threadpad_subscriptions')) === 0);
    expect(doors.numbers.pulled).toBeLessThan(200);
    request.destroy();
  });
});
