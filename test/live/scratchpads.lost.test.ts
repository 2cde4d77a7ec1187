import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Server, startApp } from '../support/app.ts';
import {
  APPEND,
  createPadWorld,
  FOLLOW,
  type PadPayload,
  type PadWorld,
  SET_CONTENT,
  told,
} from '../support/padApi.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { LOSES_NOTHING, type RedisServer, startRedis } from '../support/redis.ts';
import { monitorRedis } from '../support/redisMonitor.ts';
import { type Heard, subscribe } from '../support/subscribe.ts';

let store: RedisServer;
let server: Server;
let redis: Redis;
beforeAll(async () => {
  store = await startRedis(LOSES_NOTHING);
  server = await startApp({ REDIS_URL: store.url });
  redis = new Redis(store.path);
  redis.on('error', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await server.close();
  await store.stop();
});

const words = ({ payloads }: Heard<PadPayload>): string[] => payloads.map(told);
const followAll = (world: PadWorld, after?: string) =>
  [world.apiKey, world.token('ada'), world.token('ben')].map((token) =>
    subscribe<PadPayload>(server, token, FOLLOW, { scratchpadId: world.scratchpadId, after }),
  );
const READ = `query ($id: ID!) { scratchpad(id: $id) { id metaData end content { text etag }
  entries { nodes { content } pageInfo { hasNextPage hasPreviousPage } } } }`;

const keyOf = (world: PadWorld, name: string): string =>
  `scratchpad:${world.tenant.userId}:{${world.scratchpadId}}:${name}`;

test.each([
  ['everything is wiped', () => redis.flushall()],
  ['meta alone is evicted', (world: PadWorld) => redis.del(keyOf(world, 'meta'))],
])('when %s, every reader is told of a reset, then what is new, and no mixture of both', async (_, lose) => {
  const world = await createPadWorld(server);
  const ada = world.token('ada');
  const { cursor: before } = await world.append(ada, 'old');
  const old = await world.setContent(ada, 'old');
  await world.append(ada, 'old 2');
  const readers = followAll(world);
  for (const heard of readers) await heard.until((payloads) => payloads.length >= 1);
  await lose(world);
  for (const heard of readers) await heard.until((payloads) => payloads.length >= 2);
  expect(await world.must(ada, READ, { id: world.scratchpadId })).toMatchObject({
    scratchpad: {
      id: world.scratchpadId,
      metaData: {},
      content: { text: '', etag: '' },
      entries: { nodes: [], pageInfo: { hasNextPage: false, hasPreviousPage: false } },
    },
  });
  const first = await world.append(ada, 'new');
  expect(first.entry.seq).toBe(1);
  expect(
    await world.refused(ada, SET_CONTENT, {
      input: { scratchpadId: world.scratchpadId, text: 'x', expectedEtag: old.content.etag },
    }),
  ).toMatchObject({ code: 'VERSION_CONFLICT', currentEtag: '' });
  await world.setContent(ada, 'new', { expectedEtag: '' });
  for (const heard of readers) {
    await heard.until((payloads) => payloads.length >= 4);
    expect(words(heard)).toEqual(['start', 'reset', '+new', '=new']);
    await heard[Symbol.asyncDispose]();
  }
  // Who comes back with a position from before is told the same.
  for (const heard of followAll(world, before)) {
    await heard.until((payloads) => payloads.length >= 4);
    expect(words(heard)).toEqual(['start', 'reset', '+new', '=new']);
    await heard[Symbol.asyncDispose]();
  }
});

test('readers that look again do not read the body for it', async () => {
  const world = await createPadWorld(server);
  await world.setContent(world.token('ada'), 'body');
  const readers = followAll(world);
  for (const heard of readers) await heard.until((payloads) => payloads.length >= 1);
  const reads: string[] = [];
  const stop = await monitorRedis(store.path, (args) => {
    const wants = args.find((arg) => arg.startsWith('{'));
    if (args.includes(keyOf(world, 'meta')) && wants !== undefined) reads.push(wants);
  });
  await redis.flushall();
  for (const heard of readers) {
    await heard.until((payloads) => payloads.length >= 2);
    await heard[Symbol.asyncDispose]();
  }
  stop();
  expect(reads.length).toBeGreaterThan(0);
  for (const wants of reads) expect(JSON.parse(wants)).not.toHaveProperty('c');
});

test('a removed reader is told of the reset at its re-add', async () => {
  const world = await createPadWorld(server);
  const ada = world.token('ada');
  await world.append(ada, 'old');
  await using ben = subscribe<PadPayload>(server, world.token('ben'), FOLLOW, {
    scratchpadId: world.scratchpadId,
  });
  await using owner = subscribe<PadPayload>(server, world.apiKey, FOLLOW, {
    scratchpadId: world.scratchpadId,
  });
  await ben.until((payloads) => payloads.length >= 1);
  await owner.until((payloads) => payloads.length >= 1);
  await world.setState('ben', 'REMOVED');
  await redis.flushall();
  await owner.until((payloads) => payloads.length >= 2);
  await world.append(ada, 'gap');
  await world.setContent(ada, 'body');
  await owner.until((payloads) => payloads.length >= 4);
  expect(words(ben)).toEqual(['start']);
  await world.setState('ben', 'ACTIVE');
  await world.append(ada, 'new');
  await ben.until((payloads) => payloads.length >= 4);
  expect(words(ben)).toEqual(['start', 'reset', '=body', '+new']);
});

test('while Redis is away reads and writes are UNAVAILABLE within 2 s, the rest goes on, and readers lose nothing', async () => {
  const world = await createPadWorld(server);
  const ada = world.token('ada');
  await world.append(ada, 'one');
  const readers = followAll(world);
  for (const heard of readers) await heard.until((payloads) => payloads.length >= 1);
  await store.kill9();
  const input = { scratchpadId: world.scratchpadId };
  const asked = async (query: string, variables: Record<string, unknown>) => {
    const began = performance.now();
    const { data, errors } = await server.graphql(ada, query, variables);
    expect(performance.now() - began).toBeLessThan(2_000);
    return { data, code: errors?.[0]?.extensions?.code };
  };
  expect(await asked(APPEND, { input: { ...input, content: 'x' } })).toMatchObject({ code: 'UNAVAILABLE' });
  expect(await asked(SET_CONTENT, { input: { ...input, text: 'x' } })).toMatchObject({ code: 'UNAVAILABLE' });
  // What needs the second store is null, and its siblings stand.
  expect(await asked(READ, { id: world.scratchpadId })).toMatchObject({
    code: 'UNAVAILABLE',
    data: { scratchpad: { id: world.scratchpadId, content: null, entries: null, end: null } },
  });
  await store.restart();
  const written = async (): Promise<string> =>
    (await asked(APPEND, { input: { ...input, content: 'two' } })).code ?? 'OK';
  await expect.poll(written, { timeout: 10_000 }).toBe('OK');
  for (const heard of readers) {
    await heard.until((payloads) => payloads.map(told).includes('+two'));
    expect(words(heard).filter((word) => word !== '+two')).toEqual(['start']);
    await heard[Symbol.asyncDispose]();
  }
});

test('an event goes out although a scratchpad that it reads is being deleted', async () => {
  const world = await createPadWorld(server);
  const socket = await openRawSocket(server.socketUrl);
  await socket.init({ authorization: `Bearer ${world.token('ben')}` });
  socket.subscribe(
    't',
    'subscription ($id: ID!) { timeline(threadId: $id) { event { id thread { scratchpad { content { text } } } } } }',
    { id: world.threadId },
  );
  await socket.nextOf('t', 'next');
  // As between the two reads of one execution: its row is found, its state is gone.
  await redis.set(keyOf(world, 'gone'), '1');
  for (const content of ['one', 'two']) {
    const { postMessage } = await world.must<{ postMessage: { message: { id: string } } }>(
      world.token('ada'),
      'mutation ($id: ID!, $content: String!) { postMessage(input: { threadId: $id, content: $content }) { message { id } } }',
      { id: world.threadId, content },
    );
    expect((await socket.nextOf('t', 'next')).payload).toMatchObject({
      data: { timeline: { event: { id: postMessage.message.id } } },
    });
  }
  await socket.close();
});
