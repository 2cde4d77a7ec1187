import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../src/shared/ids.ts';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';
import { createRestClient, type RestClient, type RestReply, restAt } from '../support/rest.ts';

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
const _post = (body: unknown, headers: Record<string, string> = {}): Promise<RestReply> =>
  owner.post(messages(), body, headers);
const _message = (content: unknown): object => ({ as: ada(), content });

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

describe('credentials', () => {
  test('come as X-API-Key or as a bearer; nothing else opens', async () => {
    const request = restAt(origin);
    const path = `/v1/threads/${threadId}`;
    const whole = await request(key(), 'GET', path);
    expect(whole.status).toBe(200);
    expect((await request({ authorization: `Bearer ${tenant.apiKey}` }, 'GET', path)).text).toBe(whole.text);
    for (const credential of [
      {},
      { 'x-api-key': 'x' },
      { 'x-api-key': '' },
      { authorization: tenant.apiKey },
      { authorization: `Basic ${btoa(`:${tenant.apiKey}`)}` },
      { 'x-api-key': tenant.apiKey, authorization: `Bearer ${tenant.participants.ada?.token}` },
      { cookie: `x-api-key=${tenant.apiKey}` },
    ]) {
      const reply = await request(credential as Record<string, string>, 'GET', path);
      expect([reply.status, reply.code, reply.headers.get('www-authenticate')]).toEqual([
        401,
        'UNAUTHENTICATED',
        'APIKey',
      ]);
      expect(typeof (reply.body as { detail: unknown }).detail).toBe('string');
    }
  });

  test('never stand in a URL', async () => {
    const reply = await owner.get(`/v1/threads/${threadId}?api_key=${tenant.apiKey}`);
    expect(faultsIn(reply)[0]?.loc).toEqual(['query', 'api_key']);
    expect(reply.text).not.toContain(tenant.apiKey);
  });

  test('act as a participant with X-Act-As, who must be one’s own', async () => {
    const acting = createRestClient(server, tenant.apiKey, ada());
    expect((await acting.post(messages(), { content: 'as Ada' })).body).toMatchObject({
      message: { sender: { handle: 'ada' } },
    });
    const other = createRestClient(server, tenant.apiKey, newId('Participant'));
    const reply = await other.get(`/v1/threads/${threadId}`);
    expect([reply.status, reply.text]).toEqual([404, '{"detail":"Participant not found"}']);
  });
});

describe('methods and paths', () => {
  test('that are not there', async () => {
    for (const path of [
      '/v1/',
      '/v1/nothing',
      '/v1/threads/',
      `/v1/threads/${threadId}/`,
      '/api/v1/x',
      '/tools/x',
    ])
      for (const method of ['GET', 'POST', 'DELETE']) {
        const reply = await restAt(origin)({}, method, path);
        expect([path, reply.status, reply.text, reply.code]).toEqual([
          path,
          404,
          '{"detail":"Not Found"}',
          'NOT_FOUND',
        ]);
      }
  });

  test('that are not allowed say which are', async () => {
    for (const [method, path, allow] of [
      ['PUT', '/v1/threads', 'POST'],
      ['GET', '/v1/threads', 'POST'],
      ['POST', `/v1/threads/${threadId}`, 'GET, HEAD, DELETE'],
      ['OPTIONS', `/v1/threads/${threadId}`, 'GET, HEAD, DELETE'],
      ['DELETE', '/v1/openapi.json', 'GET, HEAD'],
      ['POST', '/v1/docs', 'GET, HEAD'],
    ] as const) {
      const reply = await restAt(origin)(key(), method, path);
      expect([method, path, reply.status, reply.headers.get('allow'), reply.text]).toEqual([
        method,
        path,
        405,
        allow,
        '{"detail":"Method Not Allowed"}',
      ]);
      expect(reply.code).toBe('BAD_REQUEST');
    }
  });

  test('HEAD is GET without the body', async () => {
    for (const path of [`/v1/threads/${threadId}`, '/v1/openapi.json', '/v1/docs', '/v1/threads/x']) {
      const [got, head] = [
        await fetch(`${origin}${path}`, { headers: { ...key(), 'accept-encoding': 'identity' } }),
        await fetch(`${origin}${path}`, {
          method: 'HEAD',
          headers: { ...key(), 'accept-encoding': 'identity' },
        }),
      ];
      expect([path, head.status, await head.text()]).toEqual([path, got.status, '']);
      expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(await got.text())));
    }
  });

  test('carry a request id, and are kept by nobody', async () => {
    const reply = await owner.get(`/v1/threads/${threadId}`, { 'x-request-id': 'abc-1' });
    expect(reply.headers.get('x-request-id')).toBe('abc-1');
    expect(reply.headers.get('cache-control')).toBe('no-store');
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
  });
});

describe('pages of other origins', () => {
  test('may use every method and header there is, where they are allowed', async () => {
    const preflight = await fetch(`${origin}/v1/scratchpads/x/content`, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example', 'access-control-request-method': 'PUT' },
    });
    expect(preflight.status).toBe(204);
    const methods = preflight.headers.get('access-control-allow-methods')?.split(', ') ?? [];
    expect(methods).toEqual(expect.arrayContaining(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']));
    const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ') ?? [];
    expect(allowed).toEqual(expect.arrayContaining(['x-api-key', 'if-match', 'idempotency-key', 'x-act-as']));
    const answer = await owner.get(`/v1/threads/${threadId}`, { origin: 'https://app.example' });
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example');
    const exposed = answer.headers.get('access-control-expose-headers')?.split(', ') ?? [];
    expect(exposed).toEqual(
      expect.arrayContaining(['etag', 'link', 'x-cursor', 'x-entry-seq', 'x-error-code', 'x-expires-at']),
    );
  });

  test('learn nothing elsewhere', async () => {
    const foreign = { origin: 'https://evil.example' };
    const answer = await owner.get(`/v1/threads/${threadId}`, foreign);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    const preflight = await fetch(`${origin}/v1/threads`, {
      method: 'OPTIONS',
      headers: { ...foreign, 'access-control-request-method': 'POST' },
    });
    expect(preflight.status).toBe(403);
  });
});

test('requests are counted by route', async () => {
  await owner.get(`/v1/threads/${threadId}`);
  await owner.get('/v1/threads/x');
  await owner.get('/v1/nothing/at/all');
  const metrics = await (await fetch(`${origin}/metrics`)).text();
  for (const line of [
    'threadpad_operations_total{transport="rest",kind="GET",field="/v1/threads/{thread_id}",code="OK"}',
    'threadpad_operations_total{transport="rest",kind="GET",field="/v1/threads/{thread_id}",code="NOT_FOUND"}',
    'threadpad_operations_total{transport="rest",kind="refused",field="none",code="NOT_FOUND"}',
  ])
    expect(metrics).toContain(line);
  expect(metrics).not.toContain(threadId);
});
