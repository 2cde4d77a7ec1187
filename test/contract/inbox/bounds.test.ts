import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { InboxDelivery } from '../../../src/inbox/deliveries.ts';
import type { ControlNotice, MessageDelivery } from '../../../src/inbox/handOut.ts';
import { openPostgres } from '../../../src/storage/postgres.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { startPostgresProxy } from '../../support/postgresProxy.ts';
import { createInboxWorld, type InboxWorld, lapse, openThreads } from './world.ts';

const NEVER = new AbortController().signal;
const KIB = 1_024;
/** The least that a server may be set to, and somewhat more. */
const SMALLEST = 64 * KIB;
const SMALL = 1_024 * KIB;

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let small: ReturnType<typeof createApi>;
let smallest: ReturnType<typeof createApi>;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  small = createApi(db.database, { answerBytes: SMALL, digestSeconds: 0.01 });
  smallest = createApi(db.database, { answerBytes: SMALLEST });
});
afterAll(async () => {
  for (const one of [api, small, smallest]) await one.close();
  await db.drop();
});

const post = async (world: InboxWorld, threadId: string, content: string): Promise<string> => {
  const input = { threadId, as: world.ids.ann ?? '', content };
  return (await api.services.timeline.post(world.owner, input)).event.id;
};
const retract = (world: InboxWorld, messageId: string, reason?: string) =>
  api.services.timeline.retract(world.owner, { messageId, as: world.ids.ann ?? '', reason });
const takeAll = async (
  world: InboxWorld,
  input: object,
  { services } = api,
): Promise<readonly (ControlNotice | MessageDelivery)[]> =>
  (await services.inbox.take(world.owner, { as: world.ids.bot ?? '', ...input }, NEVER)).given;
const take = async (world: InboxWorld, input: object, on = api): Promise<MessageDelivery[]> =>
  (await takeAll(world, input, on)).filter((one): one is MessageDelivery => one.channel === 'MESSAGE');
const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

describe('what has nothing left to give', () => {
  test('hides nothing that has: messages that were taken back in hand, and whose leases ran out', async () => {
    const world = await createInboxWorld(api.services);
    const threads = await openThreads(api.services, world, 19);
    const ids: string[] = [];
    for (const threadId of threads) ids.push(await post(world, threadId, 'Hello.'));
    const taken = await take(world, { max: 50 });
    expect(taken).toHaveLength(19);
    for (const id of ids.slice(0, -1)) await retract(world, id);
    // The one that is still to be given runs out last.
    for (const { deliveryId } of taken) await lapse(db.database, deliveryId);
    const again = await take(world, { max: 1 });
    expect(again.map(({ threadId, attempt }) => [threadId, attempt])).toEqual([[threads.at(-1), 2]]);
  });

  test('is put right a few threads at a time, so that nobody who posts there waits for all of them', async () => {
    const proxy = await startPostgresProxy(db.url);
    const database = await openPostgres(proxy.url, { poolSize: 2 });
    const proxied = createApi(database);
    const world = await createInboxWorld(api.services);
    const threads = await openThreads(api.services, world, 40);
    const [last = ''] = threads.slice(-1);
    await post(world, last, 'Here.');
    // As of members who were there before there were inboxes: it may be that something waits.
    await db.database.query(
      {
        name: 'test_floors',
        text: `UPDATE inbox_threads SET pending_seq = 1, pending_since = 1 WHERE participant_id = $1 AND thread_id <> $2`,
      },
      [world.ids.bot, last],
    );
    const before = proxy.ran.length;
    const given = await take(world, { max: 5 }, proxied);
    expect(given.map(({ threadId }) => threadId)).toEqual([last]);
    expect(proxy.ran.slice(before).filter((statement) => statement === 'take_inbox').length).toBeGreaterThan(
      2,
    );
    await proxied.close();
    await database.close();
    await proxy[Symbol.asyncDispose]();
  });
});

describe('what is taken at once', () => {
  test('is at most 4 MiB of texts, and the rest comes with the next', async () => {
    const world = await createInboxWorld(api.services);
    const threads = await openThreads(api.services, world, 6);
    for (const threadId of threads)
      for (let message = 0; message < 3; message += 1) await post(world, threadId, 'x'.repeat(250 * KIB));
    const first = await take(world, { max: 100, batch: 10 });
    // Of the last thread only a part.
    expect(first.map(({ threadId, events }) => [threadId, events.length])).toEqual(
      threads.map((threadId, index) => [threadId, index < 5 ? 3 : 1]),
    );
    const { threadId = '', deliveryId = '' } = first.at(-1) ?? {};
    await api.services.timeline.acknowledge(world.owner, { threadId, as: world.ids.bot ?? '', deliveryId });
    const then = await take(world, { max: 100, batch: 10 });
    expect(then.map(({ events }) => events.length)).toEqual([2]);
  });

  test('fits into an answer, however little that may be: so no lease is for nothing', async () => {
    const world = await createInboxWorld(api.services);
    const threads = await openThreads(api.services, world, 40);
    // Large ones, whose texts are six times as long in an answer, and many small ones.
    for (const threadId of threads.slice(0, 8)) await post(world, threadId, '\u0001'.repeat(40 * KIB));
    for (const threadId of threads.slice(8))
      for (const text of ['a', 'b', 'c']) await post(world, threadId, text);
    const seen: string[] = [];
    for (let turn = 0; turn < 60; turn += 1) {
      const given = await take(world, { max: 50, batch: 3 }, turn < 4 ? small : smallest);
      if (given.length === 0) break;
      if (given.length > 1) expect(sizeOf(given)).toBeLessThan(turn < 4 ? SMALL : SMALLEST);
      seen.push(...given.map(({ threadId }) => threadId));
    }
    expect(seen).toEqual(threads);
  });

  test('has as many notices as fit, and the rest comes with the next: none is lost', async () => {
    const world = await createInboxWorld(api.services);
    const threads = await openThreads(api.services, world, 30);
    for (const threadId of threads)
      await retract(world, await post(world, threadId, 'No.'), '\u0001'.repeat(2_000));
    const told: (string | null)[] = [];
    for (let turn = 0; turn < 40; turn += 1) {
      const given = await takeAll(world, { max: 5 }, smallest);
      if (given.length === 0) break;
      expect(sizeOf(given)).toBeLessThan(SMALLEST);
      told.push(...given.map(({ threadId }) => threadId));
    }
    expect(told).toEqual(threads);
  });
});

describe('a digest', () => {
  const isMessage = ({ events }: Pick<InboxDelivery, 'events'>): boolean =>
    events.some(({ type }) => type === 'MESSAGE');

  test('is no larger than fits into an answer, says that more follows, and all of it comes once and in order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ thread: fc.nat({ max: 2 }), kib: fc.constantFrom(1, 1, 5, 20, 60, 200) }), {
          minLength: 4,
          maxLength: 14,
        }),
        async (said) => {
          const world = await createInboxWorld(api.services);
          const threads = await openThreads(api.services, world, 3);
          const expected = new Map<string, string[]>();
          for (const { thread, kib } of said) {
            const threadId = threads[thread] ?? '';
            const id = await post(world, threadId, 'x'.repeat(kib * KIB));
            expected.set(threadId, [...(expected.get(threadId) ?? []), id]);
          }
          const { secret } = await api.services.credentials.createParticipantToken(world.owner, {
            participantId: world.ids.bot ?? '',
          });
          const session = await small.authentication.openSession({ authorization: `Bearer ${secret}` });
          const following = await small.services.followInbox(session, { onlyMentions: true }, NEVER);
          const seen = new Map<string, string[]>();
          let count = 0;
          for await (const digest of following) {
            const { events, notice } = digest;
            if (events.length > 1) expect(sizeOf(events)).toBeLessThan(SMALL / 8);
            for (const event of events)
              if (event.type === 'MESSAGE') {
                seen.set(event.threadId, [...(seen.get(event.threadId) ?? []), event.id]);
                count += 1;
              }
            // Where there is more it says so, and where it says nothing this was all.
            if (count < said.length) expect(notice).toBe('MORE');
            else if (isMessage(digest)) expect(notice).toBe(null);
            if (count >= said.length) break;
          }
          session.close();
          expect(seen).toEqual(expected);
        },
      ),
      { numRuns: Number(process.env.INBOX_RUNS ?? 5) },
    );
  }, 60_000);
});
