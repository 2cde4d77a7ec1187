import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Answer } from '../support/app.ts';
import { amongBystanders } from '../support/bystanders.ts';

const others = amongBystanders();

const json = { 'content-type': 'application/json' };
const bearer = () => ({ authorization: `Bearer ${others.world.apiKey}` });

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
  outcomeOf(
    await fetch(others.server.url, { method: 'POST', headers: { ...json, ...bearer(), ...headers }, body }),
  );

const query = (text: string, variables: unknown = {}): Promise<Outcome> =>
  send(JSON.stringify({ query: text, variables }));

describe('a body', () => {
  const big = 'x'.repeat(10 * 1024 * 1024);
  const bodies: readonly (readonly [string, () => string | Uint8Array<ArrayBuffer>, number, string])[] = [
    [
      'of 10 MB',
      () => JSON.stringify({ query: '{ viewer { user { id } } }', variables: { big } }),
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    ['that is 10 MB of white space', () => ' '.repeat(10 * 1024 * 1024), 413, 'PAYLOAD_TOO_LARGE'],
    ['that is empty', () => '', 400, 'BAD_REQUEST'],
    ['of a million brackets', () => '['.repeat(1_000_000), 400, 'BAD_REQUEST'],
    [
      'that is a million arrays deep',
      () => `${'['.repeat(500_000)}${']'.repeat(500_000)}`,
      400,
      'BAD_REQUEST',
    ],
    [
      'that is a million objects deep',
      () => `${'{"a":'.repeat(500_000)}1${'}'.repeat(500_000)}`,
      400,
      'BAD_REQUEST',
    ],
    ['that has half a character', () => new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]), 400, 'BAD_REQUEST'],
    [
      'that is UTF-16',
      () => new Uint8Array(Buffer.from('{"query":"{ viewer { user { id } } }"}', 'utf16le')),
      400,
      'BAD_REQUEST',
    ],
    ['that is cut', () => '{"query":"{ viewer { user { id } } }"', 400, 'BAD_REQUEST'],
    [
      'that is a batch',
      () => JSON.stringify(Array.from({ length: 1_000 }, () => ({ query: '{ viewer { user { id } } }' }))),
      400,
      'BAD_REQUEST',
    ],
    [
      'that means to be an object of another kind',
      () => '{"__proto__":{"query":"{ viewer { user { id } } }"}}',
      400,
      'BAD_REQUEST',
    ],
    [
      'with persisted-query extensions and no query',
      () => '{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}',
      400,
      'BAD_REQUEST',
    ],
  ];
  test.for(bodies)('%s', async ([, body, status, code]) => {
    expect(await send(body())).toMatchObject({ status, code });
  });

  test('with huge variables is answered, and what nobody declared is ignored', async () => {
    const list = Array.from({ length: 300_000 }, (_, index) => index);
    expect(await query('{ viewer { user { id } } }', { list, deep: { list } })).toMatchObject({
      status: 200,
      code: undefined,
    });
    expect(await query('query($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids: list })).toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(
      await query('query($ids: [ID!]!) { threadOf(participantIds: $ids) { id } }', { ids: list }),
    ).toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(
      await query('query($id: ID!) { thread(id: $id) { id } }', { id: 'x'.repeat(7_000_000) }),
    ).toMatchObject({ code: undefined });
    const nested = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
    const body = `{"query":"mutation($m: JSON!) { updateThread(input: { threadId: \\"${others.world.threadId}\\", metaData: $m }) { thread { id } } }","variables":{"m":${nested}}}`;
    expect((await send(body)).code).toBe('GRAPHQL_VALIDATION_FAILED');
    expect(({} as Record<string, unknown>).query).toBeUndefined();
  });

  test.for([
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=b',
    'text/plain',
    'application/graphql',
    'text/plain; application/json',
    'application/json; charset=latin1',
    '',
  ])('sent as "%s", as a page of another origin could, is not taken', async (type) => {
    const mutation = `mutation { createApiKey(input: { label: "stolen" }) { apiKey } }`;
    for (const body of [
      JSON.stringify({ query: mutation }),
      `query=${encodeURIComponent(mutation)}`,
      mutation,
    ])
      expect(await send(body, { 'content-type': type })).toMatchObject({ status: 415, code: 'BAD_REQUEST' });
    expect(await send(JSON.stringify({ query: mutation }), { 'content-encoding': 'gzip' })).toMatchObject({
      status: 415,
    });
  });

  test('does not come by GET to change anything', async () => {
    const mutation = 'mutation { createApiKey(input: { label: "stolen" }) { apiKey } }';
    for (const params of [
      { query: mutation },
      {
        query: `query A { viewer { user { id } } } ${mutation.replace('mutation', 'mutation B')}`,
        operationName: 'B',
      },
    ])
      for (const accept of ['application/json', 'text/event-stream', '*/*'])
        for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
          const response = await fetch(
            `${others.server.url}?${new URLSearchParams(params as Record<string, string>)}`,
            {
              method,
              headers: { ...bearer(), accept },
            },
          );
          expect([method, accept, response.status]).toEqual([method, accept, 405]);
        }
  });
});

describe('a document', () => {
  const deep = (open: string, close: string, levels: number): string =>
    open.repeat(levels) + close.repeat(levels);
  test.for([
    ['lists', `{ nodes(ids: ${deep('[', ']', 2_200)}) { id } }`],
    ['lists that never end', `{ nodes(ids: ${'['.repeat(4_000)}`],
    ['objects', `{ thread(id: ${deep('{a:', '}', 1_600)}) { id } }`],
    ['objects of nothing', '{a:'.repeat(1_900)],
    ['selections', deep('{a', '}', 2_200)],
    ['fragments', `{${deep('...{', '}', 1_200)}}`],
    ['list types', `query($a: ${deep('[', ']', 2_400)}) { __typename }`],
    ['lists as a default', `query($a: JSON = ${deep('[', ']', 2_400)}) { __typename }`],
    ['lists for a directive', `{ __typename @skip(if: ${deep('[', ']', 2_400)}) }`],
    ['lists, just within what is parsed', `{ nodes(ids: ${deep('[', ']', 1_000)}) { id } }`],
  ] as const)('of deep %s is refused as too expensive, by every way in', async ([, text]) => {
    expect(await query(text)).toMatchObject({ status: 200, code: 'QUERY_TOO_EXPENSIVE' });
    const url = `${others.server.url}?${new URLSearchParams({ query: text })}`;
    expect(await outcomeOf(await fetch(url, { headers: bearer() }))).toMatchObject({
      code: 'QUERY_TOO_EXPENSIVE',
    });
    for (const init of [
      { headers: { ...bearer(), accept: 'text/event-stream' } },
      {
        method: 'POST',
        headers: { ...bearer(), ...json, accept: 'text/event-stream' },
        body: JSON.stringify({ query: text }),
      },
    ]) {
      const response = await fetch('body' in init ? others.server.url : url, init);
      expect(await response.text()).toContain('"code":"QUERY_TOO_EXPENSIVE"');
    }
  });

  test('may be as deep as its values may', async () => {
    const text = `mutation { updateThread(input: { threadId: "x", metaData: {a: ${deep('[', ']', 31)}} }) { thread { id } } }`;
    expect(await query(text)).toMatchObject({ code: 'NOT_FOUND' });
  });

  test('is not taken for deep because of its texts and comments', async () => {
    const text = `# ${'['.repeat(5_000)}\n{ node(id: "${'{'.repeat(5_000)}") { id } }`;
    expect(await query(text)).toMatchObject({ status: 200, code: undefined });
  });
});

describe('what is no HTTP', () => {
  const raw = (bytes: string): Promise<string> =>
    new Promise((resolve) => {
      const { port } = new URL(others.server.url);
      let answer = '';
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes));
      socket.on('data', (data) => {
        answer += String(data);
      });
      socket.on('error', () => resolve(answer));
      socket.on('close', () => resolve(answer));
    });
  test.for([
    ['garbage', '\u0000\u0001\u0002\r\n\r\n'],
    ['a header without end', `GET /graphql HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`],
    [
      'two lengths',
      'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}',
    ],
    [
      'a length and chunks',
      'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /',
    ],
    [
      'a bad chunk',
      'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
    ],
    [
      'two credentials',
      () =>
        `GET /graphql?query=%7B__typename%7D HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${others.world.apiKey}\r\nAuthorization: Bearer ${others.world.people.ada.token}\r\n\r\n`,
    ],
    [
      'two participants',
      () =>
        `GET /graphql?query=%7B__typename%7D HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${others.world.apiKey}\r\nX-Act-As: ${others.world.people.ada.id}\r\nX-Act-As: ${others.world.people.scout.id}\r\n\r\n`,
    ],
    ['a negative length', 'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
    ['no host', 'GET /graphql HTTP/1.1\r\n\r\n'],
    [
      'a broken handshake',
      'GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 1\r\n\r\n',
    ],
  ] as const)('%s', async ([, bytes]) => {
    expect(await raw(typeof bytes === 'string' ? bytes : bytes())).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
  });
});
