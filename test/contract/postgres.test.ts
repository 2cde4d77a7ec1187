import { afterAll, beforeAll, expect, test } from 'vitest';
import { statement } from '../../src/storage/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let store: TestDatabase;
beforeAll(async () => {
  store = await createTestDatabase();
});
afterAll(() => store.drop());

test('values arrive as the interface says', async () => {
  const rows = await store.database.query(
    statement<Record<string, unknown>>(
      'values',
      `SELECT 9007199254740993::int8 AS big, '2026-11-30 12:00:00.123456+02'::timestamptz AS at, '{"a":[1]}'::jsonb AS json,
        ARRAY['x','y'] AS list, ARRAY[1::int8] AS bigs, 1.50::numeric AS exact, current_setting('TimeZone') AS zone`,
    ),
    [],
  );
  expect(rows).toEqual([
    {
      big: '9007199254740993',
      at: '2026-11-30T10:00:00.123456Z',
      json: { a: [1] },
      list: ['x', 'y'],
      bigs: ['1'],
      exact: '1.50',
      zone: 'UTC',
    },
  ]);
});
