import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';
import { createInboxWorld, type InboxWorld } from './world.ts';

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

/** Threads of bot and ann in which others’ messages are all there is: nothing for a digest. */
const seedThreads = async ({ owner, ids }: InboxWorld, count: number): Promise<void> => {
  await db.database.query(
    {
      name: '',
      text: `DO $$ BEGIN
        PERFORM set_config('session_replication_role', 'replica', true);
        INSERT INTO threads (id, owner_id)
          SELECT 'thr_many' || n, '${owner.userId}' FROM generate_series(1, ${count}) n;
        INSERT INTO thread_heads (owner_id, thread_id, last_seq, last_at, activity, message_count)
          SELECT '${owner.userId}', 'thr_many' || n, 2, now(), n, 1 FROM generate_series(1, ${count}) n;
        INSERT INTO thread_members (owner_id, thread_id, participant_id, since_at)
          SELECT '${owner.userId}', 'thr_many' || n, p, now() FROM generate_series(1, ${count}) n,
            unnest(ARRAY['${ids.bot}', '${ids.ann}']) p;
        INSERT INTO visibility_windows (owner_id, thread_id, participant_id, after_seq, after_no, visible_before)
          SELECT '${owner.userId}', 'thr_many' || n, '${ids.bot}', 1, 0, 0 FROM generate_series(1, ${count}) n;
        INSERT INTO inbox_threads (owner_id, thread_id, participant_id)
          SELECT '${owner.userId}', 'thr_many' || n, '${ids.bot}' FROM generate_series(1, ${count}) n;
      END $$`,
    },
    [],
  );
};

describe('a digest', () => {
  test('looks at a thousand threads at a time, also of those that moved since, and goes on behind them', async () => {
    const world = await createInboxWorld(api.services);
    const { owner, ids, threadIds } = world;
    const [threadId = ''] = threadIds;
    await seedThreads(world, 2_500);
    await api.services.threads.changeState(owner, { threadId, participantId: ids.ann ?? '' }, 'REMOVED');
    interface Told {
      readonly threadId?: string;
      readonly seen?: string;
      readonly isCut?: boolean;
    }
    const read = async (since: string): Promise<Told[]> => {
      const rows = await db.database.query<{ told: Told }>(
        {
          name: 'test_digest',
          text: `SELECT d AS told FROM inbox_digest($1, $2, '', NULL, $3::bigint, false, 200, '{}', '{}', 1000000) d`,
        },
        [owner.userId, ids.bot, since],
      );
      return rows.map(({ told }) => told);
    };
    expect(await read('0')).toEqual([{ seen: '1000', isCut: true }]);
    expect(await read('1000')).toEqual([{ seen: '2000', isCut: true }]);
    const last = await read('2000');
    expect(last.map((told) => told.threadId)).toContain(threadId);
    expect(last.at(-1)).toMatchObject({ isCut: false });
  });

  test('of two streams of one agent settle in one order, whatever order they were told in', async () => {
    const { owner, ids, threadIds } = await createInboxWorld(api.services);
    const [one = '', middle = '', other = ''] = threadIds;
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    await client.query('BEGIN');
    await client.query('SELECT FROM inbox_threads WHERE participant_id = $1 AND thread_id = $2 FOR UPDATE', [
      ids.bot,
      middle,
    ]);
    const settle = (order: readonly string[]) =>
      db.database.query(
        { name: 'test_settle', text: 'SELECT settle_digest($1, $2, false, $3::text[], $4::int[])' },
        [owner.userId, ids.bot, order, order.map(() => 1)],
      );
    const settled = Promise.all([settle([one, middle, other]), settle([other, middle, one])]);
    await until(async () => {
      const waiting = await db.database.query(
        {
          name: 'test_waiting',
          text: `SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT settle_digest%' AND wait_event_type = 'Lock'`,
        },
        [],
      );
      return waiting.length === 2;
    });
    await client.query('COMMIT');
    await client.end();
    await settled;
    const rows = await db.database.query<{ seq: number }>(
      {
        name: 'test_settled',
        text: `SELECT observed_seq AS seq FROM inbox_threads WHERE participant_id = $1 AND thread_id = ANY ($2)`,
      },
      [ids.bot, [one, other]],
    );
    expect(rows).toEqual([{ seq: 1 }, { seq: 1 }]);
  });
});
