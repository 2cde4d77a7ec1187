import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database, Statement } from '../../src/storage/database.ts';
import { type Look, readLooks } from '../../src/timeline/look.ts';
import { type PageArguments, readPage } from '../../src/timeline/reads.ts';
import { createApi } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createWorld } from '../support/world.ts';

/** A thread of long messages, more of them together than a statement may sort in memory. */
const LONG = 200_000;
const COUNT = 40;
let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let console: pg.Client;
let look: Look;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  const { owner, userId, people } = await createWorld(api.services, 'long');
  const participantIds = [people.ada.id, people.nora.id];
  const { threadId } = await api.services.threads.open(owner, { participantIds });
  for (let index = 0; index < COUNT; index += 1) {
    const content = `${index} ${randomBytes((LONG * 3) / 4).toString('base64')}`;
    await api.services.timeline.post(owner, { threadId, as: people.ada.id, content });
  }
  const [answer] = await readLooks(db.database, [{ ownerId: userId, threadId, viewerId: people.nora.id }]);
  if (!answer) throw new Error('There is no such thread.');
  ({ look } = answer);
  console = new pg.Client({ connectionString: db.url });
  await console.connect();
});
afterAll(async () => {
  await console.end();
  await api.close();
  await db.drop();
});

interface Plan {
  readonly 'Temp Written Blocks': number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
}

/** The page, and what its statement reads and lays aside. */
const pageOf = async (args: PageArguments) => {
  const asked: { text: string; values: readonly unknown[] }[] = [];
  const query = <Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> => {
    asked.push({ text: statement.text, values });
    return db.database.query(statement, values);
  };
  const database: Database = { ...db.database, query };
  const { events, ...more } = await readPage(database, look, args);
  const [{ text, values } = { text: '', values: [] }] = asked;
  const { rows } = await console.query<{ 'QUERY PLAN': readonly [{ Plan: Plan }] }>(
    `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
    [...values],
  );
  const plan = rows[0]?.['QUERY PLAN'][0].Plan;
  if (plan === undefined) throw new Error('There is no plan.');
  return { seqs: events.map(({ seq }) => seq), ...more, plan };
};

test('a page of so many bytes reads what it shows, and not the texts that are too much', async () => {
  const end = look.end.seq;
  for (const [args, expected] of [
    [
      { last: 100, maxBytes: LONG / 2 },
      { seqs: [end], hasPreviousPage: true, hasNextPage: false },
    ],
    [
      { last: 100, maxBytes: 2.5 * LONG },
      { seqs: [end - 1, end], hasPreviousPage: true, hasNextPage: false },
    ],
    [
      { first: 3, maxBytes: 2.5 * LONG, types: ['MESSAGE'] },
      { seqs: [end - COUNT + 1, end - COUNT + 2], hasPreviousPage: false, hasNextPage: true },
    ],
    [
      { first: 3, maxBytes: LONG, types: ['RETRACTION'] },
      { seqs: [], hasPreviousPage: false, hasNextPage: false },
    ],
  ] as const) {
    const { plan, ...page } = await pageOf(args);
    expect(page).toEqual(expected);
    expect(plan['Temp Written Blocks']).toBe(0);
    // All texts together are a thousand blocks.
    expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(800);
  }
});
