import { getIntrospectionQuery } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, startApp } from '../support/app.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { createWorld, rowsOf, type World } from '../support/world.ts';

let server: Awaited<ReturnType<typeof startApp>>;
let world: World;
beforeAll(async () => {
  server = await startApp({ NODE_ENV: 'production' });
  world = await createWorld(server.services, 'expensive');
});
afterAll(() => server.close());

const json = { 'content-type': 'application/json' };
const bearer = () => ({ authorization: `Bearer ${world.apiKey}` });

interface Outcome {
  readonly status: number;
  readonly code: string | undefined;
  readonly text: string;
}

const outcomeOf = async (response: Response): Promise<Outcome> => {
  const text = await response.text();
  const { errors } = (text === '' ? {} : JSON.parse(text)) as Answer;
  return { status: response.status, code: errors?.[0]?.extensions?.code, text };
};

const send = async (
  body: string | Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Outcome> =>
  outcomeOf(await fetch(server.url, { method: 'POST', headers: { ...json, ...bearer(), ...headers }, body }));

const query = (text: string, variables: unknown = {}): Promise<Outcome> =>
  send(JSON.stringify({ query: text, variables }));

describe('an operation that asks for too much', () => {
  const aliases = (count: number): string =>
    `{ ${Array.from({ length: count }, (_, index) => `a${index}: viewer { user { id } }`).join(' ')} }`;
  const deep = (levels: number): string =>
    `{ thread(id: "x") { ${'timeline { thread { '.repeat(levels)} id ${'} }'.repeat(levels)} } }`;
  const pages = (size: string): string =>
    `{ threads(first: ${size}) { nodes { participants(first: ${size}) { participant { id } } timeline { events(first: ${size}) { nodes { id } } } } } }`;

  test.for([
    ['101 aliases', aliases(101)],
    ['5,000 aliases', aliases(5_000)],
    ['depth 13', deep(6)],
    ['depth 500', deep(250)],
    ['51 directives', `{ viewer { user { id ${'@include(if: true) '.repeat(51)} } } }`],
    ['5,001 tokens', `{ ${'viewer { user { id } } '.repeat(800)} }`],
    ['a page of pages of pages', pages('200')],
    [
      'a chain of fragments that doubles',
      `${Array.from({ length: 30 }, (_, index) => `fragment F${index} on Viewer { a${index}: user { id } ...F${index + 1} b${index}: user { id } ...F${index + 1} }`).join(' ')} fragment F30 on Viewer { user { id } } { viewer { ...F0 } }`,
    ],
    [
      'many threads at once, each whole',
      `{ ${Array.from({ length: 90 }, (_, index) => `t${index}: thread(id: "x") { timeline { events(first: 200) { nodes { thread { participants(first: 200) { participant { id } } } } } } }`).join(' ')} }`,
    ],
  ] as const)('%s is refused before it runs', async ([, text]) => {
    const startedAt = performance.now();
    const { code } = await query(text);
    expect(code).toBe('QUERY_TOO_EXPENSIVE');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  test('by its variables, or their defaults, is refused alike; on every transport', async () => {
    const before = await rowsOf(server.services, world.userId);
    const text = (declared: string): string => `query(${declared}) ${pages('$n')}`;
    expect((await query(text('$n: Int'), { n: 200 })).code).toBe('QUERY_TOO_EXPENSIVE');
    expect((await query(text('$n: Int = 200'))).code).toBe('QUERY_TOO_EXPENSIVE');
    expect((await query(text('$n: Int!'), { n: 5 })).code).toBeUndefined();
    const response = await fetch(
      `${server.url}?${new URLSearchParams({ query: text('$n: Int'), variables: '{"n":200}' })}`,
      { headers: bearer() },
    );
    expect((await outcomeOf(response)).code).toBe('QUERY_TOO_EXPENSIVE');
    const { nodes } = {
      nodes: `{ nodes(ids: [${'"x",'.repeat(200)}]) { ... on Thread { timeline { events(first: 200) { nodes { thread { participants(first: 50) { state } } } } } } } }`,
    };
    expect((await query(nodes)).code).toBe('QUERY_TOO_EXPENSIVE');
    const expensive = `subscription($id: ID!) { timeline(threadId: $id) { event { thread { timeline { events(first: 200) { nodes { thread { participants(first: 200) { participant { id } } timeline { events(first: 200) { nodes { id } } } } } } } } } } }`;
    const socket = await openRawSocket(server.socketUrl);
    await socket.init(bearer());
    socket.subscribe('expensive', expensive, { id: world.threadId });
    const { type, payload } = await socket.nextOf('expensive');
    expect([type, (payload as Answer['errors'])?.[0]?.extensions?.code]).toEqual([
      'error',
      'QUERY_TOO_EXPENSIVE',
    ]);
    await socket.close();
    const mutation = `mutation($id: ID!) { deleteThread(input: { threadId: $id }) { deletedId } setMemoryPolicy(input: { threadId: $id, threadOnly: true }) { thread { timeline { events(first: 200) { nodes { thread { participants(first: 200) { participant { id } } timeline { events(first: 200) { nodes { id } } } } } } } } } }`;
    expect((await query(mutation, { id: world.threadId })).code).toBe('QUERY_TOO_EXPENSIVE');
    expect(await rowsOf(server.services, world.userId)).toEqual(before);
  });

  test.for([
    [
      'fragments in a circle',
      'fragment A on Viewer { user { id } ...B } fragment B on Viewer { ...A } { viewer { ...A } }',
    ],
    ['a fragment of itself', 'fragment A on Viewer { ...A } { viewer { ...A } }'],
    [
      'fragments that nobody uses',
      `${'fragment A on Viewer { user { id } } '.repeat(50)} { viewer { user { id } } }`,
    ],
    ['an unknown directive', '{ viewer @rateLimit { user { id } } }'],
    ['@defer', '{ ... @defer { viewer { user { id } } } }'],
    ['a fragment on a type that is none', '{ viewer { ... on Nothing { id } } }'],
    ['no selection', '{ viewer }'],
    ['a number beyond all', `{ threads(first: ${'9'.repeat(400)}) { nodes { id } } }`],
    ['a schema', 'type Query { a: Int }'],
  ] as const)('%s is a fault of the document', async ([, text]) => {
    expect((await query(text)).code).toBe('GRAPHQL_VALIDATION_FAILED');
  });
});

describe('in production', () => {
  test('the schema is read with a credential only, and nothing is suggested', async () => {
    const ask = async (headers: Readonly<Record<string, string>>, text: string) =>
      outcomeOf(
        await fetch(server.url, {
          method: 'POST',
          headers: { ...json, ...headers },
          body: JSON.stringify({ query: text }),
        }),
      );
    for (const text of [
      getIntrospectionQuery(),
      '{ __schema { types { name } } }',
      '{ __type(name: "Query") { name } }',
      '{ __typename }',
    ])
      expect((await ask({}, text)).code).toBe('UNAUTHENTICATED');
    expect((await ask(bearer(), getIntrospectionQuery())).code).toBeUndefined();
    for (const text of [
      '{ viewe { user { id } } }',
      '{ viewer { use { id } } }',
      '{ thread(i: "x") { id } }',
      'mutation { createApiKe(input: {}) { apiKey } }',
      'mutation { createApiKey(input: { labe: "x" }) { apiKey } }',
      '{ participants(kind: AGEN) { nodes { id } } }',
      '{ viewer { ... on Viewe { user { id } } } }',
      'query($a: Thred) { viewer { user { id } } }',
    ]) {
      const { text: answer, code } = await ask(bearer(), text);
      expect(code).toBe('GRAPHQL_VALIDATION_FAILED');
      expect(answer).not.toMatch(/did you mean/i);
    }
    const { text, code } = await query(
      'mutation($i: CreateParticipantInput!) { createParticipant(input: $i) { participant { id } } }',
      {
        i: { kind: 'AGENTT', handl: 'x' },
      },
    );
    expect(code).toBe('GRAPHQL_VALIDATION_FAILED');
    expect(text).not.toMatch(/did you mean/i);
  });

  test('no page is served, and pages of other origins get nothing', async () => {
    const page = await fetch(server.url, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).not.toContain('text/html');
    expect(page.status).toBeGreaterThanOrEqual(400);
    for (const origin of [
      'https://evil.example',
      'null',
      'http://127.0.0.1',
      `${server.url.replace('/graphql', '')}.evil.example`,
    ]) {
      const response = await fetch(server.url, {
        method: 'POST',
        headers: { ...json, ...bearer(), origin },
        body: '{"query":"{ __typename }"}',
      });
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
      expect(response.headers.get('access-control-allow-credentials')).toBeNull();
      const preflight = await fetch(server.url, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      });
      expect(preflight.status).toBe(403);
      await expect(openRawSocket(server.socketUrl, { origin })).rejects.toThrow(/403/);
    }
  });
});
