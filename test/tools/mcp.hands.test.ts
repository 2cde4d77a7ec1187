import { Client as ModernClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sessionKey } from '../../src/tools/mcp/sessions.ts';
import { listen, mcpUrl, plainMcp } from '../support/mcp.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';

/** On the plain path a resource is that of the message in hand. */
let scene: Scene;
beforeAll(async () => {
  scene = await toolScene();
});
afterAll(() => scene.server.close());

const TIMELINE = 'threadpad://timeline';
const SCRATCHPAD = 'threadpad://scratchpad';

describe('a session’s subscription', () => {
  test('follows what is in hand, from the first message on to the last, and says when nothing is', async () => {
    const token = scene.tokenOf('scout');
    const [one, other] = [await scene.open('ada', 'scout'), await scene.open('bo', 'scout')];
    const client = plainMcp(scene.server, token);
    await client.open();
    const { redis } = scene.server.services;
    const key = sessionKey({ ownerId: scene.tenant.userId, id: client.sessionId ?? '' }, 'subscriptions');
    const standsIn = async (uri: string) => (await redis.hget(key, uri))?.split(' ')[0];
    const descriptions = async () =>
      (((await client.request('resources/list')).result?.resources ?? []) as { description: string }[]).map(
        ({ description }) => description.startsWith('(No message is in hand'),
      );
    const stream = await listen(scene.server, token, client.sessionId, undefined);
    const told = (what: string): number => stream.events.filter(({ data }) => data.includes(what)).length;
    for (const uri of [TIMELINE, SCRATCHPAD])
      expect((await client.request('resources/subscribe', { uri })).result).toEqual({});
    expect(await descriptions()).toEqual([true, true]);

    // Of what comes after both posts the session of a thread is told, by when this one would have been told too.
    const beside = plainMcp(scene.server, token, other);
    await beside.open();
    await beside.request('resources/subscribe', { uri: TIMELINE });
    const besides = await listen(scene.server, token, beside.sessionId, other);
    const toldBeside = (): number => besides.events.filter(({ data }) => data.includes(TIMELINE)).length;
    await scene.post(one, 'ada', 'first');
    await scene.post(other, 'bo', 'second');
    await until(() => toldBeside() > 0);
    besides.stop();
    await besides.over;
    await client.request('ping');
    expect(stream.events.filter(({ data }) => data !== '')).toEqual([]);
    expect((await client.call('next_message')).text).toContain('first');
    await until(() => told('list_changed') === 1 && told(TIMELINE) === 1 && told(SCRATCHPAD) === 1);
    await until(async () => (await standsIn(TIMELINE)) === one);
    expect(await descriptions()).toEqual([false, false]);
    await scene.post(one, 'ada', 'more');
    await until(() => told(TIMELINE) === 2);
    // Another is in hand, by whichever client.
    const helper = plainMcp(scene.server, token);
    await helper.open();
    expect((await helper.call('next_message')).text).toContain('second');
    await until(() => told(TIMELINE) === 3 && told(SCRATCHPAD) === 2);
    await until(async () => (await standsIn(TIMELINE)) === other && (await standsIn(SCRATCHPAD)) === other);
    await scene.post(other, 'bo', 'still there?');
    await until(() => told(TIMELINE) === 4);
    await client.call('append_scratchpad', { note: 'for the second' });
    await until(() => told(SCRATCHPAD) === 3);
    // Both are done with, one of them by another door: nothing is in hand.
    for (const threadId of [other, one]) {
      const { takePending } = await scene.ask<{
        takePending: { deliveries: { deliveryId: string | null }[] };
      }>('mutation ($as: ID!) { takePending(input: { as: $as, max: 10 }) { deliveries { deliveryId } } }', {
        as: scene.idOf('scout'),
      });
      expect(takePending.deliveries.filter(({ deliveryId }) => deliveryId !== null)).toEqual([]);
      const { cursor } = await scene
        .ask<{ thread: { timeline: { end: string } } }>(
          'query ($t: ID!, $as: ID!) { thread(id: $t, as: $as) { timeline { end } } }',
          { t: threadId, as: scene.idOf('scout') },
        )
        .then(({ thread }) => ({ cursor: thread.timeline.end }));
      await scene.ask(
        'mutation ($input: AcknowledgeInput!) { acknowledge(input: $input) { pendingCount } }',
        {
          input: { threadId, as: scene.idOf('scout'), upTo: cursor },
        },
      );
    }
    await until(() => told('list_changed') === 2);
    await until(async () => (await standsIn(TIMELINE)) === '');
    expect(await client.request('resources/read', { uri: TIMELINE })).toMatchObject({
      error: { message: expect.stringContaining('You hold no message') },
    });
    stream.stop();
    await stream.over;

    // What is taken while no stream is there is told when there is one again.
    await scene.post(one, 'ada', 'third');
    expect((await client.call('next_message')).text).toContain('third');
    const again = await listen(scene.server, token, client.sessionId, undefined, {
      lastEventId: stream.events.at(-1)?.id,
    });
    await until(() => again.events.some(({ data }) => data.includes(TIMELINE)));
    again.stop();
    await again.over;
    await client.call('acknowledge_message');
  });
});

describe('subscriptions/listen', () => {
  const connect = async (token: string, thread?: string) => {
    const client = new ModernClient({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(
      new StreamableHTTPClientTransport(mcpUrl(scene.server, thread), {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
      }),
    );
    const heard: string[] = [];
    client.fallbackNotificationHandler = async ({ method, params }) => {
      heard.push(`${method.replace('notifications/resources/', '')} ${String(params?.uri ?? '')}`.trim());
    };
    return { client, heard, [Symbol.asyncDispose]: () => client.close() };
  };
  const FILTER = { resourceSubscriptions: [TIMELINE, SCRATCHPAD], resourcesListChanged: true };

  test('tells of the thread of the path, and of nothing that was not asked for', async () => {
    const thread = await scene.open('ada', 'rex');
    await using rex = await connect(scene.tokenOf('rex'), thread);
    const sub = await rex.client.listen({ ...FILTER, resourceSubscriptions: [TIMELINE] });
    expect(sub.honoredFilter).toEqual({ resourceSubscriptions: [TIMELINE] });
    const padId = await scene.padOf(thread);
    await until(async () => {
      await scene.ask(
        'mutation ($p: ID!) { appendScratchpadEntry(input: { scratchpadId: $p, content: "x" }) { cursor } }',
        { p: padId },
      );
      await scene.post(thread, 'ada', 'anything new?');
      return rex.heard.length > 0;
    }, 100);
    expect(new Set(rex.heard)).toEqual(new Set([`updated ${TIMELINE}`]));
    await sub.close();
    expect(await sub.closed).toBe('local');
  });

  test('follows what is in hand, and ends within a second of its credential', async () => {
    const thread = await scene.open('bo', 'rex');
    const { token, revoke } = await scene.freshToken('rex');
    await using rex = await connect(token);
    const sub = await rex.client.listen(FILTER);
    expect(sub.honoredFilter).toEqual(FILTER);
    await scene.post(thread, 'bo', 'to you');
    for (;;) {
      const { content } = await rex.client.callTool({ name: 'next_message', arguments: {} });
      if (JSON.stringify(content).includes('to you')) break;
      await rex.client.callTool({ name: 'acknowledge_message', arguments: {} });
    }
    await until(() =>
      ['list_changed', `updated ${TIMELINE}`, `updated ${SCRATCHPAD}`].every((one) =>
        rex.heard.includes(one),
      ),
    );
    const count = rex.heard.length;
    await scene.post(thread, 'bo', 'one more');
    await until(() => rex.heard.slice(count).includes(`updated ${TIMELINE}`));
    await revoke();
    const ended = performance.now();
    await sub.closed;
    expect(performance.now() - ended).toBeLessThan(1_000);
  });
});
