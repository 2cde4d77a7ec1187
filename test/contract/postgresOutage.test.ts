import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Database, statement } from '../../src/storage/database.ts';
import { openPostgres } from '../../src/storage/postgres.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { startProxy, type Proxy as TcpLine } from '../support/proxy.ts';

const ONE = statement<{ one: number }>('one', 'SELECT 1 AS one');
const sleep = (seconds: number) => statement<object>(`sleep_${seconds}`, `SELECT pg_sleep(${seconds})`);

let server: PostgresServer;
let wire: TcpLine;
let database: Database;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());
beforeEach(async () => {
  wire = await startProxy(server.socketFile);
  const url = new URL(server.url);
  url.searchParams.set('host', wire.folder);
  database = await openPostgres(url.href, { poolSize: 4 });
  await database.query(ONE, []);
});
afterEach(async () => {
  await database.close();
  await wire[Symbol.asyncDispose]();
});

/** What became of each, and after how many milliseconds the last one was answered. */
const outcomes = async (works: readonly (() => Promise<unknown>)[]) => {
  const began = performance.now();
  const settled = await Promise.allSettled(works.map((work) => work()));
  const codes = settled.map((result) => (result.status === 'rejected' ? result.reason.code : 'OK'));
  return { codes: [...new Set(codes)], ms: performance.now() - began };
};

/** More than the pool has connections, by every way. */
const everyWay = (): (() => Promise<unknown>)[] => [
  ...Array.from({ length: 6 }, () => () => database.query(ONE, [])),
  () => database.prisma.$queryRawUnsafe('SELECT 1'),
  () => database.prisma.$executeRawUnsafe('SELECT 1'),
];

const recovers = async (): Promise<void> => {
  await expect.poll(() => database.query(ONE, []).catch(() => []), { timeout: 10_000 }).toEqual([{ one: 1 }]);
};

test('a link that goes dead under commands, and stays so, is given up within 2 s; then it goes on', async () => {
  const [sleeping] = [outcomes([() => database.query(sleep(30), [])])];
  wire.blackHole();
  const { codes, ms } = await outcomes(everyWay());
  expect(codes).toEqual(['UNAVAILABLE']);
  expect(ms).toBeLessThan(2_500);
  expect((await sleeping).codes).toEqual(['UNAVAILABLE']);
  wire.thaw();
  await recovers();
});

test('connections that died silently while new ones work cost their commands, nothing else', async () => {
  wire.freeze();
  const { codes, ms } = await outcomes([() => database.query(ONE, [])]);
  expect(codes).toEqual(['UNAVAILABLE']);
  expect(ms).toBeLessThan(2_500);
  expect(await database.query(ONE, [])).toEqual([{ one: 1 }]);
});

test('a slow command and a wait for a lock are not taken for a lost server', async () => {
  const { codes, ms } = await outcomes([() => database.query(sleep(3), [])]);
  expect(codes).toEqual(['OK']);
  expect(ms).toBeGreaterThan(2_900);
});

test('a statement beyond the time-out is cancelled', async () => {
  const impatient = await openPostgres(server.url, { statementTimeoutMs: 300 });
  const { codes } = await outcomes([() => impatient.query(sleep(30), [])]);
  expect(codes).toEqual(['UNAVAILABLE']);
  await impatient.close();
});

test('a server that is stopped in all its processes is given up within 2 s, and used again when it goes on', async () => {
  server.pause();
  const { codes, ms } = await outcomes(everyWay());
  server.resume();
  expect(codes).toEqual(['UNAVAILABLE']);
  expect(ms).toBeLessThan(2_500);
  await recovers();
});

test('a server that is killed fails its commands at once, idle connections do no harm, and it is found again', async () => {
  const sleeping = outcomes([() => database.query(sleep(30), [])]);
  await expect
    .poll(() =>
      database.query(
        statement<{ busy: number }>(
          'busy',
          "SELECT count(*)::int AS busy FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
        ),
        [],
      ),
    )
    .toEqual([{ busy: 1 }]);
  await server.kill9();
  expect((await sleeping).codes).toEqual(['UNAVAILABLE']);
  const { codes, ms } = await outcomes(everyWay());
  expect(codes).toEqual(['UNAVAILABLE']);
  expect(ms).toBeLessThan(2_500);
  await server.restart();
  await recovers();
});

test('an interactive transaction over a dead link ends as unavailable', async () => {
  const { codes, ms } = await outcomes([
    () =>
      database.prisma.$transaction(async (tx) => {
        await tx.$queryRawUnsafe('SELECT 1');
        wire.blackHole();
        await tx.$queryRawUnsafe('SELECT 1');
      }),
  ]);
  expect(codes).toEqual(['UNAVAILABLE']);
  expect(ms).toBeLessThan(4_000);
  wire.thaw();
  await recovers();
});
