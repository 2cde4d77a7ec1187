import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ScratchpadWriting } from '../../../src/scratchpads/writing.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { HoldingRedis } from '../../support/holdingRedis.ts';
import { padWriting } from '../../support/padWriting.ts';
import { type RedisServer, startRedis } from '../../support/redis.ts';
import { createWorld, type World } from '../../support/world.ts';

let db: TestDatabase;
let server: RedisServer;
let redis: HoldingRedis;
let api: ReturnType<typeof createApi>;
let changer: ReturnType<typeof createApi>;
let writing: ScratchpadWriting;
let world: World;
beforeAll(async () => {
  db = await createTestDatabase();
  server = await startRedis();
  redis = new HoldingRedis(server.path);
  api = createApi(db.database, { redisUrl: server.url, commands: redis });
  changer = createApi(db.database, { redisUrl: server.url });
  writing = padWriting(api);
});
afterAll(async () => {
  await api.close();
  await changer.close();
  await server.stop();
  await db.drop();
});
beforeEach(async () => {
  world = await createWorld(changer.services, `w${randomUUID().slice(0, 8)}`);
  await writing.clear(world.owner, target(), 'ALL');
  await append('first');
});

const target = () => ({ scratchpadId: world.scratchpadId, as: world.people.ada.id });
const append = (content: string) => writing.append(world.owner, { ...target(), content });
const set = (text: string) => writing.setContent(world.owner, { ...target(), text });
const key = (name: string): string => `scratchpad:${world.userId}:{${world.scratchpadId}}:${name}`;
const stored = (json: string | null) => JSON.parse(json ?? '{}') as { content?: string; version?: number };
const entries = async () => (await redis.lrange(key('entries'), 0, -1)).map((json) => stored(json).content);

/**
 * A write behind the fence of a change that was rolled back, so that it takes two attempts of one and the same grant;
 * answers how to send all of it again.
 */
const atTheSecondAttempt = async (write: () => Promise<unknown>): Promise<() => Promise<void>> => {
  const { userId: ownerId, scratchpadId, people } = world;
  const access = await api.services.padAccess.grant({ ownerId, scratchpadId, participantId: people.ada.id });
  if (access === null) throw new Error('There is no such pad.');
  await changer.padUpkeep.plane.raise(access.pad, access.grant.threadSeq + 1);
  redis.sent.length = 0;
  await write();
  const sent = [...redis.sent];
  expect(sent).toHaveLength(2);
  return async () => {
    for (const { name, args } of sent) await redis.call(name, ...args);
  };
};

test('an entry that was appended at the second attempt stands once, though both arrive again', async () => {
  const sendAgain = await atTheSecondAttempt(() => append('late'));
  await sendAgain();
  expect(await entries()).toEqual(['first', 'late']);
});

test('a body that was written at the second attempt does not replace a later one, though both arrive again', async () => {
  const sendAgain = await atTheSecondAttempt(() => set('late'));
  await set('newer');
  await sendAgain();
  expect(stored(await redis.get(key('content')))).toMatchObject({ content: 'newer', version: 3 });
});

test('a clear that was done at the second attempt spares what was appended later, though both arrive again', async () => {
  const sendAgain = await atTheSecondAttempt(() => writing.clear(world.owner, target(), 'ENTRIES'));
  await append('later');
  await sendAgain();
  expect(await entries()).toEqual(['later']);
});
