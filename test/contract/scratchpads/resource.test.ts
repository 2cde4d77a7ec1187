import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Actor } from '../../../src/auth/actor.ts';
import { markLegacyChecked } from '../../../src/scratchpads/rows.ts';
import { newId } from '../../../src/shared/ids.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { padWriting } from '../../support/padWriting.ts';
import { createWorld, type World } from '../../support/world.ts';

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let other: ReturnType<typeof createApi>;
let redis: Redis;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  // A process of its own, as far as this one can be: it shares nothing but the stores.
  other = createApi(db.database);
  redis = new Redis(inject('redisUrl').replace('unix://', ''));
});
afterAll(async () => {
  redis.disconnect();
  await api.close();
  await other.close();
  await db.drop();
});

const newWorld = (): Promise<World> => createWorld(api.services, `w${randomUUID().slice(0, 8)}`);
const sql = async <Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
  db.database.query<Row>({ name: '', text }, values);
const token = ({ userId, people }: World, name: keyof World['people']): Actor => ({
  kind: 'PARTICIPANT_TOKEN',
  userId,
  credentialId: people[name].credentialId,
  participantId: people[name].id,
});

describe('a scratchpad', () => {
  test('is made once per thread, however many ask at once, in however many processes', async () => {
    const { owner, laterThreadId: threadId, people } = await newWorld();
    const makers = Array.from({ length: 24 }, (_, index) =>
      (index % 2 === 0 ? api : other).services.scratchpads.create(owner, {
        threadId,
        as: index % 3 === 0 ? people.ada.id : null,
      }),
    );
    const outcomes = await Promise.allSettled(makers);
    const made = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(made).toHaveLength(1);
    const existingId = made[0]?.pad.scratchpadId;
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue;
      expect(outcome.reason).toMatchObject({ code: 'CONFLICT', facts: { existingId } });
    }
    const ensured = await Promise.all(
      Array.from({ length: 8 }, () => other.services.scratchpads.ensure(owner, { threadId })),
    );
    expect(new Set(ensured.map(({ pad }) => pad.scratchpadId))).toEqual(new Set([existingId]));
  });

  test('is ensured once too, and written in the audit log once', async () => {
    const { owner, laterThreadId: threadId, userId } = await newWorld();
    const ensured = await Promise.all(
      Array.from({ length: 16 }, (_, index) =>
        (index % 2 === 0 ? api : other).services.scratchpads.ensure(owner, { threadId }),
      ),
    );
    expect(new Set(ensured.map(({ pad }) => pad.scratchpadId)).size).toBe(1);
    expect(
      await sql(
        `SELECT subject_id FROM audit_log
         WHERE owner_id = $1 AND act = 'scratchpad.created' AND details ->> 'threadId' = $2`,
        [userId, threadId],
      ),
    ).toEqual([{ subject_id: ensured[0]?.pad.scratchpadId }]);
  });

  test('is made by the owner and by active members, and by nobody else', async () => {
    const world = await newWorld();
    const { owner, laterThreadId: threadId, people } = world;
    const { create } = api.services.scratchpads;
    const stranger = await newWorld();
    const refused: readonly [Actor, Parameters<typeof create>[1], string][] = [
      [token(world, 'rex'), { threadId }, 'PARTICIPANT_NOT_ACTIVE'],
      [owner, { threadId, as: people.rex.id }, 'PARTICIPANT_NOT_ACTIVE'],
      [token(world, 'nora'), { threadId }, 'NOT_FOUND'],
      [owner, { threadId, as: people.nora.id }, 'NOT_FOUND'],
      [owner, { threadId, as: stranger.people.ada.id }, 'NOT_FOUND'],
      [stranger.owner, { threadId }, 'NOT_FOUND'],
      [owner, { threadId: newId('Thread') }, 'NOT_FOUND'],
      [owner, { threadId: 'x' }, 'NOT_FOUND'],
      [token(world, 'ada'), { threadId, metaData: {} }, 'FORBIDDEN'],
      [token(world, 'ada'), { threadId, ttlSeconds: 1 }, 'FORBIDDEN'],
      [owner, { threadId, ttlSeconds: -1 }, 'BAD_USER_INPUT'],
      [owner, { threadId, ttlSeconds: 315_360_001 }, 'BAD_USER_INPUT'],
      [owner, { threadId, metaData: [] }, 'BAD_USER_INPUT'],
      [owner, { threadId, metaData: { a: 'x'.repeat(16 * 1024) } }, 'PAYLOAD_TOO_LARGE'],
    ];
    for (const [index, [actor, input, code]] of refused.entries())
      await expect(create(actor, input), `${index}`).rejects.toMatchObject({ code });
    expect(await sql('SELECT id FROM scratchpads WHERE thread_id = $1', [threadId])).toEqual([]);
    const { pad } = await create(token(world, 'lil'), { threadId });
    expect(pad).toMatchObject({ threadId, metaData: {}, ttlSeconds: 0 });
  });

  test('takes over what an earlier format left of its thread only if it is the thread’s first', async () => {
    const { owner, laterThreadId: threadId } = await newWorld();
    const { create, delete: remove } = api.services.scratchpads;
    const { pad: first } = await create(owner, { threadId });
    expect(first.legacyPending).toBe(true);
    await remove(owner, first);
    const { pad: second } = await create(owner, { threadId });
    expect(second.legacyPending).toBe(false);
  });

  test('is changed whole or not at all, and only that moves updatedAt', async () => {
    const { owner, scratchpadId, userId, people } = await newWorld();
    const { update, find } = api.services.scratchpads;
    const first = await find(owner, { scratchpadId });
    const { pad: second } = await update(owner, { scratchpadId, metaData: { colour: 'red' } });
    expect(second).toMatchObject({ metaData: { colour: 'red' }, createdAt: first?.createdAt });
    expect(Date.parse(second.updatedAt)).toBeGreaterThan(Date.parse(first?.updatedAt ?? ''));
    for (const same of [{}, { metaData: null }, { ttlSeconds: null }, { metaData: { colour: 'red' } }])
      expect((await update(owner, { scratchpadId, ...same })).pad).toEqual(second);
    await padWriting(api).append(owner, { scratchpadId, content: 'a note', as: people.ada.id });
    await padWriting(api).setContent(owner, { scratchpadId, text: 'a body' });
    await markLegacyChecked(db.database, { ...second, ownerId: userId });
    expect((await find(owner, { scratchpadId }))?.updatedAt).toBe(second.updatedAt);
    const { pad: third } = await update(owner, { scratchpadId, metaData: {}, ttlSeconds: 60 });
    expect(third).toMatchObject({ metaData: {}, ttlSeconds: 60 });
    expect(Date.parse(third.updatedAt)).toBeGreaterThan(Date.parse(second.updatedAt));
    expect(await redis.pttl(`scratchpad:${userId}:{${scratchpadId}}:meta`)).toBeGreaterThan(50_000);
    const { pad: fourth } = await update(owner, { scratchpadId, ttlSeconds: 0 });
    expect(fourth.metaData).toEqual({});
    expect(await redis.pttl(`scratchpad:${userId}:{${scratchpadId}}:meta`)).toBe(-1);
  });

  test('is administered by the owner, and each act stands in the audit log', async () => {
    const world = await newWorld();
    const { owner, scratchpadId, userId, people } = world;
    const { update, delete: remove } = api.services.scratchpads;
    for (const act of [
      update(token(world, 'ada'), { scratchpadId, metaData: {} }),
      remove(token(world, 'ada'), { scratchpadId }),
    ])
      await expect(act).rejects.toMatchObject({ code: 'FORBIDDEN' });
    const stranger = await newWorld();
    for (const [actor, id] of [
      [stranger.owner, scratchpadId],
      [{ ...owner, actAs: people.nora.id }, scratchpadId],
      [owner, newId('Scratchpad')],
      [owner, 'x'],
    ] as const) {
      await expect(update(actor, { scratchpadId: id, metaData: {} })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
      await expect(update(actor, { scratchpadId: id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
      await expect(remove(actor, { scratchpadId: id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    }
    await update({ ...owner, actAs: people.ada.id }, { scratchpadId, metaData: {} });
    await remove(owner, { scratchpadId });
    expect(
      await sql(
        `SELECT act, actor_id, credential_id FROM audit_log WHERE owner_id = $1 AND subject_id = $2 ORDER BY at, id`,
        [userId, scratchpadId],
      ),
    ).toEqual([
      { act: 'scratchpad.created', actor_id: null, credential_id: owner.credentialId },
      { act: 'scratchpad.updated', actor_id: people.ada.id, credential_id: owner.credentialId },
      { act: 'scratchpad.deleted', actor_id: null, credential_id: owner.credentialId },
    ]);
  });

  test('is found by its id and by its thread, by those who may know of it', async () => {
    const world = await newWorld();
    const { owner, scratchpadId, threadId, laterThreadId } = world;
    const { find, findOfThread } = api.services.scratchpads;
    const stranger = await newWorld();
    for (const actor of [owner, token(world, 'ada'), token(world, 'rex')]) {
      expect(await find(actor, { scratchpadId })).toMatchObject({ scratchpadId, threadId });
      expect(await findOfThread(actor, { threadId })).toMatchObject({ scratchpadId, threadId });
      expect(await findOfThread(actor, { threadId: laterThreadId })).toBeNull();
    }
    for (const actor of [stranger.owner, token(stranger, 'ada'), token(world, 'nora'), token(world, 'lil')]) {
      expect(await find(actor, { scratchpadId })).toBeNull();
      await expect(findOfThread(actor, { threadId })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    }
  });
});

describe('the list', () => {
  test('has the owner’s pads, or those of a participant’s threads, in the order of creation', async () => {
    const world = await newWorld();
    const { owner, people } = world;
    const { page, all, create } = api.services.scratchpads;
    const ids = [world.scratchpadId];
    const mine = [world.scratchpadId];
    // Enough for several parts of a stream; every third thread is ada's.
    for (let index = 0; index < 24; index += 1) {
      const { id } = await api.services.participants.create(owner, { kind: 'AGENT', handle: `one-${index}` });
      const with_ = index % 3 === 0 ? people.ada.id : people.nora.id;
      const { threadId } = await api.services.threads.open(owner, { participantIds: [id, with_] });
      const { pad } = await create(owner, { threadId });
      ids.push(pad.scratchpadId);
      if (index % 3 === 0) mine.push(pad.scratchpadId);
    }
    // Many in one moment, which only their ids order.
    await sql('ALTER TABLE scratchpads DISABLE TRIGGER scratchpads_guard');
    await sql(`UPDATE scratchpads SET created_at = date_trunc('minute', created_at) WHERE owner_id = $1`, [
      world.userId,
    ]);
    await sql('ALTER TABLE scratchpads ENABLE TRIGGER scratchpads_guard');
    const rows = await sql<{ id: string }>(
      'SELECT id FROM scratchpads WHERE owner_id = $1 ORDER BY created_at, id COLLATE "C"',
      [world.userId],
    );
    expect(rows.map(({ id }) => id).sort()).toEqual([...ids].sort());
    const ordered = rows.map(({ id }) => id);
    const collect = async (actor: Actor): Promise<string[]> => {
      const found: string[] = [];
      for await (const { scratchpadId } of all(actor)) found.push(scratchpadId);
      return found;
    };
    const walk = async (actor: Actor, isBackward: boolean): Promise<string[]> => {
      const found: string[] = [];
      let cursor: string | null = null;
      for (;;) {
        const part: Awaited<ReturnType<typeof page>> = await page(
          actor,
          isBackward ? { last: 4, before: cursor } : { first: 4, after: cursor },
        );
        const here = part.edges.map(({ node }) => node.scratchpadId);
        if (isBackward) found.unshift(...here);
        else found.push(...here);
        const { hasNextPage, hasPreviousPage, startCursor, endCursor } = part.pageInfo;
        if (!(isBackward ? hasPreviousPage : hasNextPage)) return found;
        cursor = isBackward ? startCursor : endCursor;
      }
    };
    for (const [actor, expected] of [
      [owner, ordered],
      [token(world, 'ada'), ordered.filter((id) => mine.includes(id))],
      [{ ...owner, actAs: people.ada.id }, ordered.filter((id) => mine.includes(id))],
      [token(world, 'rex'), [world.scratchpadId]],
      [token(world, 'lil'), []],
    ] as const) {
      expect(await collect(actor)).toEqual(expected);
      expect(await walk(actor, false)).toEqual(expected);
      expect(await walk(actor, true)).toEqual(expected);
    }
  });
});
