import { once } from 'node:events';
import { createClient } from 'graphql-ws';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type GraphQLAnswer, openTestDoors, type TestDoors, type TestOptions } from '../support/doors.ts';
import { openRawSocket, type RawSocket } from '../support/rawSocket.ts';
import { until } from '../support/until.ts';

let doors: TestDoors;
const open: RawSocket[] = [];

const connect = async (options: Parameters<typeof openRawSocket>[1] = {}): Promise<RawSocket> => {
  const socket = await openRawSocket(doors.wsUrl, options);
  open.push(socket);
  return socket;
};
const connected = async (payload?: Readonly<Record<string, unknown>>): Promise<RawSocket> => {
  const socket = await connect();
  await socket.init(payload);
  return socket;
};
const reopen = async (options: TestOptions): Promise<void> => {
  await doors.close();
  doors = await openTestDoors(options);
};
const errorCode = (payload: unknown): unknown => (payload as GraphQLAnswer['errors'])?.[0]?.extensions.code;
const answer = (payload: unknown): GraphQLAnswer => payload as GraphQLAnswer;

beforeEach(async () => {
  doors = await openTestDoors();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((socket) => socket.close()));
  await until(async () => (await doors.gauge('threadpad_sockets')) === 0);
  expect(await doors.gauge('threadpad_subscriptions')).toBe(0);
  await until(() => doors.numbers.open === 0 && doors.credentials.state.sessions === 0);
  expect(doors.numbers.events.listenerCount('change')).toBe(0);
  await doors.close();
});

describe('operations over WebSocket', () => {
  test('run, with errors masked as over HTTP', async () => {
    const socket = await connected();
    socket.subscribe('q', '{ ping fail(how: "conflict") }');
    expect(await socket.next()).toMatchObject({
      id: 'q',
      type: 'next',
      payload: {
        data: { ping: 'pong', fail: null },
        errors: [{ path: ['fail'], extensions: { code: 'CONFLICT', existingId: 'item_1' } }],
      },
    });
    expect(await socket.next()).toEqual({ id: 'q', type: 'complete' });
    socket.subscribe('i', '{ fail(how: "unexpectedly") }');
    const { payload } = await socket.nextOf('i', 'next');
    expect(answer(payload).errors?.[0]?.extensions).toEqual({
      code: 'INTERNAL',
      requestId: expect.any(String),
    });
    expect(JSON.stringify(payload)).not.toContain('hunter2');
    expect(doors.lines.join('')).toContain('hunter2');
  });

  test('a stock client subscribes to the end', async () => {
    const client = createClient({
      url: doors.wsUrl,
      webSocketImpl: WebSocket,
      connectionParams: { Authorization: 'Bearer key-1' },
    });
    const cursors: unknown[] = [];
    for await (const { extensions } of client.iterate({ query: 'subscription { count(to: 5) { value } }' }))
      cursors.push((extensions as GraphQLAnswer['extensions'])?.cursor);
    expect(cursors).toEqual(['c1', 'c2', 'c3', 'c4', 'c5']);
    await client.dispose();
  });

  test('each event of a subscription has a context of its own and carries its cursor', async () => {
    const socket = await connected();
    socket.subscribe('s', 'subscription { count(to: 3) { value context cursor } }');
    const payloads = [await socket.next(), await socket.next(), await socket.next()].map(({ payload }) =>
      answer(payload),
    );
    expect(payloads.map(({ extensions }) => extensions?.cursor)).toEqual(['c1', 'c2', 'c3']);
    const contexts = payloads.map(({ data }) => (data as { count: { context: number } }).count.context);
    expect(new Set(contexts).size).toBe(3);
    expect(await socket.next()).toEqual({ id: 's', type: 'complete' });
  });

  test.for([
    ['a syntax error', '{ ping', 'GRAPHQL_PARSE_FAILED'],
    ['an unknown field', 'subscription { nothing }', 'GRAPHQL_VALIDATION_FAILED'],
    ['no operation', 'fragment F on Query { ping }', 'GRAPHQL_VALIDATION_FAILED'],
    [
      'two root fields',
      'subscription { a: never { value } b: never { value } }',
      'GRAPHQL_VALIDATION_FAILED',
    ],
    [
      'too expensive',
      '{ items(first: 200) { nodes { items(first: 200) { nodes { items(first: 200) { nodes { id } } } } } } }',
      'QUERY_TOO_EXPENSIVE',
    ],
    ['an empty document', '', 'GRAPHQL_PARSE_FAILED'],
  ] as const)('a bad one ends only itself: %s', async ([, query, code]) => {
    const socket = await connected();
    socket.subscribe('live', 'subscription { live { value } }');
    await socket.nextOf('live', 'next');
    socket.subscribe('bad', query);
    const { type, payload } = await socket.nextOf('bad');
    expect(type).toBe('error');
    expect(errorCode(payload)).toBe(code);
    doors.numbers.grow();
    expect(await socket.nextOf('live', 'next')).toMatchObject({ payload: { data: { live: { value: 1 } } } });
  });

  test('variables that do not fit, and a source that refuses or breaks, are answers on the id', async () => {
    const socket = await connected();
    socket.subscribe('v', 'query Q($v: Int!) { number(value: $v) }', { v: 'x' });
    expect(answer((await socket.nextOf('v', 'next')).payload).errors?.[0]?.extensions.code).toBe(
      'GRAPHQL_VALIDATION_FAILED',
    );
    socket.subscribe('r', 'subscription { refused { value } }');
    expect(answer((await socket.nextOf('r', 'next')).payload).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    socket.subscribe('b', 'subscription { broken(how: "unexpectedly") { value } }');
    expect(answer((await socket.nextOf('b', 'next')).payload).data).toEqual({ broken: { value: 1 } });
    const { payload } = await socket.nextOf('b', 'next');
    expect(answer(payload).errors?.[0]?.extensions.code).toBe('INTERNAL');
    expect(JSON.stringify(payload)).not.toContain('hunter2');
    expect((await socket.nextOf('b')).type).toBe('complete');
  });

  test.for([
    ['a store is away', 'away', 6],
    ['something unexpected happens', 'unexpectedly', 3],
    ['another thread that it reads is deleted', 'gone', 2],
    ['a scratchpad that it reads is deleted', 'pad gone', 2],
  ] as const)('an event is sent once it can be read whole: %s', async ([, how, times]) => {
    const socket = await connected();
    socket.subscribe('s', `subscription { count(to: 2) { value shaky(times: ${times}, how: "${how}") } }`);
    const payloads = [await socket.next(), await socket.next()].map(({ payload }) => payload);
    expect(payloads).toEqual([
      { data: { count: { value: 1, shaky: `at the ${times + 1}.` } }, extensions: { cursor: 'c1' } },
      { data: { count: { value: 2, shaky: `at the ${times + 2}.` } }, extensions: { cursor: 'c2' } },
    ]);
    expect((await socket.next()).type).toBe('complete');
  });

  test('where a stream goes on after an event that it held back, its end stands at the last that went out', async () => {
    const socket = await connected();
    doors.numbers.grow(2);
    socket.subscribe('s', 'subscription { live { value ended shaky(times: 1, how: "own gone") } }');
    for (const value of [1, 2])
      expect((await socket.next()).payload).toMatchObject({
        data: { live: { value } },
        extensions: { cursor: `c${value}` },
      });
    doors.numbers.end('OVER');
    expect((await socket.next()).payload).toMatchObject({
      data: { live: { ended: 'OVER' } },
      extensions: { cursor: 'c2' },
    });
    expect((await socket.next()).type).toBe('complete');
  });

  test('an event that fails unexpectedly at every attempt ends the stream before it', async () => {
    const socket = await connected();
    doors.numbers.grow();
    socket.subscribe('s', 'subscription { live { value fail } }');
    const { payload } = await socket.next();
    expect(payload).toEqual({
      errors: [expect.objectContaining({ path: ['live', 'fail'], extensions: expect.anything() })],
    });
    expect(answer(payload).errors?.[0]?.extensions.code).toBe('INTERNAL');
    expect((await socket.next()).type).toBe('complete');
    await until(() => doors.numbers.open === 0);
  });

  test('what is refused inside of an event is its answer', async () => {
    const socket = await connected();
    socket.subscribe('s', 'subscription { count(to: 1) { value shaky(times: 1, how: "missing") } }');
    expect(answer((await socket.next()).payload)).toMatchObject({
      data: { count: { value: 1, shaky: null } },
      errors: [{ extensions: { code: 'NOT_FOUND' } }],
      extensions: { cursor: 'c1' },
    });
  });
});

describe('the socket', () => {
  test.for([
    ['Authorization', 'Bearer key-1'],
    ['AUTHORIZATION', 'bearer part-1'],
    ['x-api-key', 'key-1'],
    ['X-API-Key', 'key-1'],
  ] as const)('takes the credential as %s: %s', async ([name, value]) => {
    const socket = await connected({ [name]: value, userId: 'user-b', actor: { kind: 'ADMIN' } });
    socket.subscribe('q', '{ me }');
    const { payload } = await socket.next();
    expect(answer(payload).data).toEqual({ me: value.includes('part') ? 'PARTICIPANT_TOKEN' : 'API_KEY' });
  });

  test('closes with 4403 for a dead, an unknown and no credential', async () => {
    doors.credentials.end('key-dead');
    for (const payload of [
      { authorization: 'Bearer key-dead' },
      { authorization: 'nonsense' },
      {},
      undefined,
    ]) {
      const socket = await connect();
      socket.send({ type: 'connection_init', ...(payload && { payload }) });
      expect((await socket.closed).code).toBe(4403);
    }
  });

  test('closes with a code to come back on while credentials cannot be checked', async () => {
    doors.credentials.state.isReachable = false;
    const socket = await connect();
    socket.send({ type: 'connection_init', payload: { authorization: 'Bearer key-1' } });
    expect(await socket.closed).toEqual({ code: 1013, reason: 'UNAVAILABLE' });
  });

  test('is closed when it does not say who it is in time, or says too much before', async () => {
    await reopen({ limits: { webSocket: { init: 50 } } });
    expect((await (await connect()).closed).code).toBe(4408);
    await reopen({});
    const socket = await connect();
    socket.ws.on('error', () => {});
    socket.ws.send(' '.repeat(100_000));
    expect([1009, 1006, 4400]).toContain((await socket.closed).code);
  });

  test('is refused to foreign origins before the handshake', async () => {
    await expect(openRawSocket(doors.wsUrl, { origin: 'https://evil.example' })).rejects.toThrow('403');
    for (const origin of ['https://app.example', doors.origin]) await (await connect({ origin })).close();
    await expect(openRawSocket(`${doors.origin.replace('http', 'ws')}/elsewhere`)).rejects.toThrow('404');
  });

  test('compresses nothing', async () => {
    expect((await connect()).ws.extensions).toBe('');
  });

  test.for([
    ['no JSON', 'nonsense'],
    ['an unknown type', '{"type":"start"}'],
    ['a subscribe without an id', '{"type":"subscribe","payload":{"query":"{ ping }"}}'],
    ['a next from the client', '{"type":"next","id":"1","payload":{}}'],
    ['deep nonsense', '['.repeat(50_000)],
  ] as const)('closes with 4400 on what is no message, and harms nobody: %s', async ([, message]) => {
    const other = await connected();
    const socket = await connected();
    socket.send(message);
    expect((await socket.closed).code).toBe(4400);
    other.subscribe('q', '{ ping }');
    expect((await other.next()).type).toBe('next');
  });

  test('refuses a message over the limit on its id and goes on; a far longer one closes', async () => {
    await reopen({ limits: { webSocket: { message: 100_000 } } });
    const socket = await connected();
    socket.subscribe('live', 'subscription { live { value } }');
    await socket.nextOf('live', 'next');
    socket.subscribe('large', 'query Q($t: String!) { echo(text: $t) }', { t: 'x'.repeat(150_000) });
    const { type, payload } = await socket.nextOf('large');
    expect(type).toBe('error');
    expect(errorCode(payload)).toBe('PAYLOAD_TOO_LARGE');
    doors.numbers.grow();
    await socket.nextOf('live', 'next');
    socket.ws.on('error', () => {});
    socket.subscribe('larger', 'query Q($t: String!) { echo(text: $t) }', { t: 'x'.repeat(250_000) });
    expect((await socket.closed).code).toBe(1009);
  });

  test('carries so many subscriptions and no more', async () => {
    await reopen({ limits: { webSocket: { subscriptions: 3, operations: 2 } } });
    const socket = await connected();
    for (const id of ['1', '2', '3']) {
      socket.subscribe(id, 'subscription { live { value } }');
      await socket.nextOf(id, 'next');
    }
    socket.subscribe('4', 'subscription { live { value } }');
    expect(errorCode((await socket.nextOf('4', 'error')).payload)).toBe('RATE_LIMITED');
    socket.send({ id: '1', type: 'complete' });
    await until(() => doors.numbers.open === 2);
    socket.subscribe('5', 'subscription { live { value } }');
    await socket.nextOf('5', 'next');
    for (const id of ['a', 'b']) {
      const waiting = once(doors.gates, `waiting ${id}`);
      socket.subscribe(id, `{ wait(name: "${id}") }`);
      await waiting;
    }
    socket.subscribe('c', '{ ping }');
    expect(errorCode((await socket.nextOf('c', 'error')).payload)).toBe('RATE_LIMITED');
    doors.gates.emit('a');
    await socket.nextOf('a', 'complete');
    socket.subscribe('d', '{ ping }');
    await socket.nextOf('d', 'next');
  });

  test('counts against the credential, the user and, until it is known, the address', async () => {
    await reopen({ limits: { connections: { perCredential: 2, perUser: 3, unknownPerAddress: 2 } } });
    const first = await connected({ 'x-api-key': 'key-1' });
    await connected({ 'x-api-key': 'key-1' });
    const refused = async (key: string): Promise<void> => {
      const socket = await connect();
      socket.send({ type: 'connection_init', payload: { 'x-api-key': key } });
      expect(await socket.closed).toEqual({ code: 1013, reason: 'too many connections' });
    };
    await refused('key-1');
    await connected({ 'x-api-key': 'key-2' });
    await refused('key-3');
    await connected({ 'x-api-key': 'key-1-b' });
    await first.close();
    await until(() => doors.credentials.state.sessions === 3);
    await connected({ 'x-api-key': 'key-3' });
    const silent = [await connect(), await connect()];
    await expect(openRawSocket(doors.wsUrl)).rejects.toThrow('429');
    await silent[0]?.init({ 'x-api-key': 'key-2-b' });
    await connect();
  });

  test('behind a proxy counts against the address that the outermost trusted one saw', async () => {
    const connections = { perCredential: 100, perUser: 100, unknownPerAddress: 1 };
    await reopen({ trustedProxies: 2, limits: { connections } });
    const from = (forwarded: string) => connect({ headers: { 'x-forwarded-for': forwarded } });
    await from('6.6.6.6, 10.0.0.1, 10.9.9.9');
    await expect(from('7.7.7.7, 10.0.0.1, 10.9.9.9')).rejects.toThrow('429');
    await from('7.7.7.7, 10.0.0.2, 10.9.9.9');
  });

  test('ends a connection whose other end has gone silent', async () => {
    await reopen({ limits: { webSocket: { heartbeat: 60 } } });
    const alive = await connected();
    const socket = await openRawSocket(doors.wsUrl);
    await socket.init();
    socket.ws.pause();
    await until(async () => (await doors.gauge('threadpad_sockets')) === 1);
    socket.ws.resume();
    expect((await socket.closed).code).toBe(1006);
    alive.subscribe('q', '{ ping }');
    expect((await alive.next()).type).toBe('next');
  });

  test('renews its credential without disturbing a subscription', async () => {
    const socket = await connected({ 'x-api-key': 'key-1' });
    socket.subscribe('live', 'subscription { live { value who } }');
    expect(await socket.nextOf('live', 'next')).toMatchObject({
      payload: { data: { live: { who: 'key-1' } } },
    });
    socket.subscribe('r', 'mutation { renew(token: "key-2") }');
    expect(await socket.nextOf('r', 'next')).toMatchObject({ payload: { data: { renew: 'key-2' } } });
    doors.credentials.end('key-1');
    doors.numbers.grow();
    expect(await socket.nextOf('live', 'next')).toMatchObject({
      payload: { data: { live: { value: 1, who: 'key-2' } } },
    });
  });
});

describe('an ended credential', () => {
  test('ends streams with a last payload, then closes with 4403', async () => {
    const socket = await connected();
    socket.subscribe('a', 'subscription { live { value ended cursor } }');
    socket.subscribe('b', 'subscription { live { ended } }');
    await socket.nextOf('b', 'next');
    doors.numbers.grow(2);
    await until(() => socket.messages.length === 7);
    doors.credentials.end('key-1');
    expect((await socket.closed).code).toBe(4403);
    for (const id of ['a', 'b']) {
      const own = socket.messages.filter((message) => message.id === id);
      expect(own.slice(-2)).toMatchObject([
        { payload: { data: { live: { ended: 'CREDENTIAL_ENDED' } } } },
        { type: 'complete' },
      ]);
      expect(answer(own.at(-2)?.payload).extensions?.cursor).toBe('c2');
    }
  });

  test('lets nothing out that was not cleared; the last payload tells the position that was', async () => {
    const socket = await connected();
    socket.subscribe('a', 'subscription { live { value ended cursor } }');
    await socket.nextOf('a', 'next');
    doors.numbers.grow();
    await socket.nextOf('a', 'next');
    let clear = (): void => {};
    doors.credentials.state.clearance = new Promise((resolve) => {
      clear = resolve;
    });
    doors.numbers.grow(2);
    await until(() => doors.numbers.pulled === 2);
    doors.credentials.end('key-1');
    clear();
    const { payload } = await socket.nextOf('a', 'next');
    expect(answer(payload)).toEqual({
      data: { live: { value: null, ended: 'CREDENTIAL_ENDED', cursor: 'c1' } },
      extensions: { cursor: 'c1' },
    });
    expect((await socket.closed).code).toBe(4403);
  });

  test('closes also a socket with nothing on it, and one whose operation hangs', async () => {
    const idle = await connected();
    const busy = await connected();
    const waiting = once(doors.gates, 'waiting long');
    busy.subscribe('w', '{ wait(name: "long") }');
    await waiting;
    doors.credentials.end('key-1');
    expect((await idle.closed).code).toBe(4403);
    expect((await busy.closed).code).toBe(4403);
  });
});

describe('abort', () => {
  test('while a subscription is being set up frees it at once', async () => {
    const socket = await connected();
    const waiting = once(doors.gates, 'waiting slowly');
    socket.subscribe('s', 'subscription { setUp(name: "slowly") { value } }');
    await waiting;
    const gone = once(doors.gates, 'gone slowly');
    socket.send({ id: 's', type: 'complete' });
    await gone;
    await until(async () => (await doors.gauge('threadpad_subscriptions')) === 0 && doors.numbers.open === 0);
    socket.subscribe('s', '{ ping }');
    expect(await socket.next()).toMatchObject({ id: 's', type: 'next' });
  });

  test('frees the id, also for one that comes before the first has gone', async () => {
    await reopen({ limits: { webSocket: { subscriptions: 2 } } });
    const socket = await connected();
    for (let round = 1; round <= 4; round += 1) {
      const waiting = once(doors.gates, 'waiting slowly');
      socket.subscribe('x', 'subscription { setUp(name: "slowly") { value } }');
      await waiting;
      socket.send({ id: 'x', type: 'complete' });
      socket.subscribe('x', 'subscription { live { cursor value } }');
      if (round % 2 === 0) {
        socket.send({ id: 'x', type: 'complete' });
        socket.subscribe('x', 'subscription { live { cursor value who } }');
      }
      const { type, payload } = await socket.nextOf('x');
      expect([type, answer(payload).data]).toMatchObject(['next', { live: { cursor: 'c0' } }]);
      doors.numbers.grow();
      for (let value = 1; value <= round; value += 1)
        expect(await socket.nextOf('x')).toMatchObject({
          type: 'next',
          payload: { data: { live: { value } } },
        });
      socket.send({ id: 'x', type: 'complete' });
      await until(async () => (await doors.gauge('threadpad_subscriptions')) === 0);
    }
    for (const id of ['a', 'b']) {
      socket.subscribe(id, 'subscription { live { value } }');
      expect((await socket.nextOf(id)).type).toBe('next');
    }
  });

  test('of a running subscription frees the id for the very next message', async () => {
    const socket = await connected();
    socket.subscribe('x', 'subscription { live { value } }');
    expect((await socket.nextOf('x')).type).toBe('next');
    socket.send({ id: 'x', type: 'complete' });
    socket.subscribe('x', 'subscription { count(to: 2) { value } }');
    const types = [await socket.nextOf('x'), await socket.nextOf('x'), await socket.nextOf('x')].map(
      ({ type }) => type,
    );
    expect(types).toEqual(['next', 'next', 'complete']);
  });

  test('before the first event and between events frees it', async () => {
    const socket = await connected();
    const waiting = once(doors.gates, 'waiting never');
    socket.subscribe('n', 'subscription { never { value } }');
    await waiting;
    socket.subscribe('l', 'subscription { live { value } }');
    await socket.nextOf('l', 'next');
    expect(doors.numbers.open).toBe(2);
    socket.send({ id: 'n', type: 'complete' });
    await until(() => doors.numbers.open === 1);
    socket.send({ id: 'l', type: 'complete' });
    await until(() => doors.numbers.open === 0);
    expect(await doors.gauge('threadpad_subscriptions')).toBe(0);
  });

  test('of the connection frees everything on it', async () => {
    const socket = await connected();
    const waiting = once(doors.gates, 'waiting s');
    socket.subscribe('1', 'subscription { setUp(name: "s") { value } }');
    await waiting;
    socket.subscribe('2', 'subscription { live { value } }');
    await socket.nextOf('2', 'next');
    socket.ws.terminate();
    await until(() => doors.numbers.open === 0);
  });
});

describe('a slow reader', () => {
  const LIMITS = { pause: 256 * 1024, most: 1024 * 1024, patience: 300 };

  test('is not fed, and closed with 1013 when it stays slow; others are not delayed', async () => {
    await reopen({ limits: { webSocket: { flow: LIMITS } } });
    const slow = await connected();
    const quick = await connected();
    slow.ws.pause();
    slow.subscribe('b', 'subscription { blob(bytes: 100000) { text } }');
    let last = -1;
    await until(() => {
      const isStill = doors.numbers.pulled === last && last > 0;
      last = doors.numbers.pulled;
      return isStill;
    }, 60);
    quick.subscribe('q', '{ ping }');
    expect((await quick.next()).type).toBe('next');
    await until(async () => (await doors.gauge('threadpad_subscriptions')) === 0);
    slow.ws.resume();
    expect(await slow.closed).toEqual({ code: 1013, reason: 'slow reader' });
    // The kernel's buffers took some; what the process held is bounded.
    expect(doors.numbers.pulled).toBeLessThan(200);
    const received = slow.messages.filter(({ type }) => type === 'next').length;
    expect(doors.numbers.pulled - received).toBeLessThanOrEqual(2);
  });

  test('that catches up in time receives everything, in order', async () => {
    await reopen({ limits: { webSocket: { flow: { ...LIMITS, patience: 10_000 } } } });
    const socket = await connected();
    socket.ws.pause();
    socket.subscribe('b', 'subscription { blob(bytes: 100000) { value text } }');
    await until(() => doors.numbers.pulled > 3);
    socket.ws.resume();
    await until(() => socket.messages.length > 100);
    socket.send({ id: 'b', type: 'complete' });
    const values = socket.messages
      .filter(({ type }) => type === 'next')
      .map(({ payload }) => (answer(payload).data as { blob: { value: number } }).blob.value);
    expect(values).toEqual(values.map((_, index) => index + 1));
  });

  test('is closed at once when too much piles up behind it', async () => {
    await reopen({ limits: { webSocket: { flow: { ...LIMITS, patience: 60_000 } } } });
    const socket = await connected();
    socket.ws.pause();
    socket.subscribe('b', 'subscription { blob(bytes: 100000) { text } }');
    await until(() => doors.numbers.pulled > 3);
    for (let id = 0; id < 200; id += 1)
      socket.subscribe(`q${id}`, 'query Q($t: String!) { echo(text: $t) }', { t: 'x'.repeat(100_000) });
    await until(async () => (await doors.gauge('threadpad_subscriptions')) === 0);
    socket.ws.resume();
    expect(await socket.closed).toEqual({ code: 1013, reason: 'slow reader' });
  });

  test('of one large answer is none', async () => {
    await reopen({ limits: { webSocket: { flow: LIMITS } } });
    const socket = await connected();
    socket.subscribe('q', 'query Q($t: String!) { echo(text: $t) }', { t: 'x'.repeat(4_000_000) });
    const { payload } = await socket.next();
    expect(String(answer(payload).data?.echo).length).toBe(4_000_000);
    expect((await socket.next()).type).toBe('complete');
  });
});
