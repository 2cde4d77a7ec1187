import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Route } from '../../src/http/exchange.ts';
import { send } from '../../src/http/exchange.ts';
import { startApp } from '../support/app.ts';
import { openTestDoors } from '../support/doors.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { createWorld, type World } from '../support/world.ts';

const MIB = 1024 * 1024;

describe('an answer', () => {
  const limit = 4 * MIB;
  let server: Awaited<ReturnType<typeof startApp>>;
  let world: World;
  beforeAll(async () => {
    server = await startApp({ MAX_ANSWER_BYTES: String(limit) });
    world = await createWorld(server.services, 'large');
    for (let index = 0; index < 8; index += 1)
      await server.services.timeline.post(world.owner, {
        threadId: world.threadId,
        as: world.people.ada.id,
        // Six bytes each in JSON.
        content: index < 4 ? '\u0001'.repeat(250_000) : 'x'.repeat(250_000),
        data: { text: 'd'.repeat(100_000) },
      });
  });
  afterAll(() => server.close());

  const aliases = (count: number, field: string): string =>
    Array.from({ length: count }, (_, index) => `a${index}: ${field}`).join(' ');
  const page = (last: number, fields: string): string =>
    `{ thread(id: "${world.threadId}") { timeline { events(last: ${last}) { nodes { ... on Message { ${fields} } } } } } }`;
  const bearer = () => ({ authorization: `Bearer ${world.apiKey}` });
  const refused = {
    data: null,
    errors: [{ extensions: { code: 'QUERY_TOO_EXPENSIVE', limit } }],
  };

  test.for([
    ['texts under many names', () => page(8, aliases(20, 'content'))],
    ['values under many names', () => page(8, aliases(20, 'data'))],
    ['texts that grow as JSON', () => page(8, 'content')],
    ['names that are long themselves', () => page(8, `${'n'.repeat(MIB)}: seq`)],
    ['types under names that are long', () => page(8, `${'n'.repeat(MIB)}: __typename`)],
  ] as const)('of %s is refused whole, over every way in', async ([, text]) => {
    const query = text();
    expect(await server.graphql(world.apiKey, query)).toMatchObject(refused);
    if (query.length < 8_000) {
      const got = await fetch(`${server.url}?${new URLSearchParams({ query })}`, { headers: bearer() });
      expect(await got.json()).toMatchObject(refused);
    }
    const stream = await fetch(server.url, {
      method: 'POST',
      headers: { ...bearer(), 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query }),
    });
    expect(await stream.text()).toContain('"QUERY_TOO_EXPENSIVE"');
    const socket = await openRawSocket(server.socketUrl);
    await socket.init(bearer());
    socket.subscribe('q', query);
    expect((await socket.nextOf('q', 'next')).payload).toMatchObject(refused);
    await socket.close();
  });

  test('of a page that fits comes whole', async () => {
    const { data, errors } = await server.graphql(world.apiKey, page(4, 'content data'));
    expect(errors).toBeUndefined();
    expect(JSON.stringify(data).length).toBeGreaterThan(4 * 250_000);
  });

  test('is not prepared from more pages than it could hold, whatever of them it shows', async () => {
    const pages = (count: number): string =>
      `{ thread(id: "${world.threadId}") { timeline { ${aliases(count, 'events(last: 8) { nodes { id } }')} } } }`;
    expect((await server.graphql(world.apiKey, pages(2))).errors).toBeUndefined();
    const { errors } = await server.graphql(world.apiKey, pages(20));
    expect(errors?.[0]).toMatchObject({ extensions: { code: 'QUERY_TOO_EXPENSIVE', limit: 2 * limit } });
  });

  test('of a subscription is refused alone, and the next one comes', async () => {
    const socket = await openRawSocket(server.socketUrl);
    await socket.init(bearer());
    const { timeline } = (
      await server.graphql<{ thread: { timeline: { end: string } } }>(
        world.apiKey,
        `{ thread(id: "${world.threadId}") { timeline { end } } }`,
      )
    ).data?.thread ?? { timeline: { end: '' } };
    socket.subscribe(
      's',
      `subscription { timeline(threadId: "${world.threadId}", after: "${timeline.end}") { event { seq ... on Message { ${aliases(20, 'content')} } } } }`,
    );
    for (const content of ['y'.repeat(250_000), 'small'])
      await server.services.timeline.post(world.owner, {
        threadId: world.threadId,
        as: world.people.scout.id,
        content,
      });
    // The first says where it begins.
    await socket.nextOf('s', 'next');
    expect((await socket.nextOf('s', 'next')).payload).toMatchObject({
      ...refused,
      extensions: { cursor: expect.any(String) },
    });
    expect((await socket.nextOf('s', 'next')).payload).toMatchObject({
      data: { timeline: { event: { a0: 'small' } } },
    });
    await socket.close();
  });

  test('of REST is refused alike', async () => {
    const url = new URL(`/v1/threads/${world.threadId}/events?limit=50`, server.url);
    const response = await fetch(url, { headers: bearer() });
    expect(response.status).toBe(400);
    expect(response.headers.get('x-error-code')).toBe('QUERY_TOO_EXPENSIVE');
  });
});

describe('an answer that nobody reads', () => {
  const open: Socket[] = [];
  const body = Buffer.alloc(16 * MIB, 'x');
  const large: Route = {
    matches: (path) => path === '/large',
    serve: (exchange) => send(exchange, 200, {}, body),
  };
  const unread = (port: number, key: string): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1' }, () => {
        socket.write(`GET /large HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`);
      });
      open.push(socket);
      socket.once('error', reject);
      socket.once('readable', () => resolve(socket));
    });
  afterEach(() => {
    for (const socket of open.splice(0)) socket.destroy();
  });

  test('is given up once nothing of it was taken for some time; one that is read slowly is not', async () => {
    const doors = await openTestDoors({
      routes: () => [large],
      limits: { outgoing: { answer: 16 * MIB, patience: 300 } },
    });
    try {
      const socket = await unread(doors.port, 'one');
      const slow = await unread(doors.port, 'two');
      let taken = 0;
      const finished = new Promise<void>((resolve) => {
        const take = (): void => {
          const chunk = slow.read(256 * 1024) ?? slow.read();
          taken += (chunk as Buffer | null)?.length ?? 0;
          if (taken > body.length) {
            clearInterval(timer);
            resolve();
          }
        };
        const timer = setInterval(take, 20);
      });
      await finished;
      const response = await fetch(`${doors.origin}/large`);
      expect((await response.arrayBuffer()).byteLength).toBe(body.length);
      let got = 0;
      socket.on('data', (data: Buffer) => {
        got += data.length;
      });
      await new Promise<void>((resolve) =>
        socket.once('close', () => resolve()).once('error', () => resolve()),
      );
      expect(got).toBeLessThan(body.length);
    } finally {
      await doors.close();
    }
  });

  test('makes the next ones wait, of the same credential first', async () => {
    const doors = await openTestDoors({
      routes: () => [large],
      limits: { outgoing: { answer: 16 * MIB, patience: 60_000 } },
    });
    const statusFor = async (key: string): Promise<readonly [number, string | null]> => {
      const response = await fetch(`${doors.origin}/large`, { headers: { 'x-api-key': key } });
      await response.arrayBuffer();
      return [response.status, response.headers.get('x-error-code')];
    };
    try {
      const first = await unread(doors.port, 'one');
      await unread(doors.port, 'one');
      expect(await statusFor('one')).toEqual([429, 'RATE_LIMITED']);
      await unread(doors.port, 'two');
      await unread(doors.port, 'two');
      expect(await statusFor('three')).toEqual([503, 'UNAVAILABLE']);
      first.destroy();
      await expect.poll(() => statusFor('three'), { timeout: 10_000 }).toEqual([200, null]);
    } finally {
      await doors.close();
    }
  });
});
