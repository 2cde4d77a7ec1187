import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codesOf, type GraphQLAnswer, KEY, openTestDoors, post, type TestDoors } from '../support/doors.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { until } from '../support/until.ts';

describe('whatever is sent', () => {
  let doors: TestDoors;
  const rejections: unknown[] = [];
  const onRejection = (error: unknown): void => {
    rejections.push(error);
  };
  beforeAll(async () => {
    process.on('unhandledRejection', onRejection);
    doors = await openTestDoors({
      limits: { connections: { perCredential: 1_000, perUser: 1_000, unknownPerAddress: 1_000 } },
    });
  });
  afterAll(async () => {
    expect((await post(doors.url, { query: '{ ping }' })).body.data).toEqual({ ping: 'pong' });
    expect(doors.lines.filter((line) => line.includes('unexpected error'))).toEqual([]);
    await until(async () => (await doors.gauge('threadpad_sockets')) === 0);
    expect(await doors.gauge('threadpad_subscriptions')).toBe(0);
    await doors.close();
    expect(rejections).toEqual([]);
    process.off('unhandledRejection', onRejection);
  });

  const query = fc.oneof(
    fc.constantFrom(
      '{ ping }',
      'query Q($t: String!) { echo(text: $t) }',
      '{',
      '',
      'subscription { count(to: 2) { value } }',
    ),
    fc.string({ unit: 'binary' }),
    fc
      .array(
        fc.constantFrom(
          '{',
          '}',
          '(',
          ')',
          'ping',
          ':',
          '...',
          '$a',
          '"',
          '@skip',
          'on',
          '1',
          '!',
          '\u0000',
          '\ud800',
        ),
      )
      .map((tokens) => tokens.join(' ')),
  );
  const params = fc.oneof(
    fc.record(
      {
        query: fc.oneof(query, fc.jsonValue()),
        variables: fc.jsonValue(),
        operationName: fc.jsonValue(),
        extensions: fc.jsonValue(),
      },
      { requiredKeys: [] },
    ),
    fc.record({
      query,
      variables: fc.dictionary(fc.constantFrom('t', '__proto__', 'constructor', 'a'), fc.jsonValue()),
    }),
    fc.jsonValue(),
  );

  const expectClear = (status: number, answer: GraphQLAnswer): void => {
    expect([200, 400, 401, 405, 406, 413, 415]).toContain(status);
    expect(codesOf(answer)).not.toContain('INTERNAL');
    expect(answer.data !== undefined || codesOf(answer).length > 0).toBe(true);
  };

  test('by POST is answered clearly', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          params.map((value) => JSON.stringify(value)),
          fc.string(),
        ),
        async (body) => {
          const { status, body: answer } = await post(doors.url, body);
          expectClear(status, answer);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('by GET is answered clearly', async () => {
    const parameter = fc.tuple(
      fc.constantFrom('query', 'variables', 'operationName', 'extensions', 'ticket', 'x'),
      fc.oneof(query, fc.json()),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(parameter, { maxLength: 5 }), async (parameters) => {
        const response = await fetch(`${doors.url}?${new URLSearchParams(parameters)}`, { headers: KEY });
        expectClear(response.status, (await response.json()) as GraphQLAnswer);
      }),
      { numRuns: 300 },
    );
  });

  test('over WebSocket is answered on its id, or closes the socket with a code that says why', async () => {
    const id = fc.oneof(fc.constantFrom('1', '2', '3'), fc.jsonValue());
    const message = fc.oneof(
      { weight: 4, arbitrary: fc.record({ id, type: fc.constant('subscribe'), payload: params }) },
      { weight: 2, arbitrary: fc.record({ id, type: fc.constant('complete') }) },
      fc.record({
        type: fc.constantFrom('ping', 'pong', 'connection_init', 'next', 'x'),
        payload: fc.jsonValue(),
      }),
      fc.jsonValue(),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 8 }), fc.boolean(), async (messages, isIn) => {
        const socket = await openRawSocket(doors.wsUrl);
        if (isIn) await socket.init();
        for (const one of messages) socket.ws.send(JSON.stringify(one) ?? 'null');
        socket.send({ type: 'ping', payload: { last: true } });
        const last = until(
          () =>
            socket.messages.some(
              ({ type, payload }) => type === 'pong' && JSON.stringify(payload)?.includes('last'),
            ),
          1,
        );
        const closed = socket.closed.then(({ code }) => expect([4400, 4403]).toContain(code));
        await Promise.race([last, closed]);
        last.catch(() => {});
        for (const { payload } of socket.messages)
          expect(JSON.stringify(payload) ?? '').not.toContain('INTERNAL');
        await socket.close().catch(() => {});
      }),
      { numRuns: 200 },
    );
  });

  test('over TCP does no harm', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 3 }),
        fc.boolean(),
        async (chunks, isUpgrade) => {
          const socket = connect(doors.port, '127.0.0.1');
          socket.on('error', () => {});
          if (isUpgrade)
            socket.write(
              'GET /graphql HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n',
            );
          for (const chunk of chunks) socket.write(chunk);
          socket.end();
          socket.resume();
          await once(socket, 'close');
        },
      ),
      { numRuns: 100 },
    );
  });

  test('subscribed to and aborted at any moment, two thousand times, leaves nothing behind', async () => {
    const socket = await openRawSocket(doors.wsUrl);
    await socket.init();
    for (let round = 0; round < 2_000; round += 1) {
      const id = `${round}`;
      socket.subscribe(
        id,
        round % 2 === 0 ? 'subscription { live { value } }' : 'subscription { never { value } }',
      );
      if (round % 3 === 0) doors.numbers.grow();
      if (round % 10 === 0) await socket.nextOf(id, 'next');
      socket.send({ id, type: 'complete' });
    }
    socket.subscribe('last', '{ ping }');
    await socket.nextOf('last', 'complete');
    await until(() => doors.numbers.open === 0);
    expect(doors.numbers.events.listenerCount('change')).toBe(0);
    expect(await doors.gauge('threadpad_subscriptions')).toBe(0);
    await socket.close();
  });
});
