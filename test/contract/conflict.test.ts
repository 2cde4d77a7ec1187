import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DomainError } from '../../src/shared/errors.ts';
import { domainErrorOf, isForeignKeyViolation, isUniqueViolation } from '../../src/storage/conflict.ts';
import { type Database, statement } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openInMemory } from '../../src/storage/pglite.ts';
import { createTestDatabase } from '../support/database.ts';

const engines: Record<string, () => Promise<{ database: Database; end: () => Promise<void> }>> = {
  Postgres: async () => {
    const { database, drop } = await createTestDatabase();
    return { database, end: drop };
  },
  PGlite: async () => {
    const database = await openInMemory();
    await migrate(database);
    return { database, end: () => database.close() };
  },
};

const RAISING = `
  CREATE FUNCTION raise_stale() RETURNS text LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'STALE_VIEW' USING ERRCODE = 'TP001', DETAIL = '{"message": "There is more.", "unseen": 3}';
  END $$;
  CREATE FUNCTION raise_unknown() RETURNS text LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'NO_SUCH_CODE' USING ERRCODE = 'TP001';
  END $$;
  CREATE TABLE pairs (a int PRIMARY KEY, b int REFERENCES pairs (a) DEFERRABLE INITIALLY DEFERRED);
`;

describe.each(Object.entries(engines))('on %s', (_name, open) => {
  let database: Database;
  let end: () => Promise<void>;
  beforeAll(async () => {
    ({ database, end } = await open());
    await database.script(RAISING);
  });
  afterAll(() => end());

  const failure = async (work: () => Promise<unknown>): Promise<unknown> => {
    try {
      await work();
    } catch (error) {
      return error;
    }
    throw new Error('It did not fail.');
  };
  const run = (text: string, values: readonly unknown[] = []) =>
    database.query(statement(`conflict_${text.length}_${values.length}`, text), values);

  test('values arrive as the interface says', async () => {
    expect(
      await run(`SELECT 9007199254740993::int8 AS big, '2026-11-30 12:00:00.123456+02'::timestamptz AS at,
        '{"a":[1]}'::jsonb AS json, ARRAY['x','y'] AS list, ARRAY[1::int8] AS bigs, 1.50::numeric AS exact,
        current_setting('TimeZone') AS zone, NULL AS nothing`),
    ).toEqual([
      {
        big: '9007199254740993',
        at: '2026-11-30T10:00:00.123456Z',
        json: { a: [1] },
        list: ['x', 'y'],
        bigs: ['1'],
        exact: '1.50',
        zone: 'UTC',
        nothing: null,
      },
    ]);
  });

  test('values are taken as the interface says', async () => {
    const at = new Date('2026-11-30T10:00:00.123Z');
    expect(
      await run(
        'SELECT $1::timestamptz AS at, $2::jsonb AS json, $3::text[] AS list, $4::int8 AS big, $5::text AS nothing',
        [at, '["a"]', ['x', 'a "b", {c}'], '9007199254740993', null],
      ),
    ).toEqual([
      {
        at: '2026-11-30T10:00:00.123Z',
        json: ['a'],
        list: ['x', 'a "b", {c}'],
        big: '9007199254740993',
        nothing: null,
      },
    ]);
  });

  test('what our functions raise becomes the error it names, through a statement, Prisma and a transaction', async () => {
    const expected = new DomainError('STALE_VIEW', 'There is more.', { unseen: 3 });
    for (const work of [
      () => run('SELECT raise_stale()'),
      () => database.prisma.$queryRawUnsafe('SELECT raise_stale()'),
      () => database.prisma.$transaction(async (tx) => tx.$queryRawUnsafe('SELECT raise_stale()')),
    ]) {
      const error = await failure(work);
      expect(error).toBeInstanceOf(DomainError);
      expect(error).toMatchObject({ code: expected.code, message: expected.message, facts: expected.facts });
    }
    expect(await failure(() => run('SELECT raise_unknown()'))).toMatchObject({ code: 'INTERNAL' });
  });

  test('a row that is there already is told apart by its constraint', async () => {
    const user = { id: 'user_1', name: 'x' };
    await database.prisma.user.create({ data: user });
    for (const work of [
      () => database.prisma.user.create({ data: user }),
      () => database.prisma.$transaction((tx) => tx.user.create({ data: user })),
      () => run('INSERT INTO users (id, name) VALUES ($1, $2)', [user.id, user.name]),
    ]) {
      const error = await failure(work);
      expect(isUniqueViolation(error)).toBe(true);
      expect(isUniqueViolation(error, 'users_pkey')).toBe(true);
      expect(isUniqueViolation(error, 'users_idempotency_key_key')).toBe(false);
      expect(domainErrorOf(error)).toBeUndefined();
    }
  });

  test('a missing row is a foreign key violation, and a deferred one fails at commit', async () => {
    const data = {
      id: 'part_1',
      ownerId: 'user_none',
      kind: 'HUMAN',
      handle: 'x',
      displayName: 'x',
    } as const;
    expect(isForeignKeyViolation(await failure(() => database.prisma.participant.create({ data })))).toBe(
      true,
    );
    const atCommit = () =>
      database.prisma.$transaction(async (tx) => {
        await tx.$executeRawUnsafe('INSERT INTO pairs VALUES (1, 2)');
      });
    expect(isForeignKeyViolation(await failure(atCommit))).toBe(true);
    expect(await run('SELECT count(*)::int AS pairs FROM pairs')).toEqual([{ pairs: 0 }]);
  });

  test('a transaction that throws leaves nothing, and the next one begins afresh', async () => {
    const thrown = await failure(() =>
      database.prisma.$transaction(async (tx) => {
        await tx.user.create({ data: { id: 'user_rolled_back', name: 'x' } });
        throw new DomainError('CONFLICT', 'No.');
      }),
    );
    expect(thrown).toMatchObject({ code: 'CONFLICT' });
    await database.prisma.$transaction(async (tx) => {
      expect(await tx.user.count({ where: { id: 'user_rolled_back' } })).toBe(0);
    });
  });

  test('text that cannot be stored is bad input', async () => {
    for (const work of [
      () => database.prisma.user.create({ data: { id: 'user_nul', name: 'a\u0000b' } }),
      () => run('INSERT INTO users (id, name) VALUES ($1, $2)', ['user_nul', 'a\u0000b']),
      () => run('SELECT $1::jsonb', ['"\\u0000"']),
    ])
      expect(await failure(work)).toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  test('a fault of ours stays what it is', async () => {
    const error = await failure(() => run('SELECT nonsense'));
    expect(error).not.toBeInstanceOf(DomainError);
    expect(domainErrorOf(error)).toBeUndefined();
  });
});
