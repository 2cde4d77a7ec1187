import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seedMemories } from '../../../bench/support/seedMemories.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

// How a search finds what is common, rare, or not in use any more. What it finds is held against a plain look at all entries.

const SEEDED = 14_000;
const LATER = 6_000;
const AGENT = 'part_agent';
const THREAD = 'thread_of_it';

let db: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  db = await createTestDatabase();
  client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await client.query(`INSERT INTO users (id, name) VALUES ('user_of_it', 'Tenant')`);
  for (const [id, kind] of [
    [AGENT, 'AGENT'],
    ['part_person', 'HUMAN'],
  ])
    await client.query(
      `INSERT INTO participants (id, owner_id, kind, handle, display_name) VALUES ($1, 'user_of_it', $2::participant_kinds, $1, $1)`,
      [id, kind],
    );
  const memories = { userId: 'user_of_it', agentId: AGENT, threadId: THREAD };
  await seedMemories(client, { ...memories, entries: SEEDED });
  // Of what was common, nothing later says anything.
  await client.query(
    `INSERT INTO memory_entries (owner_id, participant_id, number, id, "timestamp", scope, scope_no, payload, bytes, source_ids, words)
     SELECT 'user_of_it', $1, n, 'mem_later' || n, now(), $2, n, '{}', 2, '{}',
       (tp_place_marks(tp_memory_list($1, $2), n) || ' ' || tp_owned($1) || 'later')::tsvector
     FROM generate_series($3::int, $4::int) n`,
    [AGENT, THREAD, SEEDED + 1, SEEDED + LATER],
  );
  await client.query('UPDATE memory_scopes SET last_no = $1', [SEEDED + LATER]);
});
afterAll(async () => {
  await client.end();
  await db.drop();
});

const QUERIES = [
  'review',
  'later',
  'topic7',
  'team7 review',
  'rare3',
  'nowhere',
  '周会',
  '会',
  '预算',
  '迁移三',
  '号',
];

test.each(QUERIES)(
  '%s is found wherever a plain look finds it, the newest or the oldest of it',
  async (words) => {
    for (const wanted of [20, 2_000, 100_000])
      for (const isOldest of [false, true])
        for (const [above, below] of [
          [null, null],
          [3_000, 17_500],
        ]) {
          const { rows } = await client.query<{ walked: number[]; plain: number[] }>(
            `SELECT ARRAY(SELECT w.number FROM tp_walk_memory('user_of_it', $1, $2, tp_query($1, $3, false), NULL, NULL, $4, $5, $6, $7) w
               ORDER BY w.number) AS walked,
             ARRAY(SELECT f.number FROM (
               SELECT m.number FROM memory_entries m WHERE m.words @@ tp_query($1, $3, false)
                 AND m.number > coalesce($4::bigint, 0) AND m.number < coalesce($5::bigint, 1000000)
               ORDER BY CASE WHEN $7 THEN m.number ELSE -m.number END LIMIT $6) f ORDER BY f.number) AS plain`,
            [AGENT, THREAD, words, above, below, wanted, isOldest],
          );
          expect(rows[0]?.walked, `${wanted} ${isOldest} ${above}`).toEqual(rows[0]?.plain);
        }
  },
);

test('what is measured is found by what the product would find it by', async () => {
  const { rows } = await client.query(
    `SELECT m.number FROM memory_entries m WHERE m.number <= $1 AND (m.number % 501 = 0 OR m.number IN (7, 77, 500))
       AND m.words <> tp_memory_words(m.participant_id, m.scope, m.scope_no, m.payload)`,
    [SEEDED],
  );
  expect(rows).toEqual([]);
});
