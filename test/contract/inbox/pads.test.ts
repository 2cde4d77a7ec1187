import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import type { InboxDelivery } from '../../../src/inbox/deliveries.ts';
import { openPostgres } from '../../../src/storage/postgres.ts';
import { openRedis } from '../../../src/storage/redis.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startPostgresProxy } from '../../support/postgresProxy.ts';
import { LOSES_NOTHING, startRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { codeOf, createInboxWorld } from './world.ts';

/** An agent’s stream at a process whose stores a test takes away, and what it is told of scratchpads. */
const observing = async (redisUrl: string, digestSeconds = 0.1) => {
  const db = await createTestDatabase();
  const proxy = await startPostgresProxy(db.url);
  const database = await openPostgres(proxy.url, { poolSize: 4 });
  // As the product opens it: what finds Redis away fails at once.
  const redis = await openRedis(redisUrl);
  if (!(redis.commands instanceof Redis)) throw new Error('One server was expected.');
  const api = createApi(database, { digestSeconds, redisUrl, commands: redis.commands });
  const { services, authentication } = api;
  const world = await createInboxWorld(services);
  const gone = new AbortController();
  const given: InboxDelivery[] = [];
  let over: Promise<void> = Promise.resolve();
  const token = await services.credentials.createParticipantToken(world.owner, {
    participantId: world.ids.bot ?? '',
  });
  return {
    ...world,
    db,
    proxy,
    services,
    ann: world.ids.ann ?? '',
    bob: world.ids.bob ?? '',
    entries: (): string[] =>
      given.flatMap(({ changes }) =>
        changes.flatMap(({ change }) => (change?.kind === 'ENTRY' ? [change.entry.content] : [])),
      ),
    events: (): string[] => given.flatMap(({ events }) => events.map(({ type }) => type)),
    contents: (): string[] =>
      given.flatMap(({ changes }) =>
        changes.flatMap(({ change }) => (change?.kind === 'CONTENT' ? [change.content.text] : [])),
      ),
    looks: (): number => proxy.ran.filter((statement) => statement === 'inbox_pads').length,
    open: async (secret = token.secret): Promise<void> => {
      const session = await authentication.openSession({ authorization: `Bearer ${secret}` });
      const following = await services.followInbox(session, {}, gone.signal);
      over = (async () => {
        for await (const delivery of following) given.push(delivery);
        session.close();
      })();
    },
    /** Follows a scratchpad from now on until it is told of this entry. */
    read: async (scratchpadId: string, content: string): Promise<{ readonly done: Promise<void> }> => {
      const session = await authentication.openSession({ authorization: `Bearer ${token.secret}` });
      const following = await services.followScratchpad(session, { scratchpadId }, gone.signal);
      const read = async (): Promise<void> => {
        for await (const { change } of following)
          if (change?.kind === 'ENTRY' && change.entry.content === content) break;
        session.close();
      };
      return { done: read() };
    },
    makePad: async (threadId: string): Promise<string> =>
      (await services.scratchpads.create(world.owner, { threadId })).pad.scratchpadId,
    append: (scratchpadId: string, as: string, content: string) =>
      services.scratchpadWriting.append(world.owner, { scratchpadId, as, content }),
    [Symbol.asyncDispose]: async (): Promise<void> => {
      proxy.before = null;
      gone.abort();
      await over;
      await api.close();
      await redis.close();
      await database.close();
      await proxy[Symbol.asyncDispose]();
      await db.drop();
    },
  };
};

/** Until a write is older than clocks may differ. */
const longer = (written = Date.now()): Promise<void> => until(() => Date.now() > written + 600);

test('scratchpads are observed although the database failed when they were looked for', async () => {
  await using agent = await observing(inject('redisUrl'));
  const { db, proxy, threadIds } = agent;
  const [one = '', other = ''] = threadIds;
  const pad = await agent.makePad(one);
  await agent.append(pad, agent.ann, 'before the stream');
  await longer();
  /** When all connections are to be lost once more: as they are looked for, and not before this. */
  let fails: Promise<void> | null = Promise.resolve();
  proxy.before = async (statement) => {
    if (statement !== 'inbox_pads' || fails === null) return;
    const due = fails;
    fails = null;
    await due;
    await db.database.query(
      {
        name: '',
        text: `SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a
          WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()`,
      },
      [],
    );
  };
  await agent.open();
  await until(() => agent.looks() >= 2);
  await until(async () => {
    await codeOf(agent.append(pad, agent.ann, 'a finding'));
    return agent.entries().includes('a finding');
  }, 50);
  // The same of one that is made meanwhile.
  let go = (): void => undefined;
  fails = new Promise((resolve) => {
    go = resolve;
  });
  const late = await agent.makePad(other);
  go();
  await until(async () => (await codeOf(agent.append(late, agent.bob, 'first'))) === 'OK', 50);
  await until(() => agent.entries().includes('first'));
  expect(fails).toBe(null);
  expect(agent.entries()).not.toContain('before the stream');
}, 30_000);

test('scratchpads are observed from the beginning of the stream on, although Redis was away then', async () => {
  const redis = await startRedis(LOSES_NOTHING);
  {
    await using agent = await observing(redis.url);
    const [one = '', other = ''] = agent.threadIds;
    const pad = await agent.makePad(one);
    await agent.append(pad, agent.ann, 'before the stream');
    await longer();
    await redis.kill9();
    await agent.open();
    // It could not be followed, and is looked for again.
    await until(() => agent.looks() >= 2);
    // Nobody is told of this one.
    const late = await agent.makePad(other);
    await redis.restart();
    await until(async () => (await codeOf(agent.append(pad, agent.ann, 'a finding'))) === 'OK', 50);
    await until(async () => (await codeOf(agent.append(late, agent.bob, 'first'))) === 'OK', 50);
    await until(() => agent.entries().length >= 2);
    expect(agent.entries().sort()).toEqual(['a finding', 'first']);
  }
  await redis.stop();
}, 30_000);

test('content that waits is not told to somebody who was removed meanwhile', async () => {
  // So long between two digests that all of what follows the first comes before the second.
  await using agent = await observing(inject('redisUrl'), 2);
  const { owner, services, threadIds } = agent;
  const [one = '', other = ''] = threadIds;
  const [pad, marked] = [await agent.makePad(one), await agent.makePad(other)];
  await agent.open();
  const write = (text: string) =>
    services.scratchpadWriting.setContent(owner, { scratchpadId: pad, as: agent.ann, text });
  // It observes from a moment after the stream began.
  await until(async () => {
    await write('for who is there');
    return agent.contents().length > 0;
  }, 100);
  // Another reader of the same agent's, who is told at the same time.
  const read = await agent.read(pad, 'in its window');
  await write('for who stays');
  await agent.append(pad, agent.ann, 'in its window');
  await read.done;
  await services.threads.changeState(owner, { threadId: one, participantId: agent.ids.bot ?? '' }, 'REMOVED');
  await agent.append(marked, agent.bob, 'a mark');
  await until(() => agent.entries().includes('a mark'));
  expect([...new Set(agent.contents())]).toEqual(['for who is there']);
  expect(agent.entries()).toContain('in its window');
}, 30_000);

test('the inbox of a run observes a scratchpad of its conversation, and none of another thread', async () => {
  for (const isThere of [false, true]) {
    await using agent = await observing(inject('redisUrl'));
    const { owner, services, threadIds, ids } = agent;
    const [elsewhere = '', , conversation = ''] = threadIds;
    const pad = await agent.makePad(isThere ? conversation : elsewhere);
    const { token } = await services.runs.delegate(owner, {
      participantId: ids.bot ?? '',
      scratchpadId: pad,
      conversationThreadId: conversation,
    });
    await agent.open(token ?? '');
    await until(() => agent.events().length > 0);
    const change = (to: 'REMOVED' | 'ACTIVE') =>
      services.threads.changeState(owner, { threadId: conversation, participantId: agent.bob }, to);
    const before = agent.events().length;
    // It observes from a moment after the stream began.
    await until(async () => {
      await agent.append(pad, agent.ann, 'a finding');
      await change('REMOVED');
      await change('ACTIVE');
      return isThere ? agent.entries().length > 0 : agent.events().length >= before + 4;
    }, 100);
    expect(agent.entries().length > 0).toBe(isThere);
  }
}, 30_000);
