import { afterAll, beforeAll, expect, test } from 'vitest';
import { listen, plainMcp } from '../support/mcp.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { subscribe } from '../support/subscribe.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';

/** A Redis that nobody else writes to. */
let store: RedisServer;
let scene: Scene;
beforeAll(async () => {
  store = await startRedis();
  scene = await toolScene({ REDIS_URL: store.url });
});
afterAll(async () => {
  await scene.server.close();
  await store.stop();
});

/** What is no tenant's: whose home this Redis is. */
const OF_ALL = ['scratchpad:home'];

test('every key in Redis names the tenant whose it is', async () => {
  const { services } = scene.server;
  const thread = await scene.open('ada', 'scout');
  const padId = await scene.padOf(thread);
  const token = scene.tokenOf('scout');
  for (const text of ['short', 'long'.repeat(60_000)])
    await scene.ask(
      'mutation ($input: SetScratchpadContentInput!) { setScratchpadContent(input: $input) { cursor } }',
      { input: { scratchpadId: padId, text } },
    );
  const timeline = 'subscription ($id: ID!) { timeline(threadId: $id) { cursor } }';
  await using followed = subscribe<object>(scene.server, token, timeline, { id: thread });
  await followed.until((some) => some.length > 0);
  const signal = 'mutation ($input: SignalInput!) { signal(input: $input) { delivered } }';
  await scene.ask(signal, { input: { threadId: thread, kind: 'working' } }, token);
  const mcp = plainMcp(scene.server, token, thread);
  await mcp.open();
  await mcp.request('resources/subscribe', { uri: 'threadpad://timeline' });
  const stream = await listen(scene.server, token, mcp.sessionId, thread);
  await until(() => stream.events.length > 0);
  stream.stop();
  await stream.over;

  const keys = (await services.redis.keys('*')).filter((key) => !OF_ALL.includes(key));
  expect(new Set(keys.map((key) => key.split(':')[0]))).toEqual(
    new Set(['mcp', 'presence', 'scratchpad', 'working']),
  );
  expect(keys.filter((key) => !key.split(':').includes(scene.tenant.userId))).toEqual([]);
});
