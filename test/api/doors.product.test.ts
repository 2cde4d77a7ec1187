import { getIntrospectionQuery } from 'graphql';
import { auditServer } from 'graphql-http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';
import { type GraphQLAnswer, get, post } from '../support/doors.ts';
import { openEventStream } from '../support/eventStream.ts';
import { openRawSocket } from '../support/rawSocket.ts';

const FOLLOW = `subscription Follow($id: ID!, $after: Cursor) {
  timeline(threadId: $id, after: $after) { cursor ended event { seq ... on Message { content sender { handle } } } }
}`;

describe('the doors of the product', () => {
  let server: Server;
  let tenant: Tenant;
  let threadId: string;
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}` });
  const ada = (): string => tenant.participants.ada?.token ?? '';
  const say = async (content: string): Promise<void> => {
    const { errors } = await server.graphql(
      ada(),
      'mutation($id: ID!, $content: String!) { postMessage(input: { threadId: $id, content: $content }) { cursor } }',
      { id: threadId, content },
    );
    expect(errors).toBeUndefined();
  };

  beforeAll(async () => {
    server = await startApp();
    tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT' });
    const { data } = await server.graphql<{ openThread: { thread: { id: string } } }>(
      tenant.apiKey,
      'mutation($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
      { ids: Object.values(tenant.participants).map(({ id }) => id) },
    );
    threadId = data?.openThread.thread.id ?? '';
  });
  afterAll(() => server.close());

  test('pass every MUST and SHOULD of the audit, with a credential and without', async () => {
    for (const headers of [headersOf(tenant.apiKey), {}]) {
      const results = await auditServer({
        url: server.url,
        fetchFn: (url: string, init: RequestInit = {}) =>
          fetch(url, { ...init, headers: { ...init.headers, ...headers } }),
      });
      expect(results.filter(({ status, name }) => status !== 'ok' && !name.startsWith('MAY'))).toEqual([]);
    }
  });

  test('answer a query alike by GET and POST, and the introspection of any tool', async () => {
    const query = '{ viewer { user { name } } threads(first: 1) { nodes { id participantCount } } }';
    const headers = headersOf(tenant.apiKey);
    const posted = await post(server.url, { query }, headers);
    expect(posted.body.errors).toBeUndefined();
    expect((await get(server.url, { query }, headers)).body).toEqual(posted.body);
    const introspection = await post(
      server.url,
      { query: getIntrospectionQuery({ oneOf: true, schemaDescription: true }) },
      {},
    );
    expect(introspection.body.data).toHaveProperty('__schema');
  });

  test('refuse what would cost too much, alike over POST, GET, SSE and WebSocket, for any kind of operation', async () => {
    const headers = headersOf(tenant.apiKey);
    const page =
      'events(first: 200) { nodes { thread { timeline { events(first: 200) { nodes { thread { id } } } } } } }';
    const query = `{ threads(first: 200) { nodes { timeline { ${page} } } } }`;
    const subscription = `subscription { timeline(threadId: "${threadId}") { event { thread { timeline { ${page} } } } } }`;
    const mutation = `mutation { updateThread(input: { threadId: "${threadId}", metaData: {} }) { thread { timeline { ${page} } } } }`;
    const codeOf = (answer: GraphQLAnswer): unknown => answer.errors?.[0]?.extensions.code;
    for (const each of [query, mutation])
      expect(codeOf((await post(server.url, { query: each }, headers)).body)).toBe('QUERY_TOO_EXPENSIVE');
    expect(codeOf((await get(server.url, { query }, headers)).body)).toBe('QUERY_TOO_EXPENSIVE');
    const events = await openEventStream(`${server.url}?${new URLSearchParams({ query: subscription })}`, {
      headers,
    });
    expect(codeOf((await events.next())?.data ?? {})).toBe('QUERY_TOO_EXPENSIVE');
    const socket = await openRawSocket(server.socketUrl);
    await socket.init(headers);
    for (const [id, each] of Object.entries({ query, mutation, subscription })) {
      socket.subscribe(id, each);
      const { type, payload } = await socket.nextOf(id);
      expect(type).toBe('error');
      expect(codeOf({ errors: payload as NonNullable<GraphQLAnswer['errors']> })).toBe('QUERY_TOO_EXPENSIVE');
    }
    await socket.close();
  });

  test('follow a timeline alike over SSE and WebSocket, and resume an event stream by its last id', async () => {
    const headers = headersOf(ada());
    const socket = await openRawSocket(server.socketUrl);
    await socket.init(headers);
    socket.subscribe('s', FOLLOW, { id: threadId });
    const url = `${server.url}?${new URLSearchParams({ query: FOLLOW, variables: JSON.stringify({ id: threadId }) })}`;
    const events = await openEventStream(url, { headers });
    const starts = [(await socket.nextOf('s', 'next')).payload, (await events.next())?.data];
    expect(starts[0]).toEqual(starts[1]);
    await say('one');
    const firsts = [(await socket.nextOf('s', 'next')).payload, (await events.next())?.data];
    expect(firsts[0]).toEqual(firsts[1]);
    const cursor = (firsts[1] as GraphQLAnswer).extensions?.cursor ?? '';
    events.abort();
    await say('two');
    await say('three');
    const resumed = await openEventStream(url, { headers: { ...headers, 'last-event-id': cursor } });
    await resumed.next();
    for (const content of ['two', 'three']) {
      const event = await resumed.next();
      expect(event?.data?.data).toMatchObject({
        timeline: { event: { content, sender: { handle: 'ada' } } },
      });
      expect(event?.id).toBe(event?.data?.extensions?.cursor);
      expect((await socket.nextOf('s', 'next')).payload).toEqual(event?.data);
    }
    resumed.abort();
    await socket.close();
  });

  test('open a stream with a ticket, once, and resume it with the last id', async () => {
    const variables = { id: threadId };
    const { data } = await server.graphql<{ createConnectionTicket: { ticket: string } }>(
      ada(),
      'mutation($query: String!, $variables: JSON) { createConnectionTicket(input: { query: $query, variables: $variables }) { ticket } }',
      { query: FOLLOW, variables },
    );
    const ticket = data?.createConnectionTicket.ticket ?? '';
    const url = `${server.url}?${new URLSearchParams({ query: FOLLOW, variables: JSON.stringify(variables), ticket })}`;
    const first = await openEventStream(url, { headers: {} });
    const id = (await first.next())?.id ?? '';
    expect((await openEventStream(url, { headers: {} })).response.status).toBe(401);
    first.abort();
    await say('while it was away');
    const again = await openEventStream(url, { headers: { 'last-event-id': id } });
    expect(again.response.status).toBe(200);
    await again.next();
    expect((await again.next())?.data?.data).toMatchObject({
      timeline: { event: { content: 'while it was away' } },
    });
    again.abort();
  });
});
