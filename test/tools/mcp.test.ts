import { Client as ModernClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../src/shared/ids.ts';
import { createTenant, type Tenant } from '../support/app.ts';
import { connectSdk, mcpUrl, plainMcp } from '../support/mcp.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';

let scene: Scene;
let stranger: Tenant;
let threadId = '';
let padId = '';

beforeAll(async () => {
  scene = await toolScene();
  const { server, open, padOf, ask, idOf } = scene;
  stranger = await createTenant(server, { zoe: 'AGENT' });
  threadId = await open('ada', 'scout');
  padId = await padOf(threadId);
  await ask(
    'mutation ($input: UpdateParticipantInput!) { updateParticipant(input: $input) { participant { id } } }',
    {
      input: {
        participantId: idOf('scout'),
        tools: [{ type: 'thread' }, { type: 'scratch_pad' }, { type: 'x' }],
      },
    },
  );
  await ask(
    'mutation ($input: UpdateParticipantInput!) { updateParticipant(input: $input) { participant { id } } }',
    { input: { participantId: idOf('rex'), tools: [] } },
  );
});
afterAll(() => scene.server.close());

const SCRATCHPAD = ['read_scratchpad', 'update_scratchpad', 'append_scratchpad'];

describe.each(['2025', '2026'])('a client of %s', (era) => {
  const connect = async (token: string, thread?: string) => {
    if (era === '2025') return connectSdk(scene.server, token, thread);
    const client = new ModernClient({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    const transport = new StreamableHTTPClientTransport(mcpUrl(scene.server, thread), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    });
    await client.connect(transport);
    return {
      client,
      toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (name: string, given: Record<string, unknown> = {}) => {
        const { content, isError } = await client.callTool({ name, arguments: given });
        return {
          text: (content as { text: string }[]).map(({ text }) => text).join(''),
          isError: isError === true,
        };
      },
      [Symbol.asyncDispose]: () => client.close(),
    };
  };

  test('has the tools of its participant’s capabilities, and works with them', async () => {
    await using scout = await connect(scene.tokenOf('scout'), threadId);
    expect((await scout.toolNames()).slice(-3)).toEqual(SCRATCHPAD);
    expect(scout.client.getInstructions()).toContain('next_message');
    expect(await scout.call('append_scratchpad', { note: `found by ${era}` })).toEqual({
      text: 'Note appended successfully.',
      isError: false,
    });
    expect(await scout.call('read_scratchpad')).toMatchObject({
      text: expect.stringContaining(`] found by ${era}`),
      isError: false,
    });
    expect(await scout.call('append_scratchpad', { note: 'x', scratchpad_id: padId })).toMatchObject({
      text: expect.stringContaining('takes no argument "scratchpad_id"'),
      isError: true,
    });
    expect(await scout.call('store', { memory: 'x' })).toMatchObject({
      text: expect.stringContaining('There is no tool "store" for you'),
      isError: true,
    });
    // One has a session, the other needs none.
    if (era === '2026') expect(scout.client.transport?.sessionId).toBe(undefined);
    await using rex = await connect(scene.tokenOf('rex'));
    expect(await rex.toolNames()).toEqual([]);
  });

  test('reads resources page by page', async () => {
    await using scout = await connect(scene.tokenOf('scout'), threadId);
    expect((await scout.client.listResources()).resources.map(({ uri }) => uri)).toEqual([
      'threadpad://scratchpad',
      'threadpad://timeline',
    ]);
    await scene.post(threadId, 'ada', `hello from ${era}`);
    const { contents } = await scout.client.readResource({ uri: 'threadpad://timeline' });
    expect(JSON.stringify(contents)).toContain(`hello from ${era}`);
    await expect(scout.client.readResource({ uri: 'threadpad://nothing' })).rejects.toThrow(/not found/i);
  });
});

describe('who may come in', () => {
  test('nobody without a credential of a participant', async () => {
    expect(await plainMcp(scene.server, null).open()).toMatchObject({ status: 401 });
    expect(await plainMcp(scene.server, 'tp_tok_nothing').open()).toMatchObject({ status: 401 });
    expect(await plainMcp(scene.server, scene.tenant.apiKey).open()).toMatchObject({ status: 403 });
    const acting = plainMcp(scene.server, scene.tenant.apiKey, threadId, { 'x-act-as': scene.idOf('scout') });
    expect(await acting.open()).toMatchObject({ status: 200 });
    expect((await acting.call('read_scratchpad')).isError).toBe(false);
  });

  test('nobody to a thread that is not its own, whether there is one or not', async () => {
    const foreign = await scene.open('ada', 'bo');
    const answers = await Promise.all(
      [foreign, newId('Thread'), 'x'].map((thread) =>
        plainMcp(scene.server, scene.tokenOf('scout'), thread).open(),
      ),
    );
    answers.push(await plainMcp(scene.server, stranger.participants.zoe?.token ?? '', threadId).open());
    for (const { status, error } of answers)
      expect([status, error?.message]).toEqual([404, 'Thread not found.']);
  });

  test('no page of another origin, and nobody by a name that is not the server’s', async () => {
    const from = (headers: Record<string, string>) =>
      plainMcp(scene.server, scene.tokenOf('scout'), threadId, headers).open();
    expect(await from({ origin: 'https://evil.example' })).toMatchObject({ status: 403 });
    expect(await from({ origin: new URL(scene.server.url).origin })).toMatchObject({ status: 200 });
    const response = await new Promise<number>((resolve, reject) => {
      void import('node:http').then(({ request }) => {
        const { hostname, port } = new URL(scene.server.url);
        request(
          { hostname, port, path: '/mcp', method: 'POST', headers: { host: 'evil.example' } },
          (answer) => {
            answer.resume();
            resolve(answer.statusCode ?? 0);
          },
        )
          .on('error', reject)
          .end('{}');
      });
    });
    expect(response).toBe(403);
  });

  test('a session is its credential’s and its path’s alone, and is over when it is said to be', async () => {
    const scout = plainMcp(scene.server, scene.tokenOf('scout'), threadId);
    await scout.open();
    const id = scout.sessionId;
    const others = [
      plainMcp(scene.server, scene.tokenOf('scout')),
      plainMcp(scene.server, scene.tokenOf('ada'), threadId),
      plainMcp(scene.server, stranger.participants.zoe?.token ?? ''),
    ];
    for (const other of others) {
      other.sessionId = id;
      expect(await other.request('tools/list')).toMatchObject({ status: 404 });
    }
    expect(await scout.request('tools/list')).toMatchObject({ status: 200 });
    expect((await scout.send(null, { method: 'DELETE' })).status).toBe(204);
    expect(await scout.request('tools/list')).toMatchObject({ status: 404 });
    scout.sessionId = null;
    expect(await scout.request('tools/list')).toMatchObject({ status: 400 });
  });

  test('refuses what is no message of the protocol, and says so in its terms', async () => {
    const scout = plainMcp(scene.server, scene.tokenOf('scout'), threadId);
    await scout.open();
    expect(await scout.send('{"a":')).toMatchObject({ status: 400, error: { code: -32700 } });
    expect(await scout.send({ jsonrpc: '2.0', id: 1, method: 'nothing/here' })).toMatchObject({
      error: { code: -32601 },
    });
    expect(await scout.send(null, { method: 'PUT' })).toMatchObject({ status: 405 });
    expect((await scout.send('x'.repeat(9 * 1024 * 1024))).status).toBe(413);
  });
});

describe('notifications', () => {
  test('come for what was subscribed to, and for nothing else', async () => {
    await using scout = await connectSdk(scene.server, scene.tokenOf('scout'), threadId);
    const heard: string[] = [];
    scout.client.fallbackNotificationHandler = async ({ method, params }) => {
      heard.push(`${method} ${String(params?.uri)}`);
    };
    await scout.client.subscribeResource({ uri: 'threadpad://timeline' });
    const updated = 'notifications/resources/updated threadpad://timeline';
    await until(async () => {
      await scene.post(threadId, 'ada', 'anything new?');
      return heard.includes(updated);
    }, 50);
    await scene.ask(
      'mutation ($p: ID!) { setScratchpadContent(input: { scratchpadId: $p, text: "plan" }) { cursor } }',
      {
        p: padId,
      },
    );
    await scout.client.subscribeResource({ uri: 'threadpad://scratchpad' });
    await until(async () => {
      await scene.ask(
        'mutation ($p: ID!) { appendScratchpadEntry(input: { scratchpadId: $p, content: "more" }) { cursor } }',
        {
          p: padId,
        },
      );
      return heard.includes('notifications/resources/updated threadpad://scratchpad');
    }, 50);
    await scout.client.unsubscribeResource({ uri: 'threadpad://timeline' });
    await scout.client.unsubscribeResource({ uri: 'threadpad://scratchpad' });
    await expect(scout.client.subscribeResource({ uri: 'threadpad://other' })).rejects.toThrow(
      'no such resource',
    );
  });
});

describe('what a model is told', () => {
  const equip = (tools: readonly object[]) =>
    scene.ask(
      'mutation ($input: UpdateParticipantInput!) { updateParticipant(input: $input) { participant { id } } }',
      { input: { participantId: scene.idOf('rex'), tools } },
    );

  test('names only tools that it has, and where to work without any that takes messages', async () => {
    await equip([{ type: 'scratchpad' }]);
    await using rex = await connectSdk(scene.server, scene.tokenOf('rex'));
    const told = [
      rex.client.getInstructions() ?? '',
      (await rex.call('read_scratchpad')).text,
      (await rex.call('store', { memory: 'x' })).text,
    ];
    expect(told[0]).toContain('append_scratchpad');
    expect(told[1]).toContain('/mcp/threads/{id}');
    for (const text of told) expect(text).not.toMatch(/next_message|acknowledge_message|recall/);
    await equip([]);
    expect((await rex.call('store', { memory: 'x' })).text).toContain('You have no tools');
  });

  test.each([
    ['READ', ['read_scratchpad'], ['rex', 'bo']],
    ['APPEND', ['read_scratchpad', 'append_scratchpad'], ['rex', 'ada']],
    ['WRITE', SCRATCHPAD, ['rex', 'ada', 'bo']],
  ] as const)(
    'a run with access %s is offered no more of the scratchpad’s tools',
    async (access, names, members) => {
      const conversation = await scene.open(...members);
      const { token } = await scene.newRun('rex', { conversation, padId, padViewer: 'scout', access });
      await using worker = await connectSdk(scene.server, token);
      expect((await worker.toolNames()).filter((name) => name.endsWith('_scratchpad'))).toEqual(names);
      for (const name of SCRATCHPAD)
        expect(worker.client.getInstructions()?.includes(name)).toBe(
          (names as readonly string[]).includes(name),
        );
    },
  );
});
