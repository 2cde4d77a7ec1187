import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createExpiring } from '../../src/runs/expiring.ts';
import { createWatch } from '../../src/runs/watching.ts';
import { log } from '../../src/shared/log.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { hear } from '../support/heard.ts';
import { createIdentity, type Identity, seedTenant } from '../support/identity.ts';

let db: TestDatabase;
let identity: Identity;
let tenant: Awaited<ReturnType<typeof seedTenant>>;

beforeAll(async () => {
  db = await createTestDatabase();
  identity = createIdentity(db.database);
  tenant = await seedTenant(identity);
});
afterAll(async () => {
  await identity.close();
  await db.drop();
});

/** What one process does, without anybody asking it anything. */
const startProcess = () => {
  const heard = hear(db.database);
  const ended: string[] = [];
  const expiring = createExpiring({ database: heard.database, log, onEnded: (ids) => ended.push(...ids) });
  return { expiring, ended, times: (name: string) => heard.ran.filter((ran) => ran === name).length };
};

const openRun = (id: string, seconds: string): Promise<unknown> =>
  db.database.query(
    {
      name: `open ${id}`,
      text: `INSERT INTO runs (id, owner_id, participant_id, root_run_id, access, max_tool_calls, expires_at)
        VALUES ($1, $2, $3, $1, 'WRITE', 9, clock_timestamp() + $4::interval)`,
    },
    [id, tenant.user.id, tenant.agent.id, `${seconds} s`],
  );

const lateMs = async (): Promise<number[]> =>
  (
    await db.database.query<{ late: number }>(
      {
        name: 'late',
        text: `SELECT (extract(epoch FROM finished_at - expires_at) * 1000)::float8 AS late FROM runs
          WHERE status = 'EXPIRED'`,
      },
      [],
    )
  ).map(({ late }) => late);

test('deadlines that nobody speaks of end their runs once, in time, and are waited for without asking', async () => {
  const processes = [startProcess(), startProcess()];
  await Promise.all([openRun('run_a', '1'), openRun('run_b', '1.4'), openRun('run_c', '2.6')]);
  const ended = (): string[] => processes.flatMap((process) => process.ended);
  await vi.waitUntil(() => ended().length >= 3, { timeout: 20_000, interval: 20 });
  for (const { expiring } of processes) await expiring.close();
  expect(ended().sort()).toEqual(['run_a', 'run_b', 'run_c']);
  expect(await lateMs()).toHaveLength(3);
  for (const late of await lateMs()) {
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(1_000);
  }
  for (const { times } of processes) expect(times('expire_runs')).toBeLessThanOrEqual(3);
});

test('whoever is told of the next deadline asks nothing itself', async () => {
  const told = startProcess();
  const alone = startProcess();
  await vi.waitUntil(() => told.times('runs_due') === 1, { timeout: 10_000, interval: 5 });
  const telling = setInterval(() => told.expiring.heard(null), 100);
  await vi.waitUntil(() => alone.times('runs_due') >= 3, { timeout: 20_000, interval: 20 });
  expect(told.times('runs_due')).toBe(1);
  clearInterval(telling);

  await openRun('run_d', '-0.1');
  told.expiring.heard(-100);
  await vi.waitUntil(() => told.ended.length + alone.ended.length > 0, { timeout: 10_000, interval: 5 });
  await told.expiring.close();
  await alone.expiring.close();
  expect([...told.ended, ...alone.ended]).toEqual(['run_d']);
});

test('a run is watched for whoever still follows it, however often another one left', async () => {
  const watch = createWatch(db.database);
  await openRun('run_e', '600');
  const versions: number[] = [];
  const leave = watch(tenant.user.id, 'run_e', () => undefined);
  leave();
  const stay = watch(tenant.user.id, 'run_e', (version) => versions.push(version));
  const stranger = watch('user_of_another', 'run_e', () => versions.push(-1));
  leave();
  await vi.waitUntil(() => versions.length > 1, { timeout: 10_000, interval: 20 });
  expect(new Set(versions)).toEqual(new Set([versions[0]]));
  expect(versions[0]).toBeGreaterThanOrEqual(0);
  stay();
  stranger();
});
