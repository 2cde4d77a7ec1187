import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Server, startApp } from '../support/app.ts';
import {
  createPadWorld,
  FOLLOW,
  type Name,
  type PadPayload,
  type PadWorld,
  told,
} from '../support/padApi.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { type Heard, subscribe } from '../support/subscribe.ts';

let store: RedisServer;
let server: Server;
let redis: Redis;
beforeAll(async () => {
  store = await startRedis();
  server = await startApp({ REDIS_URL: store.url });
  redis = new Redis(store.path);
});
afterAll(async () => {
  redis.disconnect();
  await server.close();
  await store.stop();
});

/** The position that the pad's newest change had in the record that was lost. */
const LOST = 12;

/** A pad as it stands after Postgres was restored from an older backup: its positions are above the thread's head. */
const restoredWorld = async (): Promise<PadWorld> => {
  const world = await createPadWorld(server);
  await world.append(world.token('ada'), 'old');
  const meta = `scratchpad:${world.tenant.userId}:{${world.scratchpadId}}:meta`;
  await redis.hset(meta, 'last', LOST);
  return world;
};

const follow = async (world: PadWorld, token: string, after?: string): Promise<Heard<PadPayload>> => {
  const heard = subscribe<PadPayload>(server, token, FOLLOW, { scratchpadId: world.scratchpadId, after });
  await heard.until((payloads) => payloads.length >= 1);
  return heard;
};
const words = ({ payloads }: Heard<PadPayload>): string[] => payloads.map(told);
const toldSoFar = async (heard: Heard<PadPayload>, count: number): Promise<string[]> => {
  await heard.until((payloads) => payloads.length >= count);
  return words(heard);
};
const shown = async (world: PadWorld, name: Name, ids: readonly string[]): Promise<unknown> => {
  const { scratchpad, nodes } = await world.must<{
    scratchpad: { entries: { nodes: { content: string }[] } };
    nodes: ({ content: string } | null)[];
  }>(
    world.token(name),
    `query ($id: ID!, $ids: [ID!]!) { scratchpad(id: $id) { entries { nodes { content } } }
      nodes(ids: $ids) { ... on ScratchpadEntry { content } } }`,
    { id: world.scratchpadId, ids },
  );
  return [scratchpad.entries.nodes, nodes].map((those) => those.map((one) => one?.content ?? null));
};

test('a pad whose positions are above the record’s head tells a member what is new, from its end and from a cursor', async () => {
  const world = await restoredWorld();
  const ada = world.token('ada');
  const first = await world.append(ada, 'one');
  await using ben = await follow(world, world.token('ben'));
  await world.append(ada, 'two');
  expect(await toldSoFar(ben, 2)).toEqual(['start', '+two']);
  await world.setContent(ada, 'body');
  expect(await toldSoFar(ben, 3)).toEqual(['start', '+two', '=body']);
  await world.clear(ada, 'Content');
  await world.append(ada, 'three');
  expect(await toldSoFar(ben, 5)).toEqual(['start', '+two', '=body', '-body', '+three']);
  await using cleo = await follow(world, world.token('cleo'), first.cursor);
  expect(await toldSoFar(cleo, 4)).toEqual(['start', '+two', '-body', '+three']);
});

test('a pad whose positions are above the record’s head tells nobody anything of a gap, neither then nor once the record has got as far', async () => {
  const world = await restoredWorld();
  const [ada, token] = [world.token('ada'), world.token('ben')];
  await using owner = await follow(world, world.apiKey);
  await using ben = await follow(world, token);
  const { cursor } = await world.append(ada, 'before');
  expect(await toldSoFar(ben, 2)).toEqual(['start', '+before']);
  await world.setState('ben', 'REMOVED');
  const gap = await world.append(ada, 'gap');
  await world.setContent(ada, 'gap body');
  await owner.until((payloads) => payloads.length >= 4);
  // What a removed reader was given ends where it was removed.
  await using removed = await follow(world, token, cursor);
  await world.setState('ben', 'ACTIVE');
  const last = await world.append(ada, 'after');
  const ids = [gap, last].map(({ entry }) => entry.id);
  for (const heard of [ben, removed])
    expect((await toldSoFar(heard, heard === ben ? 4 : 3)).slice(-2)).toEqual(['=gap body', '+after']);
  expect(await shown(world, 'ben', ids)).toEqual([
    ['old', 'before', 'after'],
    [null, 'after'],
  ]);
  for (let seq = 0; seq < LOST; seq += 1)
    await world.must(
      ada,
      'mutation ($id: ID!) { postMessage(input: { threadId: $id, content: "on" }) { message { id } } }',
      { id: world.threadId },
    );
  await world.append(ada, 'as ever');
  expect(await toldSoFar(ben, 5)).toEqual(['start', '+before', '=gap body', '+after', '+as ever']);
  await using later = await follow(world, token, cursor);
  expect(await toldSoFar(later, 4)).toEqual(['start', '=gap body', '+after', '+as ever']);
  expect(await shown(world, 'ben', ids)).toEqual([
    ['old', 'before', 'after', 'as ever'],
    [null, 'after'],
  ]);
});
