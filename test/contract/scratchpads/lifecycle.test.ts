import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApi } from '../../support/api.ts';
import { startProcess } from '../../support/app.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { padWriting } from '../../support/padWriting.ts';
import { LOSES_NOTHING, type RedisServer, startRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { createWorld, type World } from '../../support/world.ts';

type Api = ReturnType<typeof createApi>;

let db: TestDatabase;
let server: RedisServer;
let redis: Redis;
let api: Api;
beforeAll(async () => {
  db = await createTestDatabase();
  server = await startRedis(LOSES_NOTHING);
  redis = new Redis(server.path);
  redis.on('error', () => undefined);
  api = createApi(db.database, { redisUrl: server.url });
});
afterAll(async () => {
  redis.disconnect();
  await api.close();
  await server.stop();
  await db.drop();
});

const sql = <Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
  db.database.query<Row>({ name: '', text }, values);

interface Scene extends World {
  readonly pads: readonly { readonly scratchpadId: string; readonly threadId: string }[];
}

/** Pads with content, entries, records of keys and what earlier versions left, and one that was never written to. */
const newScene = async (by: Api = api): Promise<Scene> => {
  const world = await createWorld(by.services, `w${randomUUID().slice(0, 8)}`);
  const { owner, threadId, laterThreadId, userId } = world;
  const { pad } = await by.services.scratchpads.create(owner, { threadId: laterThreadId });
  const first = { scratchpadId: world.scratchpadId, threadId };
  const pads = [first, pad];
  await fill(by, world, first.scratchpadId);
  await redis.set(`scratchpad:${first.threadId}:notebook`, '{"content":"old","last_updated":1.5}');
  await redis.set(`scratchpad:${userId}:${first.scratchpadId}:content`, '{"content":"old"}');
  await redis.rpush(`scratchpad:${userId}:${first.scratchpadId}:entries`, '{"content":"old"}');
  return { ...world, pads };
};

const fill = async (by: Api, { owner }: World, scratchpadId: string): Promise<void> => {
  const writing = padWriting(by);
  await writing.append(owner, { scratchpadId, content: 'a note', idempotencyKey: 'once' });
  await writing.setContent(owner, { scratchpadId, text: 'a body' });
};

/** Keys that name the tenant, one of its threads or one of its pads. */
const keysOf = async ({ userId, threadId, laterThreadId, pads }: Scene): Promise<string[]> => {
  const names = [userId, threadId, laterThreadId, ...pads.map(({ scratchpadId }) => scratchpadId)];
  return (await redis.keys('*')).filter((key) => names.some((name) => key.includes(name)));
};
const stateOf = async (scene: Scene): Promise<string[]> =>
  (await keysOf(scene)).filter((key) => !key.endsWith(':gone'));

const purgesOf = ({ userId }: World): Promise<{ scratchpad_id: string; emptied: boolean }[]> =>
  sql(
    `SELECT scratchpad_id, emptied_at IS NOT NULL AS emptied FROM scratchpad_purges WHERE owner_id = $1 ORDER BY 1`,
    [userId],
  );
const isEmptied = async (scene: Scene, count: number): Promise<boolean> => {
  const purges = await purgesOf(scene);
  return purges.length === count && purges.every(({ emptied }) => emptied);
};

const graphql = async (world: World, document: string): Promise<void> => {
  const result = await api.run({ authorization: `Bearer ${world.apiKey}` }, document);
  expect(result.errors).toBeUndefined();
};

type Deletion = (scene: Scene) => Promise<unknown>;
const padId = ({ pads }: Scene): string => pads[0]?.scratchpadId ?? '';

/** What deletes the first pad, its thread, or all there is. */
const DELETIONS: Readonly<Record<string, { readonly run: Deletion; readonly pads: number }>> = {
  'a pad, over GraphQL': {
    run: (scene) =>
      graphql(
        scene,
        `mutation { deleteScratchpad(input: { scratchpadId: "${padId(scene)}" }) { deletedId } }`,
      ),
    pads: 1,
  },
  'its thread, over GraphQL': {
    run: (scene) =>
      graphql(scene, `mutation { deleteThread(input: { threadId: "${scene.threadId}" }) { deletedId } }`),
    pads: 1,
  },
  'its user, over GraphQL': {
    run: (scene) =>
      graphql(
        scene,
        `mutation { deleteUser(input: { confirmName: "${scene.mark} company" }) { deletedId } }`,
      ),
    pads: 2,
  },
  'a pad, by hand': { run: (scene) => sql('DELETE FROM scratchpads WHERE id = $1', [padId(scene)]), pads: 1 },
  'its thread, by hand': {
    run: (scene) => sql('DELETE FROM threads WHERE id = $1', [scene.threadId]),
    pads: 1,
  },
  'its thread, marked by hand': {
    run: (scene) => sql('UPDATE threads SET deleted_at = now() WHERE id = $1', [scene.threadId]),
    pads: 1,
  },
  'its user, by hand': { run: (scene) => sql('DELETE FROM users WHERE id = $1', [scene.userId]), pads: 2 },
};

describe('deleting', () => {
  test.for(Object.entries(DELETIONS))(
    '%s leaves nothing in Redis but a tombstone',
    async ([, { run, pads }]) => {
      const scene = await newScene();
      expect(await keysOf(scene)).toHaveLength(7);
      await run(scene);
      // By hand nobody is told: it would be found within half a minute.
      api.padUpkeep.outbox.wake();
      await until(() => isEmptied(scene, pads));
      expect(await stateOf(scene)).toEqual([]);
      expect(await redis.exists(`scratchpad:${scene.userId}:{${padId(scene)}}:gone`)).toBe(1);
      // What a command that was under way left behind goes with the second pass, which is the last.
      await redis.set(`scratchpad:${scene.userId}:{${padId(scene)}}:content`, '{}');
      await sql('UPDATE scratchpad_purges SET due_at = now() WHERE owner_id = $1', [scene.userId]);
      api.padUpkeep.outbox.wake();
      await until(async () => (await purgesOf(scene)).length === 0);
      expect(await stateOf(scene)).toEqual([]);
    },
  );

  test('is over as soon as the pad is gone: it cannot be found, written or deleted again', async () => {
    const scene = await newScene();
    const { owner, threadId } = scene;
    const scratchpadId = padId(scene);
    await api.services.scratchpads.delete(owner, { scratchpadId });
    expect(await api.services.scratchpads.find(owner, { scratchpadId })).toBeNull();
    expect(await api.services.scratchpads.findOfThread(owner, { threadId })).toBeNull();
    const late = padWriting(api).append(owner, { scratchpadId, content: 'late' });
    await expect(late).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const again = api.services.scratchpads.delete(owner, { scratchpadId });
    await expect(again).rejects.toMatchObject({ code: 'NOT_FOUND' });
    // The thread may have another one.
    const { pad } = await api.services.scratchpads.create(owner, { threadId });
    expect(pad.scratchpadId).not.toBe(scratchpadId);
    await fill(api, scene, pad.scratchpadId);
  });

  test('races 1,000 appends, and none is left', async () => {
    const scene = await newScene();
    const { owner } = scene;
    const writing = padWriting(api);
    for (let round = 0; round < 10; round += 1) {
      const { pad } =
        round === 0
          ? { pad: scene.pads[0] ?? { scratchpadId: '' } }
          : await api.services.scratchpads.create(owner, { threadId: scene.threadId });
      const { scratchpadId } = pad;
      const appends = Array.from({ length: 100 }, async (_, index) => {
        await new Promise((resolve) => setTimeout(resolve, index % 20));
        return writing.append(owner, { scratchpadId, content: `note ${index}` });
      });
      const [deletion, ...outcomes] = await Promise.allSettled([
        new Promise((resolve) => setTimeout(resolve, 5 + round)).then(() =>
          api.services.scratchpads.delete(owner, { scratchpadId }),
        ),
        ...appends,
      ]);
      expect(deletion.status).toBe('fulfilled');
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'NOT_FOUND' });
      await until(async () => {
        const purges = await purgesOf(scene);
        return purges.some((purge) => purge.scratchpad_id === scratchpadId && purge.emptied);
      });
      const left = (await redis.keys(`*${scratchpadId}*`)).filter((key) => !key.endsWith(':gone'));
      expect(left).toEqual([]);
    }
  });

  test('while Redis is away is made up for when it is back', async () => {
    const scene = await newScene();
    await server.kill9();
    await api.services.scratchpads.delete(scene.owner, { scratchpadId: padId(scene) });
    expect(await isEmptied(scene, 1)).toBe(false);
    await server.restart();
    await until(() => isEmptied(scene, 1));
    const left = (await redis.keys(`*${padId(scene)}*`)).filter((key) => !key.endsWith(':gone'));
    expect(left).toEqual([]);
  });
});

describe('a new ttlSeconds', () => {
  const metaOf = (scene: Scene): string => `scratchpad:${scene.userId}:{${padId(scene)}}:meta`;
  const retimesOf = (scene: Scene): Promise<{ told: boolean }[]> =>
    sql('SELECT told_at IS NOT NULL AS told FROM scratchpad_retimes WHERE scratchpad_id = $1', [
      padId(scene),
    ]);
  const isTold = async (scene: Scene): Promise<boolean> => (await retimesOf(scene))[0]?.told === true;

  test('that was set while Redis is away holds when it is back', async () => {
    const scene = await newScene();
    const { update } = api.services.scratchpads;
    await update(scene.owner, { scratchpadId: padId(scene), ttlSeconds: 3_600 });
    await until(() => isTold(scene));
    expect(await redis.pttl(metaOf(scene))).toBeGreaterThan(0);
    await server.kill9();
    const began = performance.now();
    await update(scene.owner, { scratchpadId: padId(scene), ttlSeconds: 0 });
    expect(performance.now() - began).toBeLessThan(1_200);
    await server.restart();
    await until(() => isTold(scene));
    expect(await redis.pttl(metaOf(scene))).toBe(-1);
  });

  test('outlasts a write that was authorised before it and lands after it', async () => {
    const scene = await newScene();
    const { update } = api.services.scratchpads;
    const target = { ownerId: scene.userId, scratchpadId: padId(scene), participantId: null };
    await update(scene.owner, { scratchpadId: padId(scene), ttlSeconds: 3_600 });
    const before = await api.services.padAccess.grant(target);
    if (before === null) throw new Error('There is no such pad.');
    await update(scene.owner, { scratchpadId: padId(scene), ttlSeconds: 0 });
    await until(() => isTold(scene));
    const author = { authorId: null, runId: null, sourceIds: [] };
    const late = () =>
      api.padUpkeep.plane.append(before.pad, before.grant, author, { contents: ['late'], key: null });
    await late();
    expect(await redis.pttl(metaOf(scene))).toBe(-1);
    // And where Redis forgot: the outbox tells it once more.
    await redis.hdel(metaOf(scene), 'retimed');
    await late();
    expect(await redis.pttl(metaOf(scene))).toBeGreaterThan(0);
    // As if a quarter of a minute had passed.
    await sql('UPDATE scratchpad_retimes SET due_at = now() WHERE scratchpad_id = $1', [padId(scene)]);
    api.padUpkeep.outbox.wake();
    await until(async () => (await retimesOf(scene)).length === 0);
    expect(await redis.pttl(metaOf(scene))).toBe(-1);
  });
});

describe('a server that is killed between SQL and Redis', () => {
  /** Deletes the thread through a server that then dies at some step; another one is started. */
  const dieAt = async (
    scene: Scene,
    reachStep: () => Promise<(() => Promise<void>) | undefined>,
  ): Promise<void> => {
    const stores = { databaseUrl: db.url, redisUrl: server.url };
    const dying = await startProcess(stores);
    server.pause();
    let cleanUp: (() => Promise<void>) | undefined;
    try {
      const { errors } = await dying.graphql(
        scene.apiKey,
        `mutation { deleteThread(input: { threadId: "${scene.threadId}" }) { deletedId } }`,
      );
      expect(errors).toBeUndefined();
      cleanUp = await reachStep();
    } finally {
      await dying.kill9();
      server.resume();
      await cleanUp?.();
    }
    expect(await isEmptied(scene, 1)).toBe(false);
    // What it had taken in hand is due again after half a minute, which is not waited for.
    await sql('UPDATE scratchpad_purges SET due_at = now() WHERE owner_id = $1', [scene.userId]);
    const next = await startProcess(stores);
    try {
      await until(() => isEmptied(scene, 1));
    } finally {
      await next.close();
    }
    const left = (await redis.keys(`*${padId(scene)}*`)).filter((key) => !key.endsWith(':gone'));
    expect(left).toEqual([]);
    expect(await redis.exists(`scratchpad:${scene.threadId}:notebook`)).toBe(0);
  };
  const isTaken = ({ userId }: World) =>
    until(
      async () =>
        (await sql('SELECT 1 AS one FROM scratchpad_purges WHERE owner_id = $1 AND attempts > 0', [userId]))
          .length > 0,
    );

  let scenes: Scene[];
  beforeAll(async () => {
    scenes = [await newScene(), await newScene()];
    // No worker here: what is deleted waits for a server.
    await api.padUpkeep.outbox.close();
  });

  test('leaves nothing once another was started, if it died while it waited for Redis', async () => {
    const [scene] = scenes;
    if (scene === undefined) throw new Error('There is no scene.');
    await dieAt(scene, async () => {
      await isTaken(scene);
      return undefined;
    });
  }, 30_000);

  test('leaves nothing, if it died before SQL knew what Redis had done', async () => {
    const [, scene] = scenes;
    if (scene === undefined) throw new Error('There is no scene.');
    await dieAt(scene, async () => {
      await isTaken(scene);
      const holder = new pg.Client({ connectionString: db.url });
      await holder.connect();
      await holder.query('BEGIN');
      await holder.query('LOCK TABLE scratchpad_purges IN SHARE ROW EXCLUSIVE MODE');
      server.resume();
      await until(
        async () => (await redis.exists(`scratchpad:${scene.userId}:{${padId(scene)}}:gone`)) === 1,
      );
      return async () => {
        // What the dead process had sent to the database dies with it.
        await holder.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        await holder.end();
      };
    });
  }, 30_000);
});

describe('the database', () => {
  test('refuses to forget what Redis still holds, and to rename it', async () => {
    const scene = await newScene();
    for (const text of [
      'TRUNCATE scratchpads',
      'TRUNCATE scratchpads CASCADE',
      'TRUNCATE scratchpad_purges',
      'TRUNCATE scratchpad_fences',
      'TRUNCATE threads CASCADE',
      `UPDATE scratchpads SET id = id || 'x' WHERE owner_id = '${scene.userId}'`,
      `UPDATE scratchpads SET thread_id = '${scene.laterThreadId}' WHERE thread_id = '${scene.threadId}'`,
      `UPDATE scratchpads SET created_at = now() - interval '1 day' WHERE owner_id = '${scene.userId}'`,
    ])
      await expect(sql(text), text).rejects.toThrow();
    expect(await sql('SELECT id FROM scratchpads WHERE owner_id = $1', [scene.userId])).toHaveLength(2);
  });

  test('lets no pad point into another tenant', async () => {
    const [ours, theirs] = [await newScene(), await newScene()];
    await sql('DELETE FROM scratchpads WHERE owner_id = $1', [theirs.userId]);
    const insert = sql('INSERT INTO scratchpads (id, owner_id, thread_id) VALUES ($1, $2, $3)', [
      'sp_forged',
      ours.userId,
      theirs.threadId,
    ]);
    await expect(insert).rejects.toThrow(/foreign key/);
  });
});
