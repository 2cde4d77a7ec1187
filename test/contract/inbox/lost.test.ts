import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/storage/database.ts';
import { openPostgres } from '../../../src/storage/postgres.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type PostgresProxy, startPostgresProxy } from '../../support/postgresProxy.ts';
import { until } from '../../support/until.ts';
import { createInboxWorld, followInbox, type InboxWorld } from './world.ts';

/** Leases are renewed every two seconds. */
const LEASE_SECONDS = 6;

let db: TestDatabase;
let proxy: PostgresProxy;
let database: Database;
let api: ReturnType<typeof createApi>;
beforeAll(async () => {
  db = await createTestDatabase();
  proxy = await startPostgresProxy(db.url);
  database = await openPostgres(proxy.url, { poolSize: 4 });
  api = createApi(database, { leaseSeconds: LEASE_SECONDS });
});
afterAll(async () => {
  await api.close();
  await database.close();
  await proxy[Symbol.asyncDispose]();
  await db.drop();
});

const post = (world: InboxWorld, threadId: string, content: string) =>
  api.services.timeline.post(world.owner, { threadId, as: world.ids.ann ?? '', content });

/** What is in flight in a thread: how many seconds it has left, and which attempt it is. */
const inFlight = async (world: InboxWorld, threadId: string): Promise<{ left: number; attempt: number }> => {
  const [row] = await db.database.query<{ left: number; attempt: number }>(
    {
      name: 'test_in_flight',
      text: `SELECT coalesce(extract(epoch FROM leased_until - clock_timestamp()), 0)::float8 AS left, attempt
        FROM inbox_threads WHERE thread_id = $1 AND participant_id = $2`,
    },
    [threadId, world.ids.bot],
  );
  return row ?? { left: 0, attempt: 0 };
};

/** Answers of takes are lost, until something of this thread was taken. */
const losesTakes = async (world: InboxWorld, threadId: string): Promise<void> => {
  proxy.loses = (statement) => statement === 'take_inbox';
  await post(world, threadId, 'lost');
  await until(async () => (await inFlight(world, threadId)).attempt === 1);
  proxy.loses = null;
};

describe('a message whose delivery was lost on its way from the database', () => {
  test('is given back and delivered again, as the first attempt that it is', async () => {
    const world = await createInboxWorld(api.services);
    const [threadId = ''] = world.threadIds;
    await using stream = await followInbox(api, world);
    await until(() => proxy.ran.includes('take_inbox'));
    await losesTakes(world, threadId);
    await until(() => stream.contents('MESSAGE').length > 0);
    expect(stream.given.filter(({ channel }) => channel === 'MESSAGE')).toMatchObject([
      { attempt: 1, events: [{ content: 'lost' }] },
    ]);
  });

  test('is given back once, however often that is asked for', async () => {
    const world = await createInboxWorld(api.services);
    const [threadId = ''] = world.threadIds;
    await using stream = await followInbox(api, world);
    proxy.loses = (statement) => statement === 'take_inbox';
    await post(world, threadId, 'lost');
    await until(async () => (await inFlight(world, threadId)).attempt === 1);
    proxy.loses = (statement) => /^(take_inbox|inbox_give_back)$/.test(statement);
    const asked = (): number => proxy.ran.filter((statement) => statement === 'inbox_give_back').length;
    const before = asked();
    await until(() => asked() >= before + 3);
    proxy.loses = null;
    await until(() => stream.contents('MESSAGE').length > 0);
    expect(stream.given.filter(({ channel }) => channel === 'MESSAGE')).toMatchObject([{ attempt: 1 }]);
  }, 30_000);

  test('is not kept from others by the stream that never had it, where it cannot be given back', async () => {
    const world = await createInboxWorld(api.services);
    const [first = '', , second = ''] = world.threadIds;
    await using stream = await followInbox(api, world);
    await post(world, first, 'held');
    await until(() => stream.contents('MESSAGE').length === 1);
    // Once it is taken it cannot be given back.
    const refuse = async (): Promise<void> => {
      if ((await inFlight(world, second)).attempt > 0) throw new Error('Cut.');
    };
    proxy.before = (statement) => (statement === 'inbox_give_back' ? refuse() : undefined);
    await losesTakes(world, second);
    await until(async () => (await inFlight(world, second)).left <= 0);
    // What the stream has in hand was renewed all the while.
    expect((await inFlight(world, first)).left).toBeGreaterThan(0);
    proxy.before = null;
    await until(() => stream.contents('MESSAGE').length === 2);
    expect(stream.contents('MESSAGE')).toEqual(['held', 'lost']);
  }, 30_000);
});

describe('what a stream has in hand', () => {
  const isRenewal = (statement: string): boolean => statement === 'inbox_renew';
  const renewals = (): number => proxy.ran.filter(isRenewal).length;
  afterEach(() => {
    proxy.before = null;
  });

  test('is renewed again once a lease that was given back is taken up again', async () => {
    const world = await createInboxWorld(api.services);
    const [threadId = '', , other = ''] = world.threadIds;
    await using stream = await followInbox(api, world);
    await post(world, threadId, 'kept');
    await until(() => stream.contents('MESSAGE').length === 1);
    await post(world, other, 'beside');
    await until(() => stream.contents('MESSAGE').length === 2);
    const extend = (seconds: number) => {
      const deliveryId = stream.given.find(({ channel }) => channel === 'MESSAGE')?.deliveryId ?? '';
      return api.services.inbox.extendLease(world.owner, { as: world.ids.bot ?? '', deliveryId, seconds });
    };
    // Nobody takes it meanwhile.
    proxy.before = (statement) =>
      statement === 'take_inbox' ? Promise.reject(new Error('Cut.')) : undefined;
    await extend(0);
    const before = renewals();
    await until(() => renewals() >= before + 2);
    await extend(LEASE_SECONDS / 2);
    proxy.before = null;
    await until(async () => (await inFlight(world, threadId)).left > LEASE_SECONDS / 2);
    expect(stream.contents('MESSAGE')).toEqual(['kept', 'beside']);
  }, 30_000);

  test('is renewed as soon as it can be, where it could not be three times: no lease runs out for that', async () => {
    const leaseSeconds = 9;
    const other = createApi(database, { leaseSeconds });
    try {
      const world = await createInboxWorld(other.services);
      const [threadId = ''] = world.threadIds;
      await using stream = await followInbox(other, world);
      await post(world, threadId, 'kept');
      await until(() => stream.contents('MESSAGE').length === 1);
      const before = renewals();
      await until(() => renewals() > before);
      let refused = 0;
      proxy.before = (statement) => {
        if (!isRenewal(statement) || refused === 3) return undefined;
        refused += 1;
        return Promise.reject(new Error('Cut.'));
      };
      await until(() => refused === 3);
      await until(async () => (await inFlight(world, threadId)).left > leaseSeconds / 2);
      expect(await inFlight(world, threadId)).toMatchObject({ attempt: 1 });
      expect(stream.contents('MESSAGE')).toEqual(['kept']);
    } finally {
      await other.close();
    }
  }, 60_000);
});

describe('a pull that waits', () => {
  const NEVER = new AbortController().signal;
  const takes = (): number => proxy.ran.filter((statement) => statement === 'take_inbox').length;
  /** By a token of its own; resolves once it has looked for the first time. */
  const pull = async (
    { owner, ids }: InboxWorld,
    {
      waitSeconds = 0,
      signal = NEVER,
      ...given
    }: { waitSeconds?: number; signal?: AbortSignal; expiresInSeconds?: number } = {},
  ) => {
    const participantId = ids.bot ?? '';
    const { secret, credential } = await api.services.credentials.createParticipantToken(owner, {
      participantId,
      ...given,
    });
    const actor = await api.authentication.authenticate({ authorization: `Bearer ${secret}` });
    const before = takes();
    const taken = api.services.inbox.take(actor, { waitSeconds, max: 10 }, signal);
    const outcome = taken.catch((error: unknown) => error);
    await until(() => takes() > before);
    return { credentialId: credential.id, outcome };
  };
  /** Called once, just before the next that is taken. */
  const beforeNextTake = (work: () => Promise<void>): void => {
    proxy.before = (statement) => {
      if (statement !== 'take_inbox') return undefined;
      proxy.before = null;
      return work();
    };
  };

  test('has taken nothing if its credential ended meanwhile: a notice as well as a message is there for the next', async () => {
    const world = await createInboxWorld(api.services);
    const [threadId = '', , other = ''] = world.threadIds;
    const { owner, ids } = world;
    const { credentialId, outcome } = await pull(world, { waitSeconds: 20 });
    beforeNextTake(async () => {
      await post(world, other, 'late');
      await api.services.credentials.revoke(owner, { credentialId });
    });
    await api.services.threads.changeState(owner, { threadId, participantId: ids.bot ?? '' }, 'REMOVED');
    expect(await outcome).toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(await (await pull(world)).outcome).toMatchObject({
      given: [{ kind: 'REMOVED' }, { attempt: 1, events: [{ content: 'late' }] }],
    });
  });

  test('has taken nothing if its client went away meanwhile, and so has one that does not wait', async () => {
    for (const waitSeconds of [20, 0]) {
      const world = await createInboxWorld(api.services);
      const [threadId = '', , other = ''] = world.threadIds;
      const { owner, ids } = world;
      const gone = new AbortController();
      const remove = () =>
        api.services.threads.changeState(owner, { threadId, participantId: ids.bot ?? '' }, 'REMOVED');
      const leave = async (): Promise<void> => {
        await post(world, other, 'for nobody');
        gone.abort();
      };
      if (waitSeconds === 0) {
        await remove();
        beforeNextTake(leave);
      }
      const { outcome } = await pull(world, { waitSeconds, signal: gone.signal });
      if (waitSeconds > 0) {
        beforeNextTake(leave);
        await remove();
      }
      expect(await outcome).toMatchObject({ given: [] });
      expect(await (await pull(world)).outcome).toMatchObject({
        given: [{ kind: 'REMOVED' }, { attempt: 1, events: [{ content: 'for nobody' }] }],
      });
    }
  });

  test('ends within a second of its credential, wherever that is revoked, or as it expires', async () => {
    const world = await createInboxWorld(api.services);
    const elsewhere = createApi(db.database);
    try {
      const { credentialId, outcome } = await pull(world, { waitSeconds: 30 });
      await elsewhere.services.credentials.revoke(world.owner, { credentialId });
      const revokedAt = performance.now();
      expect(await outcome).toMatchObject({ code: 'UNAUTHENTICATED' });
      expect(performance.now() - revokedAt).toBeLessThan(1_000);

      const begunAt = performance.now();
      const expiring = await pull(world, { waitSeconds: 30, expiresInSeconds: 2 });
      expect(await expiring.outcome).toMatchObject({ code: 'UNAUTHENTICATED' });
      expect(performance.now() - begunAt).toBeLessThan(3_500);
    } finally {
      await elsewhere.close();
    }
  });
});
