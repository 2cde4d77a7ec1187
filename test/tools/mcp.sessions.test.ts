import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { timelineCursor } from '../../src/shared/cursors.ts';
import { newId } from '../../src/shared/ids.ts';
import type { ToolName } from '../../src/tools/catalogue.ts';
import { RESOURCES } from '../../src/tools/mcp/resources.ts';
import { MOST_SESSIONS } from '../../src/tools/mcp/sessions.ts';
import { startProcess } from '../support/app.ts';
import { heard, listen, plainMcp } from '../support/mcp.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';
import { watchSocket } from '../support/watchers.ts';

/** Sessions over two processes, on the same stores. */
let scene: Scene;
let other: Awaited<ReturnType<typeof startProcess>>;
beforeAll(async () => {
  scene = await toolScene();
  other = await startProcess(scene.server.stores);
});
afterAll(async () => {
  await other.close();
  await scene.server.close();
});

describe('a session', () => {
  test('goes on at another process, and is told there of what was subscribed to here', async () => {
    const thread = await scene.open('ada', 'scout');
    const token = scene.tokenOf('scout');
    const here = plainMcp(scene.server, token, thread);
    await here.open();
    const there = plainMcp(other, token, thread);
    there.sessionId = here.sessionId;
    expect(await there.request('tools/list')).toMatchObject({ status: 200 });
    const stream = await listen(other, token, here.sessionId, thread);
    await here.request('resources/subscribe', { uri: 'threadpad://timeline' });
    await until(async () => {
      await scene.post(thread, 'ada', 'news');
      return heard(stream, 'notifications/resources/updated');
    }, 100);
    stream.stop();
    await stream.over;

    // What happened while no stream was there is told when it comes back, elsewhere.
    const last = stream.events.findLast(({ id }) => id !== undefined)?.id;
    await scene.post(thread, 'ada', 'while you were away');
    const resumed = await listen(scene.server, token, here.sessionId, thread, { lastEventId: last });
    await until(() => heard(resumed, 'notifications/resources/updated'));
    expect(new Set([...stream.events, ...resumed.events].map(({ id }) => id)).size).toBe(
      stream.events.length + resumed.events.length,
    );

    // A second stream takes over; the session’s end ends it everywhere.
    const second = await listen(other, token, here.sessionId, thread);
    await resumed.over;
    expect((await here.send(null, { method: 'DELETE' })).status).toBe(204);
    await second.over;
    expect(await there.request('tools/list')).toMatchObject({ status: 404 });
  });

  test('ends when its caller has a hundred others that were used since, and no earlier', async () => {
    const thread = await scene.open('ada', 'bo', 'scout');
    const token = scene.tokenOf('bo');
    const opened = async () => {
      const mcp = plainMcp(scene.server, token, thread);
      await mcp.open();
      return mcp;
    };
    const [used, ended, left] = [await opened(), await opened(), await opened()];
    await ended.send(null, { method: 'DELETE' });
    for (let count = 0; count < MOST_SESSIONS - 2; count += 1) await opened();
    for (const mcp of [left, used]) expect(await mcp.request('tools/list')).toMatchObject({ status: 200 });
    await used.request('tools/list');
    await opened();
    expect(await used.request('tools/list')).toMatchObject({ status: 200 });
    await opened();
    for (let count = 0; count < MOST_SESSIONS - 2; count += 1) await opened();
    expect(await left.request('tools/list')).toMatchObject({ status: 404 });
    expect(await used.request('tools/list')).toMatchObject({ status: 200 });
  });

  test('has one stream of notifications, also where several are opened at once', async () => {
    const thread = await scene.open('ada', 'bo', 'scout');
    const token = scene.tokenOf('scout');
    for (let round = 0; round < 20; round += 1) {
      const here = plainMcp(scene.server, token, thread);
      await here.open();
      await here.request('resources/subscribe', { uri: 'threadpad://timeline' });
      const streams = await Promise.all(
        [scene.server, other, scene.server].map((at) => listen(at, token, here.sessionId, thread)),
      );
      let closed = 0;
      for (const { over } of streams) void over.then(() => (closed += 1));
      await until(() => closed >= 2);
      await until(async () => {
        await scene.post(thread, 'ada', 'news');
        return streams.some((stream) => heard(stream, 'notifications/resources/updated'));
      }, 100);
      expect(closed).toBe(2);
      for (const { stop } of streams) stop();
      await Promise.all(streams.map(({ over }) => over));
    }
  });

  test('gives an answer to whoever lost the stream that it was to come on, at another process', async () => {
    const thread = await scene.open('bo', 'scout');
    const token = scene.tokenOf('scout');
    const here = plainMcp(scene.server, token, thread);
    await here.open();
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 'waiting',
      method: 'tools/call',
      params: { name: 'next_message', arguments: { wait_seconds: 20 } },
    });
    const lost = await listen(scene.server, token, here.sessionId, thread, { method: 'POST', body });
    await until(() => lost.events.length > 0);
    lost.stop();
    await lost.over;
    const back = listen(other, token, here.sessionId, thread, { lastEventId: lost.events[0]?.id });
    await scene.post(thread, 'bo', 'are you there?');
    const resumed = await back;
    await resumed.over;
    expect(resumed.events.map(({ data }) => JSON.parse(data))).toMatchObject([
      { id: 'waiting', result: { isError: false } },
    ]);
    expect(resumed.events[0]?.data).toContain('are you there?');
  });

  test('waits no longer for what its client cancels, at whichever process, and has taken nothing then', async () => {
    const thread = await scene.open('ada', 'rex', 'scout');
    const token = scene.tokenOf('scout');
    const here = plainMcp(scene.server, token, thread);
    await here.open();
    const there = plainMcp(other, token, thread);
    there.sessionId = here.sessionId;
    const cancel = (client: typeof here, requestId: unknown) =>
      client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
    for (const [client, id] of [
      [there, 'waiting'],
      [here, 7],
    ] as const) {
      const params = { name: 'next_message', arguments: { wait_seconds: 30 } };
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
      const waiting = await listen(scene.server, token, here.sessionId, thread, { method: 'POST', body });
      const channel = `live:inbox:${scene.tenant.participants.scout?.id}`;
      await until(
        async () => Number((await scene.server.services.redis.pubsub('NUMSUB', channel))[1] ?? 0) > 0,
      );
      // Of another request, and of one that is no request.
      expect((await cancel(client, 'another')).status).toBe(202);
      expect((await cancel(client, null)).status).toBeLessThan(500);
      expect((await cancel(client, id)).status).toBe(202);
      await waiting.over;
      expect(waiting.events.filter(({ data }) => data.includes('"result"'))).toEqual([]);
      await until(
        async () => Number((await scene.server.services.redis.pubsub('NUMSUB', channel))[1] ?? 0) === 0,
      );
    }
    await scene.post(thread, 'ada', 'still there');
    const { text } = await here.call('next_message');
    expect(JSON.parse(text)).toMatchObject({ attempt: 1, message: { content: 'still there' } });
  });

  test('is dead within a second of its credential, its streams too, on both processes', async () => {
    const thread = await scene.open('rex', 'scout');
    const { token, revoke } = await scene.freshToken('scout');
    const here = plainMcp(scene.server, token, thread);
    await here.open();
    const streams = [
      await listen(other, token, here.sessionId, thread),
      await listen(scene.server, token, here.sessionId, thread, {
        method: 'POST',
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'next_message', arguments: { wait_seconds: 30 } },
        }),
      }),
    ];
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    await revoke();
    const ended = performance.now();
    await Promise.all(streams.map(({ over }) => over));
    expect(performance.now() - ended).toBeLessThan(1_000);
    const there = plainMcp(other, token, thread);
    there.sessionId = here.sessionId;
    for (const client of [here, there])
      expect(await client.request('tools/list')).toMatchObject({ status: 401 });
    for (const { events } of streams)
      expect(events.filter(({ data }) => data.includes('"result"'))).toEqual([]);
  });

  test('is not there where its initialize was refused', async () => {
    const { redis } = scene.server.services;
    const sessions = async (): Promise<number> =>
      (await redis.keys(`*mcp:${scene.tenant.userId}:*:session`)).length;
    const before = await sessions();
    const client = plainMcp(scene.server, scene.tokenOf('scout'));
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    };
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    const refused = await client.send(body, { headers: { 'content-type': 'text/plain' } });
    expect(refused.status).toBe(415);
    expect(await sessions()).toBe(before);
    await client.open();
    expect(await sessions()).toBe(before + 1);
  });

  test('takes no request, and no call, by a name that could not be kept, and none that is nested too deep', async () => {
    const thread = await scene.open('ada', 'bo', 'rex');
    const client = plainMcp(scene.server, scene.tokenOf('rex'), thread);
    await client.open();
    const send = (id: unknown, method: string, meta: object = {}) =>
      client.send({
        jsonrpc: '2.0',
        id,
        method,
        params: { name: 'send_message', arguments: { content: 'said' }, _meta: meta },
      });
    const wrong = ['x'.repeat(129), 'a\u0000b', 'a\ud800'];
    for (const id of wrong)
      for (const method of ['tools/call', 'tools/list', 'ping'])
        expect(await send(id, method)).toMatchObject({ status: 400, error: { code: -32600 } });
    for (const callId of [...wrong, '', 7, null, {}])
      expect(await send(1, 'tools/call', { 'threadpad/toolCallId': callId })).toMatchObject({
        status: 400,
        error: { code: -32600 },
      });
    expect(await scene.messagesOf(thread)).toEqual([]);
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    const call = `{"name":"send_message","arguments":{"content":${deep}}}`;
    const body = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":${call}}`;
    expect((await client.send(body)).result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^Error: arguments is nested deeper/) }],
    });
    await send('x'.repeat(128), 'tools/call', { 'threadpad/toolCallId': 'y'.repeat(128) });
    expect(await scene.messagesOf(thread)).toEqual(['said']);
  });
});

interface Delegated {
  readonly run: { readonly id: string; readonly conversationThreadId: string };
  readonly token: string;
}
const delegate = async (scratchpadId: string | null, expiresInSeconds: number): Promise<Delegated> =>
  (
    await scene.ask<{ delegateRun: Delegated }>(
      'mutation ($input: DelegateRunInput!) { delegateRun(input: $input) { run { id conversationThreadId } token } }',
      { input: { participantId: scene.idOf('scout'), scratchpadId, expiresInSeconds } },
    )
  ).delegateRun;

const moveTo = (runId: string, status: string, token?: string) =>
  scene.ask(
    'mutation ($input: UpdateRunInput!) { updateRun(input: $input) { run { id } } }',
    { input: { runId, status } },
    token,
  );

const expireIn = (runId: string, expiresInSeconds: number) =>
  scene.ask('mutation ($input: UpdateRunInput!) { updateRun(input: $input) { run { id } } }', {
    input: { runId, expiresInSeconds },
  });

describe('a run’s session', () => {
  test('reaches its scratchpad, its conversation and what its worker sees there, by every tool and resource', async () => {
    const elsewhere = await scene.open('ada', 'rex', 'scout');
    const padThread = await scene.open('ada', 'bo');
    const padId = await scene.padOf(padThread);
    const { postMessage: said } = await scene.ask<{
      postMessage: { message: { id: string }; cursor: string };
    }>('mutation ($input: PostMessageInput!) { postMessage(input: $input) { message { id } cursor } }', {
      input: { threadId: elsewhere, as: scene.idOf('ada'), content: 'kept elsewhere' },
    });
    await scene.post(padThread, 'bo', 'kept in the thread of the scratchpad');
    for (const [name, given] of [
      ['store', { memory: 'kept elsewhere' }],
      ['append_scratchpad', { note: 'kept elsewhere' }],
    ] as const)
      await scene.ask('mutation ($input: ExecuteToolInput!) { executeTool(input: $input) { output } }', {
        input: { threadId: elsewhere, as: scene.idOf('scout'), name, arguments: given },
      });
    const { run, token } = await delegate(padId, 600);
    const mcp = plainMcp(scene.server, token);
    await mcp.open();
    /** What each tool could be asked for that is elsewhere, and the same of what never was. */
    const ASKED: Readonly<Record<ToolName, readonly (readonly [given: object, never: object])[]>> = {
      read_scratchpad: [[{}, {}]],
      update_scratchpad: [[{ content: 'plan' }, { content: 'plan' }]],
      append_scratchpad: [[{ note: 'found' }, { note: 'found' }]],
      send_message: [
        [
          { content: 'hello', mentions: ['rex'] },
          { content: 'hello', mentions: ['nobody'] },
        ],
      ],
      read_messages: [
        [{}, {}],
        [{ cursor: said.cursor }, { cursor: timelineCursor(newId('Thread'), 2, newId('Event')) }],
      ],
      message_retract: [[{ message_id: said.message.id }, { message_id: newId('Event') }]],
      store: [[{ memory: 'habit' }, { memory: 'habit' }]],
      recall: [[{ query: 'kept' }, { query: 'never' }]],
      peek_pending: [[{}, {}]],
      next_message: [[{}, {}]],
      acknowledge_message: [[{ message_id: said.message.id }, { message_id: newId('Event') }]],
    };
    const { result } = await mcp.request('tools/list');
    const names = ((result?.tools ?? []) as { name: ToolName }[]).map(({ name }) => name);
    expect([...names].sort()).toEqual(Object.keys(ASKED).sort());
    const alike = (text: string): string =>
      text
        .replaceAll(/\b(event|mem)_[0-9a-z]{26}/g, '<$1>')
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
        .replaceAll(/"(rex|nobody)"|\b(rex|nobody)\b/g, '<handle>')
        .replaceAll(/"\w*cursor":"[^"]+"/g, '<cursor>');
    for (const name of names)
      for (const [given, never] of ASKED[name]) {
        const [known, unknown] = [await mcp.call(name, { ...given }), await mcp.call(name, { ...never })];
        expect(`${name} ${known.text}`).not.toContain('kept');
        // What was just said and stored is new each time.
        if (!['read_messages', 'peek_pending'].includes(name) || known.isError)
          expect(`${name} ${alike(known.text)}`).toBe(`${name} ${alike(unknown.text)}`);
      }
    const resources = ((await mcp.request('resources/list')).result?.resources ?? []) as { uri: string }[];
    expect(resources.map(({ uri }) => uri).sort()).toEqual(RESOURCES.map(({ uri }) => uri).sort());
    for (const { uri } of resources) {
      const read = await mcp.request('resources/read', { uri });
      expect(read.result).not.toBe(null);
      expect(JSON.stringify(read.result)).not.toContain('kept');
      for (const place of [
        `${uri}?thread=${elsewhere}`,
        `${uri}/${elsewhere}`,
        `${uri}?cursor=${said.cursor}`,
      ])
        expect([place, (await mcp.request('resources/read', { uri: place })).result]).toEqual([place, null]);
    }
    const answers = new Set<string>();
    for (const thread of [elsewhere, padThread, newId('Thread'), 'x']) {
      const { status, error } = await plainMcp(scene.server, token, thread).open();
      answers.add(`${status} ${error?.message}`);
      expect(status).toBe(404);
    }
    expect(answers.size).toBe(1);
    expect((await plainMcp(scene.server, token, run.conversationThreadId).open()).status).toBe(200);
    await moveTo(run.id, 'CANCELLED');
  });

  test('has no scratchpad among its resources where the run has none', async () => {
    const { run, token } = await delegate(null, 600);
    const mcp = plainMcp(scene.server, token);
    await mcp.open();
    const timeline = RESOURCES.filter(({ name }) => name === 'timeline').map(({ uri }) => uri);
    const { result: listed } = await mcp.request('resources/list');
    expect(listed?.resources).toEqual(timeline.map((uri) => expect.objectContaining({ uri })));
    const { result: templates } = await mcp.request('resources/templates/list');
    expect(templates?.resourceTemplates).toEqual([
      expect.objectContaining({ uriTemplate: `${timeline[0]}{?cursor}` }),
    ]);
    for (const method of ['resources/read', 'resources/subscribe']) {
      const [bare, unknown] = [
        await mcp.request(method, { uri: 'threadpad://scratchpad' }),
        await mcp.request(method, { uri: 'threadpad://nothing' }),
      ];
      expect([method, unknown.error]).toEqual([
        method,
        expect.objectContaining({ code: expect.any(Number) }),
      ]);
      expect([method, bare.error?.code]).toEqual([method, unknown.error?.code]);
      expect((await mcp.request(method, { uri: timeline[0] })).error).toBe(null);
    }
    await moveTo(run.id, 'CANCELLED');
  });

  test.for([
    ['COMPLETED', 'ada', 'rex'],
    ['CANCELLED', 'bo', 'rex'],
    ['EXPIRED', 'ada', 'bo', 'rex'],
  ])(
    'is dead within a second of its end, at the other process too: %s',
    async ([status = '', ...members]) => {
      const padThread = await scene.open(...members);
      const padId = await scene.padOf(padThread);
      const { run, token } = await delegate(padId, 600);
      const { id, conversationThreadId } = run;
      const mcp = plainMcp(other, token);
      await mcp.open();
      const { prisma } = scene.server.services.database;
      const asked = Date.now();
      const [clock] = await prisma.$queryRaw<
        { ms: number }[]
      >`SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms`;
      const ahead = (clock?.ms ?? 0) - asked;
      /** By the database's clock, or a little later. */
      const now = (): number => Date.now() + ahead;
      const over = async (ended: Promise<unknown>): Promise<number> => {
        await ended;
        return now();
      };
      const socket = await watchSocket(other, token, conversationThreadId);
      const stream = await listen(other, token, mcp.sessionId, undefined);
      const closed = [over(socket.over), over(stream.over)];
      let count = 0;
      const accepted: string[] = [];
      const refused: string[] = [];
      const doors: readonly ((note: string) => Promise<boolean>)[] = [
        async (content) => {
          const { data } = await other.graphql<{ appendScratchpadEntry: object | null }>(
            token,
            'mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { cursor } }',
            { input: { scratchpadId: padId, content } },
          );
          return Boolean(data?.appendScratchpadEntry);
        },
        async (note) => {
          const { result } = await mcp.request('tools/call', {
            name: 'append_scratchpad',
            arguments: { note },
          });
          return result !== null && result.isError !== true;
        },
      ];
      const knock = async (): Promise<boolean[]> => {
        const tried = [];
        for (const door of doors) {
          count += 1;
          const note = `note ${count}`;
          const isOpen = await door(note);
          if (isOpen) accepted.push(note);
          else refused.push(note);
          tried.push(isOpen);
        }
        return tried;
      };
      expect(await knock()).toEqual([true, true]);
      if (status === 'COMPLETED') await moveTo(id, status, token);
      if (status === 'CANCELLED') await moveTo(id, status);
      if (status === 'EXPIRED') await expireIn(id, 1);
      await until(async () => (await knock()).every((isOpen) => !isOpen), 50);
      let ended = 0;
      await until(async () => {
        const { finishedAt } = await prisma.run.findUniqueOrThrow({ where: { id } });
        ended = finishedAt?.getTime() ?? 0;
        return ended > 0;
      }, 50);
      for (const at of await Promise.all(closed)) expect(at - ended).toBeLessThan(1_000);
      expect(await socket.over).toMatchObject({ code: 4403 });
      await until(() => now() > ended + 1_000, 50);
      const underWay = new Set(refused);
      expect(await knock()).toEqual([false, false]);
      expect(await mcp.request('tools/list')).toMatchObject({ status: 401 });
      const { scratchpad } = await scene.ask<{
        scratchpad: { entries: { nodes: { content: string; createdAt: string }[] } };
      }>('query ($id: ID!) { scratchpad(id: $id) { entries(first: 200) { nodes { content createdAt } } } }', {
        id: padId,
      });
      // What was under way at the end may stand without its answer; what was begun later does not.
      const stands = scratchpad.entries.nodes.map(({ content }) => content);
      expect(stands.filter((note) => accepted.includes(note))).toEqual(accepted);
      expect(stands.filter((note) => !accepted.includes(note) && !underWay.has(note))).toEqual([]);
      for (const { createdAt } of scratchpad.entries.nodes)
        expect(Date.parse(createdAt) - ended).toBeLessThanOrEqual(1_000);
    },
  );
});
