import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
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
describe('a scratchpad', () => {
  test('is made once per thread, however many ask at once, in however many processes', async () => {
    const { owner, threadId, people } = await newWorld();
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
      await sql(`SELECT subject_id FROM audit_log WHERE owner_id = $1 AND act = 'scratchpad.created'`, [
        userId,
      ]),
    ).toEqual([{ subject_id: ensured[0]?.pad.scratchpadId }]);
  });
});
