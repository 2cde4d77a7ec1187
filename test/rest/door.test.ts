import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Actor } from '../../src/auth/actor.ts';
import { createListener } from '../../src/http/listener.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { createRestDoor, REST_LIMITS } from '../../src/rest/door.ts';
import { type RestRoute, route } from '../../src/rest/route.ts';
import type { Services } from '../../src/services.ts';
import { DomainError, rateLimited, unauthenticated, unavailable } from '../../src/shared/errors.ts';

/** The door over routes of the test's own, which fail as services may. */
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const OWNER: Actor = { kind: 'API_KEY', userId: 'user_1', credentialId: 'cred_1', actAs: null };

const open = async (
  routes: readonly RestRoute[],
  { isDraining = false, ended }: { isDraining?: boolean; ended?: () => boolean } = {},
) => {
  const lines: string[] = [];
  const metrics = createMetrics();
  const door = createRestDoor({
    routes,
    services: {} as Services,
    authentication: {
      authenticate: async () => {
        if (ended?.()) throw unauthenticated('A valid credential is required.');
        return OWNER;
      },
    },
    isDraining: () => isDraining,
    metrics,
    log: pino({ level: 'info' }, { write: (line: string) => lines.push(line) }),
  });
  const listener = createListener({
    routes: [door],
    upgrades: [],
    allowedOrigins: [],
    log: pino({ level: 'silent' }),
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    listener.closeAllConnections();
    listener.close();
    await once(listener, 'close');
  });
  const { port } = listener.address() as AddressInfo;
  return { port, origin: `http://127.0.0.1:${port}`, lines, metrics };
};

const Done = z.object({ done: z.boolean() });
const List = z.object({ object: z.literal('list'), data: z.array(z.string()) });
const shared = {
  path: '/v1/things',
  operationId: 'things',
  tag: 'things',
  summary: 'Things',
  errors: {},
} as const;

const failing = (error: () => unknown): RestRoute =>
  route({
    ...shared,
    method: 'GET',
    answer: Done,
    async serve() {
      throw error();
    },
  });

const listing = (pages: () => AsyncGenerator<readonly string[]>): RestRoute =>
  route({ ...shared, method: 'GET', answer: List, serve: async () => ({ pages: pages() }) });

describe('a failure', () => {
  test('that nobody expected says nothing of itself but in the log', async () => {
    const { origin, lines } = await open([failing(() => new Error('hunter2'))]);
    const response = await fetch(`${origin}/v1/things`);
    expect([response.status, await response.text(), response.headers.get('x-error-code')]).toEqual([
      500,
      '{"detail":"Internal server error"}',
      'INTERNAL',
    ]);
    const requestId = response.headers.get('x-request-id');
    expect(lines.find((line) => line.includes(`"requestId":"${requestId}"`))).toContain('hunter2');
  });

  test.for([
    [rateLimited('Too many.', { retryAfterMs: 2_500 }), 429, '3'],
    [new DomainError('LOOP_LIMIT', 'Only agents speak here.'), 429, '60'],
    [unavailable('The database is away.'), 503, '1'],
  ] as const)('that passes says when to try again: %s', async ([error, status, seconds]) => {
    const { origin } = await open([failing(() => error)]);
    const response = await fetch(`${origin}/v1/things`);
    expect([
      response.status,
      response.headers.get('retry-after'),
      response.headers.get('x-error-code'),
    ]).toEqual([status, seconds, error.code]);
    expect(await response.json()).toEqual({ detail: error.message });
  });

  test('of a list that has begun cuts it off, so that nobody takes it for whole', async () => {
    const { origin, lines, metrics } = await open([
      listing(async function* () {
        yield ['a'];
        yield ['b'];
        throw new Error('hunter2');
      }),
    ]);
    const whole = fetch(`${origin}/v1/things`).then((response) => response.text());
    await expect(whole).rejects.toThrow();
    expect(lines.join('')).toContain('hunter2');
    expect(await metrics.text()).toContain('field="/v1/things",code="INTERNAL"');
  });

  test('of a list before its first page is an ordinary answer', async () => {
    const { origin } = await open([
      listing(async function* () {
        yield await Promise.reject<readonly string[]>(unavailable('Redis is away.'));
      }),
    ]);
    expect((await fetch(`${origin}/v1/things`)).status).toBe(503);
  });
});

test('a list goes out no faster than it is taken, and is let go of with its reader', async () => {
  let made = 0;
  let isFreed = false;
  const { port } = await open([
    listing(async function* () {
      try {
        for (;;) {
          made += 1;
          yield ['x'.repeat(1024 * 1024)];
        }
      } finally {
        isFreed = true;
      }
    }),
  ]);
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /v1/things HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'readable');
  let before = -1;
  await expect
    .poll(
      () => {
        const isStill = before === made;
        before = made;
        return isStill;
      },
      { interval: 200, timeout: 10_000 },
    )
    .toBe(true);
  expect(made).toBeLessThan(32);
  socket.destroy();
  await expect.poll(() => isFreed, { timeout: 10_000 }).toBe(true);
});

test('an empty list is a list', async () => {
  const { origin } = await open([
    listing(async function* () {
      yield [];
    }),
  ]);
  expect(await (await fetch(`${origin}/v1/things`)).text()).toBe('{"object":"list","data":[]}');
  const head = await fetch(`${origin}/v1/things`, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
});

test('a server that is shutting down takes nothing new', async () => {
  const { origin } = await open([failing(() => new Error('never'))], { isDraining: true });
  const response = await fetch(`${origin}/v1/things`);
  expect([
    response.status,
    response.headers.get('x-error-code'),
    response.headers.get('retry-after'),
  ]).toEqual([503, 'UNAVAILABLE', '1']);
  expect((await fetch(`${origin}/v1/nothing`)).status).toBe(404);
});

test.each([
  { method: 'POST', body: z.strictObject({}) },
  // One that takes no body, and is sent one.
  { method: 'DELETE', body: undefined },
] as const)(
  'a credential that ends while a body of $method is coming does nothing any more',
  async ({ method, body }) => {
    let isEnded = false;
    let isServed = false;
    const { port } = await open(
      [
        route({
          ...shared,
          method,
          ...(body && { body }),
          answer: Done,
          async serve() {
            isServed = true;
            return { body: { done: true } };
          },
        }),
      ],
      { ended: () => isEnded },
    );
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `${method} /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{`,
    );
    const answer = new Promise<string>((resolve) =>
      socket.once('data', (chunk) => resolve(chunk.toString())),
    );
    // The first half has come once another request on the same server is answered.
    await fetch(`http://127.0.0.1:${port}/v1/nothing`);
    isEnded = true;
    socket.write('}');
    expect(await answer).toMatch(/^HTTP\/1\.1 401/);
    expect(isServed).toBe(false);
    socket.destroy();
  },
);

test('bodies are bounded as they come', async () => {
  const { origin } = await open([
    route({
      ...shared,
      method: 'POST',
      body: z.object({ text: z.string() }),
      isContent: true,
      answer: Done,
      serve: async () => ({ body: { done: true } }),
    }),
  ]);
  const send = (size: number) =>
    fetch(`${origin}/v1/things`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'x'.repeat(size) }),
    });
  expect((await send(REST_LIMITS.content - 100)).status).toBe(200);
  expect((await send(REST_LIMITS.content)).status).toBe(413);
});

test('two routes never stand at one address', async () => {
  await expect(open([failing(() => null), failing(() => null)])).rejects.toThrow('Two routes');
});
