import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { timelineCursor } from '../../src/shared/cursors.ts';
import { newId } from '../../src/shared/ids.ts';
import { createLanes } from '../../src/shared/lanes.ts';
import { createThreads } from '../../src/threads/threads.ts';
import { type Announce, createTimeline } from '../../src/timeline/timeline.ts';
import { createApi } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';
import { createWorld, type World } from '../support/world.ts';

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let world: World;
/** Somebody at a console, in a transaction that stays open. */
let holder: pg.Client;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  world = await createWorld(api.services, 'replay');
  holder = new pg.Client({ connectionString: db.url });
  await holder.connect();
});
afterAll(async () => {
  await holder.end();
  await api.close();
  await db.drop();
});

/** Services whose deletions wake nobody: what is deleted stays to be emptied. */
const announced: string[] = [];
const announce: Announce = {
  event: ({ id }) => void announced.push(id),
  moved: () => undefined,
  changed: () => undefined,
  deleted: () => undefined,
  woken: () => undefined,
  freed: () => undefined,
};

describe('a first result', () => {
  test('of postMessage comes again whatever the conditions say by then', async () => {
    const { timeline } = api.services;
    const post = (given: { idempotencyKey: string; ifNothingAfter?: string; acknowledgeUpTo?: string }) =>
      timeline.post(world.owner, {
        threadId: world.threadId,
        as: world.people.ada.id,
        content: 'Once.',
        ...given,
      });
    const idempotencyKey = randomUUID();
    const { event } = await post({ idempotencyKey });
    const elsewhere = timelineCursor(newId('Thread'), 1, newId('Event'));
    for (const cursor of ['zz', '', elsewhere, timelineCursor(world.threadId, 1, newId('Event'))])
      for (const condition of ['ifNothingAfter', 'acknowledgeUpTo']) {
        expect((await post({ idempotencyKey, [condition]: cursor })).event).toEqual(event);
        await expect(post({ idempotencyKey: randomUUID(), [condition]: cursor })).rejects.toMatchObject({
          code: 'INVALID_CURSOR',
          facts: { field: condition },
        });
      }
  });

  test('of openThread ends with its thread, also while that is still to be emptied', async () => {
    const threads = createThreads({
      database: db.database,
      announce,
      changeMember: () => Promise.reject(new Error('Nobody changes here.')),
      padDeleted: () => undefined,
      requireVisibleParticipants: () => Promise.resolve(),
    });
    const { ada, nora } = world.people;
    const input = { participantIds: [ada.id, nora.id], idempotencyKey: randomUUID() };
    const first = await threads.open(world.owner, input);
    await threads.delete(world.owner, first);
    const second = await threads.open(world.owner, input);
    expect(second).toMatchObject({ created: true });
    expect(second.threadId).not.toBe(first.threadId);
    expect(await threads.open(world.owner, input)).toEqual(second);

    await threads.delete(world.owner, second);
    const kept = 'SELECT FROM idempotency_records WHERE thread_id = $1';
    expect((await holder.query(kept, [second.threadId])).rowCount).toBe(1);
    const third = await threads.open(world.owner, input);
    expect(third).toMatchObject({ created: true });
    expect(await threads.open(world.owner, input)).toEqual(third);
    const { rows: left } = await holder.query('SELECT deleted_at FROM threads WHERE id = $1', [
      first.threadId,
    ]);
    expect(left).toHaveLength(1);
  });

  test('of postMessage is told to its caller and to nobody else', async () => {
    const timeline = createTimeline({
      database: db.database,
      announce,
      maxAgentHops: 0,
      lanes: createLanes({ width: 1, patienceMs: 1_000 }),
      visibleElsewhere: () => Promise.resolve([]),
    });
    announced.length = 0;
    const { ada, scout } = world.people;
    const { threadId } = await api.services.threads.open(world.owner, { participantIds: [ada.id, scout.id] });
    const input = { threadId, as: ada.id, content: 'Once.', idempotencyKey: randomUUID() };
    const { event } = await timeline.post(world.owner, input);
    await api.services.threads.changeState(world.owner, { threadId, participantId: ada.id }, 'REMOVED');
    expect((await timeline.post(world.owner, input)).event).toEqual(event);
    expect(announced).toEqual([event.id]);
  });
});

test('a user’s threads are emptied beside an append in flight, and neither is a deadlock’s victim', async () => {
  const doomed = await createWorld(api.services, 'doomed');
  const emptier = new pg.Client({ connectionString: db.url });
  await emptier.connect();
  const isThere = async (): Promise<boolean> =>
    (await emptier.query('SELECT 1 FROM users WHERE id = $1', [doomed.userId])).rowCount === 1;
  const empty = async (): Promise<void> => {
    while (await isThere()) await emptier.query('SELECT empty_deleted(2000)');
  };
  // An append between its first lock and its event: it holds the head, and comes to the thread's row next.
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM thread_heads WHERE thread_id = $1 FOR NO KEY UPDATE', [doomed.threadId]);
  await db.database.query(
    { name: 'delete_user', text: 'UPDATE users SET deleted_at = now() WHERE id = $1' },
    [doomed.userId],
  );
  const { rows } = await emptier.query('SELECT pg_backend_pid() AS pid');
  const emptied = empty();
  const waiting = {
    name: 'waiting',
    text: `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = $1`,
  };
  await until(async () => (await db.database.query(waiting, [rows[0]?.pid])).length === 1);
  await holder.query(
    `SELECT append_message($1, $2, $3, $4, 'x', NULL, NULL, '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, 0)`,
    [doomed.userId, doomed.threadId, doomed.people.ada.id, newId('Event')],
  );
  await holder.query('SELECT 1 FROM users WHERE id = $1 FOR KEY SHARE', [doomed.userId]);
  await holder.query('COMMIT');
  await emptied;
  expect(await isThere()).toBe(false);
  await emptier.end();
});
