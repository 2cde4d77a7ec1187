import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Answer } from '../support/app.ts';
import { amongBystanders } from '../support/bystanders.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { watchSocket } from '../support/watchers.ts';

const others = amongBystanders();

describe('a message on a socket', () => {
  const greeted = async () => {
    const socket = await openRawSocket(others.server.socketUrl);
    await socket.init({ authorization: `Bearer ${others.world.people.scout.token}` });
    return socket;
  };
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;

  test.for([
    ['no JSON', '{"type":'],
    ['nothing', ''],
    ['a number', '1'],
    ['null', 'null'],
    ['an array', '[]'],
    ['far too deep', deep],
    ['no type', '{"id":"1"}'],
    ['a type that is none', '{"type":"start","id":"1"}'],
    ['a type that every object has', '{"type":"constructor","id":"1"}'],
    ['no id', '{"type":"subscribe","payload":{"query":"{ viewer { user { id } } }"}}'],
    ['an id that is no text', '{"type":"subscribe","id":1,"payload":{"query":"{ viewer { user { id } } }"}}'],
    ['no payload', '{"type":"subscribe","id":"1"}'],
    ['a query that is no text', '{"type":"subscribe","id":"1","payload":{"query":{}}}'],
    [
      'variables that are none',
      '{"type":"subscribe","id":"1","payload":{"query":"{ viewer { user { id } } }","variables":[]}}',
    ],
    ['bytes', Buffer.from([0, 1, 2])],
    ['half a character', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['a second greeting', '{"type":"connection_init"}'],
  ] as const)('that is %s closes that socket and nothing else', async ([, message]) => {
    const socket = await greeted();
    socket.ws.send(message);
    const { code, reason } = await socket.closed;
    expect([1002, 1007, 4400]).toContain(code);
    expect(reason).not.toMatch(/at |\.ts|node_modules/);
  });

  test.for([
    [
      'a query before the greeting',
      '{"type":"subscribe","id":"1","payload":{"query":"{ viewer { user { id } } }"}}',
    ],
    ['a greeting of the wrong form', '{"type":"connection_init","payload":[]}'],
    ['a greeting without a credential', '{"type":"connection_init"}'],
    [
      'a greeting with claims',
      '{"type":"connection_init","payload":{"actor":{"kind":"ADMIN"},"userId":"x","__proto__":{"authorization":"Bearer x"}}}',
    ],
  ] as const)('%s gets in nobody', async ([, message]) => {
    const socket = await openRawSocket(others.server.socketUrl);
    socket.send(message);
    expect([4400, 4403]).toContain((await socket.closed).code);
    expect(socket.messages).toEqual([]);
  });

  const ada = () => others.world.people.ada.id;
  test.for([
    ['X-Act-As that is a number', () => ({ 'X-Act-As': 5 })],
    ['X-Act-As that is a list', () => ({ 'X-Act-As': [ada()] })],
    ['X-Act-As that is an object', () => ({ 'x-act-as': { id: ada() } })],
    ['X-Act-As that is true', () => ({ 'X-Act-As': true })],
    ['X-Act-As that is null', () => ({ 'X-Act-As': null })],
    ['two of X-Act-As', () => ({ 'X-Act-As': ada(), 'x-act-as': others.world.people.scout.id })],
    ['X-API-Key that is a list', () => ({ 'X-API-Key': [others.world.apiKey] })],
    ['Authorization that is an object', () => ({ Authorization: {} })],
    ['two of Authorization', () => ({ Authorization: `Bearer ${others.world.people.scout.token}` })],
  ] as const)('a greeting with a key and %s gets in nobody', async ([, fields]) => {
    const socket = await openRawSocket(others.server.socketUrl);
    socket.send({
      type: 'connection_init',
      payload: { authorization: `Bearer ${others.world.apiKey}`, ...fields() },
    });
    expect((await socket.closed).code).toBe(4403);
    expect(socket.messages).toEqual([]);
  });

  test('a greeting that says the same twice gets in', async () => {
    const socket = await openRawSocket(others.server.socketUrl);
    const authorization = `Bearer ${others.world.apiKey}`;
    await socket.init({ authorization, Authorization: authorization, 'X-Act-As': ada(), 'x-act-as': ada() });
    await socket.close();
  });

  test('with a bad operation ends that one, on its id, beside live subscriptions of the same socket', async () => {
    const socket = await watchSocket(others.server, others.world.people.scout.token, others.world.threadId);
    const codeOf = async (
      text: string,
      variables: Readonly<Record<string, unknown>> = {},
    ): Promise<unknown> => {
      const id = `bad-${randomUUID()}`;
      socket.socket.subscribe(id, text, variables);
      const { type, payload } = await socket.socket.nextOf(id);
      const errors = type === 'error' ? payload : (payload as Answer).errors;
      return (errors as Answer['errors'])?.[0]?.extensions?.code;
    };
    for (const [text, code, variables] of [
      ['subscription {', 'GRAPHQL_PARSE_FAILED', {}],
      ['', 'GRAPHQL_PARSE_FAILED', {}],
      ['subscription { nothing }', 'GRAPHQL_VALIDATION_FAILED', {}],
      ['subscription { timeline(threadId: 1.5) { cursor } }', 'GRAPHQL_VALIDATION_FAILED', {}],
      ['subscription($a: ID!) { timeline(threadId: $a) { cursor } }', 'GRAPHQL_VALIDATION_FAILED', {}],
      ['subscription { a: threads { ended } b: threads { ended } }', 'GRAPHQL_VALIDATION_FAILED', {}],
      ['subscription { timeline(threadId: "x") { cursor } }', 'NOT_FOUND', {}],
      [
        `subscription { timeline(threadId: "${others.world.threadId}", after: "x") { cursor } }`,
        'INVALID_CURSOR',
        {},
      ],
      ['subscription($a: ID!) { timeline(threadId: $a) { cursor } }', 'NOT_FOUND', { a: '\u0000' }],
      [`{ ${'a '.repeat(6_000)} }`, 'QUERY_TOO_EXPENSIVE', {}],
      [`{ nodes(ids: ${'['.repeat(2_200)}${']'.repeat(2_200)}) { id } }`, 'QUERY_TOO_EXPENSIVE', {}],
      ['{a:'.repeat(1_900), 'QUERY_TOO_EXPENSIVE', {}],
      ['{ __typename @skip }', 'GRAPHQL_VALIDATION_FAILED', {}],
      ['query A { __typename } query B { __typename }', 'GRAPHQL_VALIDATION_FAILED', {}],
    ] as const)
      expect([text.slice(0, 60), await codeOf(text, variables)]).toEqual([text.slice(0, 60), code]);
    const { event } = await others.server.services.timeline.post(others.world.owner, {
      threadId: others.world.threadId,
      as: others.world.people.ada.id,
      content: 'Still there?',
    });
    await socket.reached(event.seq);
    await others.expectWritten();
    socket.stop();
    await socket.over;
  });

  test('with an id that is in use closes that socket', async () => {
    const socket = await watchSocket(others.server, others.world.people.scout.token, others.world.threadId);
    socket.socket.subscribe('watch', '{ viewer { user { id } } }');
    expect((await socket.over).code).toBe(4400);
  });
});
