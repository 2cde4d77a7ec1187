import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../src/shared/ids.ts';
import { TOOLS } from '../../src/tools/catalogue.ts';
import { createTenant } from '../support/app.ts';
import { listen, mcpUrl, plainMcp } from '../support/mcp.ts';
import { restAt } from '../support/rest.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';

/** Whatever comes in: an answer in the protocol's terms, no fault of the server's, and nothing half done. */
let scene: Scene;
let thread = '';
let client: ReturnType<typeof plainMcp>;
beforeAll(async () => {
  scene = await toolScene();
  thread = await scene.open('ada', 'scout');
  client = plainMcp(scene.server, scene.tokenOf('scout'), thread);
  await client.open();
});
afterAll(() => scene.server.close());

const ODD: readonly unknown[] = [
  null,
  true,
  0,
  -0,
  1.5,
  1e308,
  '',
  'x'.repeat(300_000),
  'a\u0000b',
  '\ud800',
  [],
  [[]],
  {},
  { a: { b: [null] } },
  JSON.parse('{"__proto__": {"polluted": true}}'),
  JSON.parse('{"constructor": {"prototype": {"polluted": true}}}'),
];

const call = (name: unknown, given: unknown) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: given },
});

const requireSound = async (body: unknown): Promise<void> => {
  const shown = JSON.stringify(body)?.slice(0, 200);
  const { status, error, result } = await client.send(body);
  expect([shown, status < 500]).toEqual([shown, true]);
  expect([shown, error?.code]).not.toEqual([shown, -32603]);
  // No answer gives a large question back.
  expect(JSON.stringify([error, result]).length).toBeLessThan(20_000);
};

describe('nothing that a client sends', () => {
  test('as a body is a fault of the server', async () => {
    for (const body of [...ODD, '"text"', '[', '[1]', '[null]', '{"jsonrpc":"2.0"}'])
      await requireSound(body);
    for (const id of [...ODD, 2 ** 53, 1e21])
      for (const method of ['ping', 'tools/list']) await requireSound({ jsonrpc: '2.0', id, method });
    for (const method of ODD) await requireSound({ jsonrpc: '2.0', id: 1, method });
    for (const method of [
      'tools/call',
      'resources/read',
      'resources/subscribe',
      'initialize',
      'subscriptions/listen',
    ])
      for (const params of ODD) await requireSound({ jsonrpc: '2.0', id: 1, method, params });
  });

  test('as the arguments of a tool is one either, and none of it is said', async () => {
    for (const odd of ODD) {
      await requireSound(call(odd, {}));
      for (const { name, parameters } of TOOLS) {
        await requireSound(call(name, odd));
        if (name === 'send_message' || name === 'store' || name.endsWith('_scratchpad')) continue;
        for (const argument of Object.keys(parameters.shape))
          await requireSound(call(name, { [argument]: odd }));
      }
      await requireSound({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: odd } });
      await requireSound({
        jsonrpc: '2.0',
        id: 1,
        method: 'ping',
        params: { _meta: { progressToken: odd, 'threadpad/x': odd } },
      });
    }
    const bad = ODD.filter(
      (odd) => typeof odd !== 'string' || odd === '' || odd.includes('\u0000') || !odd.isWellFormed(),
    );
    for (const odd of bad)
      for (const [name, given] of [
        ['send_message', { content: odd }],
        ['send_message', { content: 'x', mentions: [odd] }],
        ['append_scratchpad', { note: odd }],
        ['update_scratchpad', { content: odd }],
      ] as const)
        await requireSound(call(name, given));
    expect(await scene.messagesOf(thread)).toEqual([]);
    expect((await client.call('read_scratchpad')).text).toContain('is empty');
    expect(({} as { polluted?: boolean }).polluted).toBe(undefined);
  });

  test('as parameters of a method is answered with more than that they are wrong, and in few words', async () => {
    const wrong = [
      ['tools/call', {}, 'params.name'],
      ['tools/call', { name: 5 }, 'params.name'],
      ['tools/call', { name: 'recall', arguments: 'all' }, 'params.arguments'],
      ['tools/list', { cursor: 4 }, 'params.cursor'],
      ['resources/list', { cursor: 4 }, 'params.cursor'],
      ['resources/read', {}, 'params.uri'],
      ['resources/read', { uri: 3 }, 'params.uri'],
      ['resources/subscribe', {}, 'params.uri'],
      ['resources/unsubscribe', { uri: [] }, 'params.uri'],
      ['initialize', { capabilities: {}, clientInfo: { name: 'x', version: '1' } }, 'params.protocolVersion'],
    ] as const;
    for (const [method, params, field] of wrong) {
      const { status, error } = await client.request(method, params);
      expect([method, status, error?.code]).toEqual([method, 200, -32602]);
      expect(error?.message).toMatch(
        new RegExp(`^Invalid params: ${field}: Invalid input: expected \\w+, received \\w+$`),
      );
    }
    expect((await client.request('no/method')).error?.code).toBe(-32601);
  });

  test('in a batch acts twice under one id, or leaves the server waiting', async () => {
    const send = (id: unknown) => ({ ...call('send_message', { content: 'twice' }), id });
    expect(await client.send([send(1), send(1)])).toMatchObject({ status: 400, error: { code: -32600 } });
    expect(
      await client.send([send(1), { jsonrpc: '2.0', id: 2, method: 'initialize', params: {} }]),
    ).toMatchObject({
      status: expect.toSatisfy((status: number) => status >= 200 && status < 500),
    });
    await requireSound(Array.from({ length: 1_000 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' })));
    const { result } = await client.send([send(3), { jsonrpc: '2.0', id: 'p', method: 'ping' }]);
    expect(result).not.toBe(null);
    expect((await scene.messagesOf(thread)).length).toBeLessThanOrEqual(2);
  });
});

test('a session is nobody else’s, by no header and no stream', async () => {
  const stranger = await createTenant(scene.server, { zoe: 'AGENT' });
  const id = client.sessionId;
  const run = await scene.newRun('rex', { conversation: await scene.open('bo', 'rex'), padId: null });
  for (const [token, where] of [
    [stranger.participants.zoe?.token ?? '', undefined],
    [scene.tokenOf('rex'), undefined],
    [run.token, undefined],
    [scene.tokenOf('scout'), undefined],
    [(await scene.freshToken('scout')).token, thread],
  ] as const) {
    const other = plainMcp(scene.server, token, where);
    other.sessionId = id;
    for (const method of ['POST', 'DELETE'])
      expect((await other.send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { method })).status).toBe(404);
    expect((await listen(scene.server, token, id, where)).status).toBe(404);
  }
  for (const odd of [`${id}, ${id}`, `${id}x`, id?.slice(1), '{}', '*', '__proto__', 'x'.repeat(8_000)]) {
    const mine = plainMcp(scene.server, scene.tokenOf('scout'), thread);
    mine.sessionId = odd ?? '';
    expect((await mine.request('ping')).status).toBe(404);
  }
  expect(await client.request('ping')).toMatchObject({ status: 200 });
});

test('a client that wants its connection closed has it closed', async () => {
  const asking = request(mcpUrl(scene.server, thread), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${scene.tokenOf('scout')}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-session-id': client.sessionId ?? '',
      connection: 'close',
    },
  });
  asking.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }));
  const [answer] = (await once(asking, 'response')) as [IncomingMessage];
  answer.resume();
  await once(answer, 'end');
  expect(answer.statusCode).toBe(200);
  expect(answer.headers.connection).toBe('close');
});

test('calls of one session at once each get their own answer, also under the same id', async () => {
  const notes = Array.from({ length: 24 }, (_, index) => `message_${newId('Event').slice(-8)}_${index}`);
  const answers = await Promise.all(
    notes.map((content, index) =>
      client.send({ ...call('no_tool', {}), id: index % 3, params: { name: content } }),
    ),
  );
  expect(answers.map(({ result }) => JSON.stringify(result).includes('There is no tool'))).toEqual(
    notes.map(() => true),
  );
  for (const [index, { result }] of answers.entries()) expect(JSON.stringify(result)).toContain(notes[index]);
});

interface Definition {
  readonly name: string;
  readonly parameters: { readonly properties?: object };
}
/** Every name that a schema gives to something, however deep. */
const propertyNames = (schema: unknown): string[] =>
  typeof schema !== 'object' || schema === null
    ? []
    : Object.entries(schema).flatMap(([key, value]) => [
        ...(key === 'properties' ? Object.keys(value as object) : []),
        ...propertyNames(value),
      ]);

describe('whose it is, and where,', () => {
  const CAPABILITIES = [{ type: 'thread' }, { type: 'memory' }, { type: 'scratchpad' }];
  const rest = (path: string, body: object) =>
    restAt(new URL(scene.server.url).origin)({ 'x-api-key': scene.tokenOf('scout') }, 'POST', path, { body });

  test('is named by no definition, in whichever form, and all forms are the same', async () => {
    const ofFunctions = (tools: unknown): Definition[] =>
      (tools as { function: Definition }[]).map(({ function: { name, parameters } }) => ({
        name,
        parameters,
      }));
    const ofMcp = async (hands: ReturnType<typeof plainMcp>): Promise<Definition[]> =>
      (
        (await hands.request('tools/list')).result?.tools as
          | { name: string; inputSchema: object }[]
          | undefined
      )?.map(({ name, inputSchema }) => ({ name, parameters: inputSchema })) ?? [];
    const { hydrateTools } = await scene.ask<{ hydrateTools: unknown }>(
      'query ($tools: [JSON!]!) { hydrateTools(tools: $tools) }',
      { tools: CAPABILITIES },
    );
    const conversation = await scene.open('ada', 'rex');
    const padId = await scene.padOf(await scene.open('ada', 'bo'));
    const run = await scene.newRun('rex', { conversation, padId, padViewer: null });
    const worker = plainMcp(scene.server, run.token);
    await worker.open();
    const forms = [
      ofFunctions(hydrateTools),
      ofFunctions(
        ((await rest('/v1/tools/hydrate', { tools: CAPABILITIES })).body as { tools: unknown }).tools,
      ),
      await ofMcp(client),
      await ofMcp(worker),
    ].map((form) => form.toSorted((a, b) => a.name.localeCompare(b.name)));
    expect(forms[0]).toHaveLength(TOOLS.length);
    for (const form of forms) expect(form).toEqual(forms[0]);
    for (const { name, parameters } of forms[0] ?? [])
      for (const property of propertyNames(parameters))
        expect([name, property]).toEqual([
          name,
          expect.not.stringMatching(/owner|user|tenant|thread|pad|participant|^as$|^id$|run/i),
        ]);
  });

  test('is taken from no argument of any tool, by whichever door', async () => {
    const doors = [
      (name: string, given: object) => client.call(name, { ...given }),
      async (name: string, given: object) => {
        const { executeTool } = await scene.ask<{ executeTool: { output: string; isError: boolean } }>(
          'mutation ($input: ExecuteToolInput!) { executeTool(input: $input) { output isError } }',
          { input: { threadId: thread, name, arguments: given } },
          scene.tokenOf('scout'),
        );
        return { text: executeTool.output, isError: executeTool.isError };
      },
      async (name: string, given: object) => {
        const { body } = await rest('/v1/tools/execute', { thread_id: thread, name, arguments: given });
        const { output, is_error: isError } = body as { output: string; is_error: boolean };
        return { text: output, isError };
      },
    ];
    const before = await scene.eventsOf(thread);
    const other = await scene.open('ada', 'bo');
    const named = ['owner_id', 'user_id', 'tenant', 'thread_id', 'threadId', 'scratchpad_id', 'as', 'run_id'];
    const given = { content: 'x', note: 'x', memory: 'x', query: '' };
    for (const { name } of TOOLS)
      for (const door of doors) {
        const { text, isError } = await door(name, {
          ...given,
          ...Object.fromEntries(named.map((argument) => [argument, other])),
        });
        expect([name, isError]).toEqual([name, true]);
        const [, refused = ''] = /takes no argument (.*?): it takes/.exec(text) ?? [];
        expect(refused.split(', ')).toEqual(expect.arrayContaining(named.map((one) => JSON.stringify(one))));
      }
    expect(await scene.eventsOf(thread)).toEqual(before);
  });
});
