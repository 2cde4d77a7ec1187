import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSweeping } from '../../../src/scratchpads/sweeping.ts';
import { newId } from '../../../src/shared/ids.ts';
import { log } from '../../../src/shared/log.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type RedisServer, startRedis } from '../../support/redis.ts';
import { createWorld } from '../../support/world.ts';

let db: TestDatabase;
let server: RedisServer;
let redis: Redis;
let api: ReturnType<typeof createApi>;
beforeAll(async () => {
  db = await createTestDatabase();
  server = await startRedis();
  redis = new Redis(server.path);
  api = createApi(db.database, { redisUrl: server.url });
});
afterAll(async () => {
  redis.disconnect();
  await api.close();
  await server.stop();
  await db.drop();
});

const keys = async (): Promise<string[]> => (await redis.keys('*')).sort();

test('the sweeper removes state whose pad does not exist, and nothing else', async () => {
  await createWorld(api.services, `w${randomUUID().slice(0, 8)}`);
  const kept = await keys();
  expect(kept.length).toBeGreaterThanOrEqual(4);
  const [user, pad] = [newId('User'), newId('Scratchpad')];
  const orphans = ['content', 'meta', 'idem', 'import'].map((name) => `scratchpad:${user}:{${pad}}:${name}`);
  for (const key of orphans) await redis.set(key, 'x');
  // More than one step's worth.
  const many = Array.from({ length: 1_000 }, () => `scratchpad:${user}:{${newId('Scratchpad')}}:entries`);
  for (const key of many) await redis.rpush(key, 'x');
  const others = [
    `scratchpad:${user}:{${pad}}:gone`,
    `scratchpad:${newId('Thread')}:notebook`,
    `scratchpad:${user}:${pad}:content`,
    `scratchpad:${user}:{${pad}}:other`,
    `scratchpad:somebody:{else}:content`,
    `xscratchpad:${user}:{${pad}}:content`,
  ];
  for (const key of others) await redis.set(key, 'x');

  const sweeping = createSweeping({ database: db.database, redis, log });
  try {
    expect([...((await sweeping.sweep()) ?? [])].sort()).toEqual([...orphans, ...many].sort());
    expect(await keys()).toEqual([...kept, ...others, 'scratchpad:home'].sort());
    expect(await sweeping.sweep()).toEqual([]);
  } finally {
    await sweeping.close();
  }
});

test('where Redis holds the pads of another database too, none is removed', async () => {
  await using elsewhere = await createTestDatabase();
  await elsewhere.database.query(
    { name: '', text: `UPDATE _prisma_migrations SET id = 'x' || left(id, 30)` },
    [],
  );
  const key = `scratchpad:${newId('User')}:{${newId('Scratchpad')}}:content`;
  await redis.set(key, 'x');
  const ours = createSweeping({ database: db.database, redis, log });
  const theirs = createSweeping({ database: elsewhere.database, redis, log });
  try {
    await redis.del('scratchpad:home');
    // Whoever swept first is at home there.
    expect(await theirs.sweep()).not.toBeNull();
    await redis.set(key, 'x');
    expect(await ours.sweep()).toBeNull();
    expect(await redis.exists(key)).toBe(1);
  } finally {
    await ours.close();
    await theirs.close();
  }
});

test('it sweeps by itself now and then, and closes at once', async () => {
  await redis.del('scratchpad:home');
  const key = `scratchpad:${newId('User')}:{${newId('Scratchpad')}}:content`;
  await redis.set(key, 'x');
  const sweeping = createSweeping({ database: db.database, redis, log, firstMs: 20, everyMs: 60_000 });
  await expect.poll(() => redis.exists(key), { timeout: 10_000 }).toBe(0);
  const began = performance.now();
  await sweeping.close();
  // Not when it would sweep next.
  expect(performance.now() - began).toBeLessThan(10_000);
});
