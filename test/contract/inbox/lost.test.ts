import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

describe('what a waiting pull took as its credential ended', () => {
  test('is there for the next: a notice as well as a message', async () => {
    const world = await createInboxWorld(api.services);
    const [threadId = '', , other = ''] = world.threadIds;
    const { owner, ids } = world;
    const newPull = async (waitSeconds: number) => {
      const participantId = ids.bot ?? '';
      const { secret, credential } = await api.services.credentials.createParticipantToken(owner, {
        participantId,
      });
      const actor = await api.authentication.authenticate({ authorization: `Bearer ${secret}` });
      const taken = api.services.inbox.take(actor, { waitSeconds, max: 10 }, new AbortController().signal);
      return { credentialId: credential.id, taken };
    };
    const takes = (): number => proxy.ran.filter((statement) => statement === 'take_inbox').length;
    const before = takes();
    const { credentialId, taken } = await newPull(20);
    const outcome = taken.catch((error: unknown) => error);
    await until(() => takes() > before);
    proxy.before = (statement) => {
      if (statement !== 'take_inbox') return undefined;
      proxy.before = null;
      return (async () => {
        await post(world, other, 'late');
        await api.services.credentials.revoke(owner, { credentialId });
      })();
    };
    await api.services.threads.changeState(owner, { threadId, participantId: ids.bot ?? '' }, 'REMOVED');
    expect(await outcome).toMatchObject({ code: 'UNAUTHENTICATED' });
    const { given } = await (await newPull(0)).taken;
    expect(given).toMatchObject([{ kind: 'REMOVED' }, { attempt: 1, events: [{ content: 'late' }] }]);
  });
});
