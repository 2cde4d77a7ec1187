import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';
import { createRestClient, type RestClient, type RestReply } from '../support/rest.ts';

let server: Server;
let tenant: Tenant;
let owner: RestClient;
let origin: string;
let threadId: string;
beforeAll(async () => {
  server = await startApp({ ALLOWED_ORIGINS: 'https://app.example' });
  origin = new URL(server.url).origin;
  tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT' });
  owner = createRestClient(server, tenant.apiKey);
  const ids = Object.values(tenant.participants).map(({ id }) => id);
  const { body } = await owner.post('/v1/threads', { participant_ids: ids });
  threadId = (body as { id: string }).id;
});
afterAll(() => server.close());

const key = (): Record<string, string> => ({ 'x-api-key': tenant.apiKey });
const ada = (): string => tenant.participants.ada?.id ?? '';
const messages = (): string => `/v1/threads/${threadId}/messages`;
const post = (body: unknown, headers: Record<string, string> = {}): Promise<RestReply> =>
  owner.post(messages(), body, headers);
const message = (content: unknown): object => ({ as: ada(), content });

interface Fault {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
}
const faultsIn = ({ status, code, body }: RestReply): readonly Fault[] => {
  expect([status, code]).toEqual([422, 'BAD_USER_INPUT']);
  return (body as { detail: Fault[] }).detail;
};

describe('bodies', () => {
  test.for([
    ['no content type', {}],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['plain text', { 'content-type': 'text/plain' }],
    ['JSON in another charset', { 'content-type': 'application/json; charset=latin1' }],
    ['JSON, compressed', { 'content-type': 'application/json', 'content-encoding': 'gzip' }],
  ] as const)('that are no JSON are 415: %s', async ([, headers]) => {
    const text = JSON.stringify(message('x'));
    const response = await fetch(`${origin}${messages()}`, {
      method: 'POST',
      headers: { ...key(), ...headers },
      body: 'content-encoding' in headers ? gzipSync(text) : new TextEncoder().encode(text),
    });
    expect([response.status, response.headers.get('x-error-code')]).toEqual([415, 'BAD_REQUEST']);
    expect(typeof ((await response.json()) as { detail: unknown }).detail).toBe('string');
  });

  test('with parameters of the content type are taken', async () => {
    for (const type of ['application/json; charset=utf-8', 'Application/JSON; charset="UTF-8"'])
      expect((await post(JSON.stringify(message('x')), { 'content-type': type })).status).toBe(200);
  });

  test.for([
    ['{', 'json_invalid', ['body']],
    ['{"content":"x"', 'json_invalid', ['body']],
    ["{'content':'x'}", 'json_invalid', ['body']],
    ['', 'missing', ['body']],
    ['null', 'missing', ['body']],
    ['[]', 'model_attributes_type', ['body']],
    ['"x"', 'model_attributes_type', ['body']],
    ['5', 'model_attributes_type', ['body']],
    ['{"__proto__":{"content":"x"}}', 'value_error', ['body']],
    ['{"content":"x","data":{"constructor":1}}', 'value_error', ['body']],
    ['{"content":"x","data":[{"prototype":1}]}', 'value_error', ['body']],
    ['{"content":"a\\u0000b"}', 'value_error', ['body']],
    ['{"content":"a\\ud800b"}', 'value_error', ['body']],
    ['{"content":"x","data":{"a\\udc00":1}}', 'value_error', ['body']],
    [`{"content":"x","data":${'['.repeat(33)}${']'.repeat(33)}}`, 'value_error', ['body']],
    [`{"content":"x","data":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, 'value_error', ['body']],
    ['{"content":"x","data":1e999}', 'value_error', ['body']],
  ] as const)('that are broken are told of: %s', async ([text, type, loc]) => {
    const faults = faultsIn(await post(text));
    expect(faults.map((fault) => [fault.type, fault.loc])).toEqual([[type, loc]]);
  });

  test('of 32 levels are taken', async () => {
    const data = JSON.parse(`${'['.repeat(32)}${']'.repeat(32)}`) as unknown;
    expect((await post({ ...message('deep'), data })).status).toBe(200);
  });

  test('that do not fit are told of as these clients know it', async () => {
    expect(faultsIn(await owner.post(messages(), { nonsense: 1, other: 'x' }))).toEqual([
      {
        type: 'missing',
        loc: ['body', 'content'],
        msg: 'Field required',
        input: { nonsense: 1, other: 'x' },
      },
      { type: 'extra_forbidden', loc: ['body', 'nonsense'], msg: 'Extra inputs are not permitted', input: 1 },
      { type: 'extra_forbidden', loc: ['body', 'other'], msg: 'Extra inputs are not permitted', input: 'x' },
    ]);
    expect(faultsIn(await post({ content: 5 }))).toEqual([
      { type: 'string_type', loc: ['body', 'content'], msg: 'Input should be a valid string', input: 5 },
    ]);
    expect(faultsIn(await post({ content: null }))).toEqual([
      { type: 'string_type', loc: ['body', 'content'], msg: 'Input should be a valid string', input: null },
    ]);
    expect(faultsIn(await owner.post('/v1/threads', { participant_ids: 'x', meta_data: [1] }))).toEqual([
      {
        type: 'list_type',
        loc: ['body', 'participant_ids'],
        msg: 'Input should be a valid list',
        input: 'x',
      },
      {
        type: 'dict_type',
        loc: ['body', 'meta_data'],
        msg: 'Input should be a valid dictionary',
        input: [1],
      },
    ]);
    expect(faultsIn(await owner.post('/v1/threads', { participant_ids: [ada(), 7] }))).toEqual([
      {
        type: 'string_type',
        loc: ['body', 'participant_ids', 1],
        msg: 'Input should be a valid string',
        input: 7,
      },
    ]);
  });

  test('refuse who is named as somebody’s tenant', async () => {
    for (const name of ['owner_id', 'user_id', 'tenant_id', 'scratchpad_id'])
      expect(faultsIn(await owner.post('/v1/threads', { [name]: 'x' }))).toMatchObject([
        { type: 'extra_forbidden', loc: ['body', name] },
      ]);
  });

  test('are not repeated where they are long', async () => {
    const reply = await post({ ['x'.repeat(10)]: 'long '.repeat(10_000) });
    expect(reply.text.length).toBeLessThan(2_000);
  });

  test('what only a service sees is told of at its place', async () => {
    const faults = faultsIn(await post({ ...message(''), idempotency_key: '' }));
    expect(faults[0]).toMatchObject({ type: 'value_error', loc: ['body', 'content'] });
    const withKey = faultsIn(await post({ ...message('x'), idempotency_key: '' }));
    expect(withKey[0]).toMatchObject({ type: 'value_error', loc: ['body', 'idempotency_key'] });
    const cursor = await owner.get(`/v1/threads/${threadId}/events?after=x`);
    expect([cursor.status, cursor.code]).toEqual([422, 'INVALID_CURSOR']);
    expect((cursor.body as { detail: Fault[] }).detail).toMatchObject([{ loc: ['query', 'after'] }]);
  });

  test('of too many bytes are 413, whether that was said before or not', async () => {
    const tooLong = { participant_ids: [], meta_data: { text: 'x'.repeat(1024 * 1024) } };
    const reply = await owner.post('/v1/threads', tooLong);
    expect([reply.status, reply.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    const streamed = await fetch(`${origin}/v1/threads`, {
      method: 'POST',
      headers: { ...key(), 'content-type': 'application/json' },
      body: new Blob([JSON.stringify(tooLong)]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect([streamed.status, streamed.headers.get('x-error-code')]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    // A megabyte is little for a text.
    const text = await post(message('x'.repeat(2 * 1024 * 1024)));
    expect([text.status, text.text]).toEqual([413, '{"detail":"content is larger than 262144 bytes."}']);
    const meta = await owner.post('/v1/threads', {
      participant_ids: Object.values(tenant.participants).map(({ id }) => id),
      meta_data: { text: 'x'.repeat(17 * 1024) },
    });
    expect([meta.status, meta.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });

  test('are nobody’s business where none is taken', async () => {
    const reply = await owner.post(`/v1/threads/${threadId}/participants/x/remove`, 'no JSON at all', {
      'content-type': 'text/plain',
    });
    expect(reply.status).toBe(404);
  });

  test('that never come whole harm nobody', async () => {
    const { port } = new URL(origin);
    const socket = connect(Number(port), '127.0.0.1');
    await new Promise<void>((resolve) => {
      socket.write(
        `POST ${messages()} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${tenant.apiKey}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"content":`,
        () => resolve(),
      );
    });
    socket.destroy();
    expect((await post(message('still here'))).status).toBe(200);
  });
});

describe('parameters', () => {
  test.for([
    ['limit=0', 'greater_than_equal', 'Input should be greater than or equal to 1'],
    ['limit=201', 'less_than_equal', 'Input should be less than or equal to 200'],
    ['limit=-1', 'greater_than_equal', 'Input should be greater than or equal to 1'],
    ['limit=x', 'int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    ['limit=1.5', 'int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
  ] as const)('%s', async ([query, type, msg]) => {
    const [fault] = faultsIn(await owner.get(`/v1/threads/${threadId}/events?${query}`));
    expect(fault).toEqual({ type, loc: ['query', 'limit'], msg, input: query.split('=')[1] });
  });

  test('that nobody knows are let be', async () => {
    expect((await owner.get(`/v1/threads/${threadId}/events?limit=1&_=5`)).status).toBe(200);
  });

  test('with NUL are refused', async () => {
    for (const path of [`/v1/threads/%00`, `/v1/threads/${threadId}/events?after=%00`])
      expect(faultsIn(await owner.get(path))[0]?.type).toBe('value_error');
  });
});
