import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { getIntrospectionQuery } from 'graphql';
import { auditServer } from 'graphql-http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OPERATION_LIMITS } from '../../src/graphql/limits.ts';
import { createGraphQLServer } from '../../src/graphql/server.ts';
import { codesOf, get, KEY, openTestDoors, post, type TestDoors } from '../support/doors.ts';
import { until } from '../support/until.ts';

describe('GraphQL over HTTP', () => {
  let doors: TestDoors;
  beforeAll(async () => {
    doors = await openTestDoors();
  });
  afterAll(() => doors.close());

  const failed = async (url: string): Promise<string[]> => {
    const results = await auditServer({
      url,
      fetchFn: (target: string, init: RequestInit = {}) =>
        fetch(target, { ...init, headers: { ...init.headers, ...KEY } }),
    });
    expect(results.length).toBeGreaterThan(50);
    return results
      .filter(({ status, name }) => status !== 'ok' && !name.startsWith('MAY'))
      .map((result) => `${result.name}: ${'reason' in result ? result.reason : ''}`);
  };

  test('passes every MUST and SHOULD of the audit through the doors', async () => {
    expect(await failed(doors.url)).toEqual([]);
  });

  test("passes them through Yoga's own handling alone", async () => {
    const server = createGraphQLServer({ ...doors.options, limits: OPERATION_LIMITS });
    const caller = {
      actor: { kind: 'ADMIN' },
      session: null,
      requestId: 'r',
      transport: 'http',
      signal: null,
      lastEventId: null,
    } as const;
    const listener = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = 'GET', url = '/', headers } = request;
        const texts = Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, String(value)]),
        );
        const body = method === 'POST' ? { body: Buffer.concat(chunks).toString() } : {};
        void server
          .answer({ method, url: `http://localhost${url}`, headers: texts, ...body }, caller)
          .then((answer) => {
            response.writeHead(answer.status, { ...answer.headers }).end(answer.body);
          });
      });
    });
    await new Promise<void>((resolve) => {
      listener.listen(0, '127.0.0.1', resolve);
    });
    try {
      expect(await failed(`http://127.0.0.1:${(listener.address() as AddressInfo).port}/graphql`)).toEqual(
        [],
      );
    } finally {
      listener.closeAllConnections();
      listener.close();
    }
  });

  test.for([
    ['a query', '{ ping me }', {}],
    ['variables', 'query Q($t: String!) { echo(text: $t) }', { variables: { t: 'ä' } }],
    ['one of several operations', 'query A { ping } query B { me }', { operationName: 'B' }],
    ['an expected failure', '{ fail(how: "conflict") }', {}],
    ['a failure that blanks the answer', '{ must(how: "away") }', {}],
    ['a syntax error', '{ ping', {}],
    ['an unknown field', '{ pong }', {}],
    ['a variable that does not fit', 'query Q($v: Int!) { number(value: $v) }', { variables: { v: 'x' } }],
    ['a missing variable', 'query Q($v: Int!) { number(value: $v) }', {}],
    ['an unknown operation', 'query A { ping }', { operationName: 'Z' }],
    ['no operation', 'fragment F on Query { ping }', {}],
    ['a subscription', 'subscription { count(to: 1) { value } }', {}],
    [
      'too expensive',
      '{ items(first: 200) { nodes { items(first: 200) { nodes { items(first: 200) { nodes { id } } } } } } }',
      {},
    ],
    ['too deep', `{ root { ${'items { nodes { '.repeat(6)} id ${'} }'.repeat(6)} } }`, {}],
  ] as const)('GET and POST answer alike: %s', async ([, query, rest]) => {
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      const headers = { ...KEY, accept };
      const posted = await post(doors.url, { query, ...rest }, headers);
      const params = Object.fromEntries(
        Object.entries({ query, ...rest }).map(([name, value]) => [
          name,
          typeof value === 'string' ? value : JSON.stringify(value),
        ]),
      );
      const got = await get(doors.url, params, headers);
      expect(got.body).toEqual(posted.body);
      expect(got.status).toBe(posted.status);
      expect(got.headers.get('content-type')).toBe(posted.headers.get('content-type'));
      expect(posted.headers.get('content-type')).toBe(`${accept}; charset=utf-8`);
      const isRefused = posted.body.data === undefined;
      if (isRefused) expect(codesOf(posted.body).length).toBeGreaterThan(0);
    }
  });

  test('tells expected failures by code and facts, and where', async () => {
    const { body, status } = await post(doors.url, {
      query: '{ a: fail(how: "conflict") b: fail(how: "away") ping }',
    });
    expect(status).toBe(200);
    expect(body.data).toEqual({ a: null, b: null, ping: 'pong' });
    expect(body.errors).toEqual([
      expect.objectContaining({
        message: 'It is there already.',
        path: ['a'],
        extensions: { code: 'CONFLICT', existingId: 'item_1' },
      }),
      expect.objectContaining({
        path: ['b'],
        extensions: { code: 'UNAVAILABLE', retryable: true, retryAfterMs: 1_500 },
      }),
    ]);
  });

  test('says nothing of an unexpected error but its request id, under which the log has the detail', async () => {
    for (const ask of [
      () => post(doors.url, { query: '{ fail(how: "unexpectedly") }' }),
      () => get(doors.url, { query: '{ fail(how: "unexpectedly") }' }),
    ]) {
      const { body, headers } = await ask();
      expect(codesOf(body)).toEqual(['INTERNAL']);
      expect(JSON.stringify(body)).not.toContain('hunter2');
      const requestId = headers.get('x-request-id');
      expect(body.errors?.[0]?.extensions.requestId).toBe(requestId);
      const line = doors.lines.find((candidate) => candidate.includes(`"requestId":"${requestId}"`));
      expect(line).toContain('hunter2');
    }
  });

  test('gives requests the id that a proxy gave them', async () => {
    const { headers } = await post(doors.url, { query: '{ ping }' }, { ...KEY, 'x-request-id': 'abc-1' });
    expect(headers.get('x-request-id')).toBe('abc-1');
    const { headers: odd } = await post(
      doors.url,
      { query: '{ ping }' },
      { ...KEY, 'x-request-id': 'a b"c' },
    );
    expect(odd.get('x-request-id')).not.toBe('a b"c');
  });

  test.for([
    ['no JSON', '{"query": '],
    ['a number', '1'],
    ['null', 'null'],
    ['a batch', '[{"query":"{ ping }"}]'],
    ['no query', '{}'],
    ['a query that is no text', '{"query":1}'],
    ['variables that are no object', '{"query":"{ ping }","variables":[1]}'],
    ['an unknown parameter', '{"query":"{ ping }","id":"1"}'],
    ['a NUL', '{"query":"{ ping }\\u0000"}'],
  ] as const)('refuses a body that is no GraphQL request: %s', async ([what, body]) => {
    const { status, body: answer } = await post(doors.url, body);
    if (what === 'a NUL') expect(codesOf(answer)).toEqual(['GRAPHQL_PARSE_FAILED']);
    else {
      expect(status).toBe(400);
      expect(codesOf(answer)).toEqual(['BAD_REQUEST']);
    }
  });

  test('refuses a body that is no UTF-8', async () => {
    const response = await fetch(doors.url, {
      method: 'POST',
      headers: { ...KEY, 'content-type': 'application/json' },
      body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]),
    });
    expect(response.status).toBe(400);
  });

  test.for([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/graphql',
    'application/graphql+json',
    'application/json; charset=utf-16',
  ])('takes no %s', async (type) => {
    const { status, body } = await post(doors.url, 'query=%7Bping%7D', { ...KEY, 'content-type': type });
    expect(status).toBe(415);
    expect(codesOf(body)).toEqual(['BAD_REQUEST']);
  });

  test('answers 406 where none of its media types is taken', async () => {
    const { status } = await post(doors.url, { query: '{ ping }' }, { ...KEY, accept: 'image/png' });
    expect(status).toBe(406);
  });

  test('mutates by POST only', async () => {
    const { status, headers, body } = await get(doors.url, { query: 'mutation { bump }' });
    expect(status).toBe(405);
    expect(headers.get('allow')).toBe('POST');
    expect(codesOf(body)).toEqual(['BAD_REQUEST']);
    for (const method of ['PUT', 'DELETE', 'PATCH'])
      expect((await fetch(doors.url, { method, headers: KEY })).status).toBe(405);
    expect((await post(doors.url, { query: 'mutation { bump }' })).body.data).toEqual({ bump: 1 });
  });

  test('refuses a body over the limit, chunked or not, and goes on', async () => {
    const large = JSON.stringify({ query: '{ ping }', variables: { text: 'x'.repeat(10 * 1024 * 1024) } });
    const { status, body } = await post(doors.url, large);
    expect(status).toBe(413);
    expect(codesOf(body)).toEqual(['PAYLOAD_TOO_LARGE']);
    const chunked = await fetch(doors.url, {
      method: 'POST',
      headers: { ...KEY, 'content-type': 'application/json' },
      body: new Blob([large]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(chunked.status).toBe(413);
    const within = JSON.stringify({ query: '{ ping }', variables: { text: 'x'.repeat(7 * 1024 * 1024) } });
    expect((await post(doors.url, within)).status).toBe(200);
  });

  describe('credentials', () => {
    test('are 401 for the whole request where they are dead or missing', async () => {
      doors.credentials.end('key-dead');
      for (const headers of [
        { authorization: 'Bearer key-dead' },
        { 'x-api-key': 'nobody' },
        { authorization: 'Basic x' },
      ]) {
        for (const ask of [
          post(doors.url, { query: '{ ping }' }, headers),
          get(doors.url, { query: '{ ping }' }, headers),
        ]) {
          const { status, body, headers: answer } = await ask;
          expect(status).toBe(401);
          expect(codesOf(body)).toEqual(['UNAUTHENTICATED']);
          expect(answer.get('www-authenticate')).toContain('Bearer');
        }
      }
      for (const ask of [
        post(doors.url, { query: '{ ping }' }, {}),
        get(doors.url, { query: '{ ping }' }, {}),
      ]) {
        const { status, body } = await ask;
        expect(status).toBe(401);
        expect(codesOf(body)).toEqual(['UNAUTHENTICATED']);
      }
    });

    test('never go into a URL', async () => {
      for (const name of ['key', 'token', 'access_token', 'api_key', 'Authorization']) {
        const { status, body } = await get(doors.url, { query: '{ ping }', [name]: 'key-1' }, {});
        expect(status).toBe(400);
        expect(codesOf(body)).toEqual(['BAD_REQUEST']);
      }
    });

    test('are not needed to read the schema where it is open, and only for that', async () => {
      const introspection = await post(doors.url, { query: getIntrospectionQuery() }, {});
      expect(introspection.body.data).toHaveProperty('__schema');
      expect((await get(doors.url, { query: '{ __typename }' }, {})).body.data).toEqual({
        __typename: 'Query',
      });
      for (const query of [
        '{ __typename ping }',
        '{ ...F } fragment F on Query { ping }',
        'mutation { bump }',
      ])
        expect((await post(doors.url, { query }, {})).status).toBe(401);
    });

    test('are asked for again once the body has come', async () => {
      const body = JSON.stringify({ query: 'mutation { bump }' });
      const slow = request(doors.url, {
        method: 'POST',
        headers: {
          authorization: 'Bearer key-slow',
          'content-type': 'application/json',
          'content-length': body.length,
        },
      });
      const { state } = doors.credentials;
      const before = state.asked;
      const answered = once(slow, 'response');
      slow.write(body.slice(0, -1));
      await until(() => state.asked > before);
      doors.credentials.end('key-slow');
      slow.end(body.slice(-1));
      const [response] = (await answered) as [IncomingMessage];
      response.resume();
      expect(response.statusCode).toBe(401);
    });

    test('are away with their store', async () => {
      doors.credentials.state.isReachable = false;
      const { status, body, headers } = await post(doors.url, { query: '{ ping }' });
      doors.credentials.state.isReachable = true;
      expect(status).toBe(503);
      expect(codesOf(body)).toEqual(['UNAVAILABLE']);
      expect(headers.get('retry-after')).toBe('1');
    });
  });

  test('in production the schema is read with a credential, and suggests nothing', async () => {
    const production = await openTestDoors({ isSchemaOpen: false, suggestions: false });
    try {
      expect((await post(production.url, { query: '{ __schema { types { name } } }' }, {})).status).toBe(401);
      expect(
        (await post(production.url, { query: '{ __schema { types { name } } }' })).body.data,
      ).toHaveProperty('__schema');
      const { body } = await post(production.url, { query: '{ pin }' });
      expect(body.errors?.[0]?.message).toBe('Cannot query field "pin" on type "Query".');
      expect((await post(doors.url, { query: '{ pin }' })).body.errors?.[0]?.message).toContain(
        'Did you mean',
      );
    } finally {
      await production.close();
    }
  });

  describe('origins', () => {
    test("are allowed by name, and a page's own; without credentials", async () => {
      for (const origin of ['https://app.example', doors.origin]) {
        const { headers } = await post(doors.url, { query: '{ ping }' }, { ...KEY, origin });
        expect(headers.get('access-control-allow-origin')).toBe(origin);
        expect(headers.get('access-control-allow-credentials')).toBeNull();
        const preflight = await fetch(doors.url, {
          method: 'OPTIONS',
          headers: {
            origin,
            'access-control-request-method': 'POST',
            'access-control-request-headers': 'x-act-as',
          },
        });
        expect(preflight.status).toBe(204);
        expect(preflight.headers.get('access-control-allow-headers')).toContain('x-act-as');
      }
      const { headers } = await post(
        doors.url,
        { query: '{ ping }' },
        { ...KEY, origin: 'https://evil.example' },
      );
      expect(headers.get('access-control-allow-origin')).toBeNull();
      const preflight = await fetch(doors.url, {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
      });
      expect(preflight.status).toBe(403);
      expect(preflight.headers.get('set-cookie')).toBeNull();
    });
  });

  test('cuts off a client that does not finish its headers, and answers what is no HTTP', async () => {
    const socket = connect(doors.port, '127.0.0.1');
    const answer = new Promise<string>((resolve) => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      socket.on('close', () => resolve(text));
    });
    socket.write('this is no HTTP\r\n\r\n');
    expect(await answer).toMatch(/^HTTP\/1\.1 400/);
    expect((await post(doors.url, { query: '{ ping }' })).status).toBe(200);
  });

  test('tells a resolver that its client has gone', async () => {
    const controller = new AbortController();
    const waiting = new Promise((resolve) => doors.gates.once('waiting left', resolve));
    const gone = new Promise((resolve) => doors.gates.once('gone left', resolve));
    const request = fetch(doors.url, {
      method: 'POST',
      signal: controller.signal,
      headers: { ...KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ wait(name: "left") }' }),
    });
    const left = expect(request).rejects.toThrow();
    await waiting;
    controller.abort();
    await gone;
    await left;
  });

  test('elsewhere there is nothing but health and metrics', async () => {
    const missing = await fetch(`${doors.origin}/nothing?x=1`);
    expect(missing.status).toBe(404);
    expect(missing.headers.get('x-error-code')).toBe('NOT_FOUND');
    expect(await missing.json()).toEqual({ detail: 'Not Found' });
    expect((await fetch(`${doors.origin}/healthz`)).status).toBe(200);
    const ready = await fetch(`${doors.origin}/readyz`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toEqual({ status: 'ready', needs: { database: 'ready', redis: 'ready' } });
    const metrics = await (await fetch(`${doors.origin}/metrics`)).text();
    expect(metrics).toMatch(
      /threadpad_operations_total\{transport="http",kind="query",field="ping",code="OK"\} \d+/,
    );
    await get(doors.url, { query: '{ number(value: 1) fail(how: "missing") }' });
    expect(await (await fetch(`${doors.origin}/metrics`)).text()).toMatch(
      /transport="http",kind="query",field="number",code="NOT_FOUND"\} 1/,
    );
    for (const gauge of ['sockets', 'subscriptions', 'tails', 'channels'])
      expect(metrics).toContain(`threadpad_${gauge} 0`);
  });

  test('readiness says what is not ready', async () => {
    const away = await openTestDoors({
      readiness: async () => ({ database: 'ready', redis: 'unreachable' }),
    });
    const response = await fetch(`${away.origin}/readyz`);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ needs: { redis: 'unreachable' } });
    await away.close();
  });
});
