import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../src/shared/ids.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openInMemory } from '../../src/storage/pglite.ts';
import { analyseGrown } from '../../src/storage/statistics.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

// Plans are made for a few rows, while a database is new, and kept until somebody analyses it. What is asked of one event must not
// read its whole thread by them for long, also in a thread that is younger than what is known of its table.

const MESSAGES = 600;
const OWNER = newId('User');
const [ADA, SCOUT, REX] = [newId('Participant'), newId('Participant'), newId('Participant')];

let db: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  db = await createTestDatabase();
  client = new pg.Client({ connectionString: db.url });
  await client.connect();
  for (const table of ['events', 'retracted_messages', 'message_bodies', 'visibility_windows'])
    await client.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
  await client.query(`INSERT INTO users (id, name) VALUES ($1, 'Tenant')`, [OWNER]);
  for (const [id, kind] of [
    [ADA, 'HUMAN'],
    [SCOUT, 'AGENT'],
    [REX, 'AGENT'],
  ])
    await client.query(
      'INSERT INTO participants (id, owner_id, kind, handle, display_name) VALUES ($1, $2, $3, $1, $1)',
      [id, OWNER, kind],
    );
});
afterAll(async () => {
  await client.end();
  await db.drop();
});

/** How many events this session has read since it last told, by whatever index. */
const readSoFar = async (): Promise<number> => {
  const { rows } = await client.query<{ read: string }>(
    `SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0) AS read FROM pg_stat_xact_user_tables WHERE relname = 'events'`,
  );
  return Number(rows[0]?.read);
};

/** Events that a statement reads. */
const eventsRead = async (name: string, text: string, values: readonly unknown[]): Promise<number> => {
  // Within a transaction nothing is told.
  await client.query('BEGIN');
  const before = await readSoFar();
  await client.query({ name, text, values: [...values] });
  const after = await readSoFar();
  await client.query('COMMIT');
  return after - before;
};

const append = (threadId: string): Promise<number> =>
  eventsRead(
    'append',
    `SELECT append_message($1, $2, $3, $4, 'x', NULL, NULL, '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, 0)`,
    [OWNER, threadId, ADA, newId('Event')],
  );
const one = (threadId: string, seq: number): Promise<number> =>
  eventsRead(
    'one',
    'SELECT r.id FROM timeline_rows r WHERE r.owner_id = $1 AND r.thread_id = $2 AND r.seq = $3',
    [OWNER, threadId, seq],
  );
const pending = (threadId: string, from: number): Promise<number> =>
  eventsRead('pending', 'SELECT f.seq FROM tp_first_pending($1, $2, $3, $4, true) f', [
    OWNER,
    threadId,
    SCOUT,
    from,
  ]);

const openThread = async (participants: readonly string[]): Promise<string> => {
  const threadId = newId('Thread');
  await client.query('SELECT open_thread($1, $2, $3, $4, NULL, NULL, $5, NULL, NULL)', [
    OWNER,
    participants,
    threadId,
    newId('Event'),
    '',
  ]);
  return threadId;
};

const expectFew = async (threadId: string, appended: number): Promise<void> => {
  expect(await one(threadId, MESSAGES)).toBe(1);
  expect(await pending(threadId, MESSAGES)).toBeLessThanOrEqual(3);
  expect(await append(threadId)).toBeLessThanOrEqual(appended + 1);
};

test('a table that has grown is analysed, once, and then one event is read alone', async () => {
  await client.query('SET plan_cache_mode = force_generic_plan');
  const threadId = await openThread([ADA, SCOUT]);
  const appended = await append(threadId);
  await one(threadId, 2);
  await pending(threadId, 2);
  for (let count = 1; count < MESSAGES; count++) await append(threadId);

  expect(await analyseGrown(db.database)).toContain('events');
  expect(await analyseGrown(db.database)).toEqual([]);
  await expectFew(threadId, appended);
});

test('in a thread that is younger than that one event is read alone, too', async () => {
  await client.query('SET plan_cache_mode = force_custom_plan');
  const threadId = await openThread([ADA, SCOUT, REX]);
  const appended = await append(threadId);
  for (let count = 1; count < MESSAGES; count++) await append(threadId);
  await expectFew(threadId, appended);
});

test('an embedded database is analysed by the same', async () => {
  const database = await openInMemory();
  try {
    await migrate(database);
    await database.script(
      `INSERT INTO users (id, name) SELECT 'user_' || i, repeat('x', 200) FROM generate_series(1, 500) i`,
    );
    expect(await analyseGrown(database)).toEqual(['users']);
    expect(await analyseGrown(database)).toEqual([]);
  } finally {
    await database.close();
  }
});
