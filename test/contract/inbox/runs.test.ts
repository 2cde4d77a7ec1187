import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Actor } from '../../../src/auth/actor.ts';
import type { ControlNotice, MessageDelivery } from '../../../src/inbox/handOut.ts';
import { openPostgres } from '../../../src/storage/postgres.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { startPostgresProxy } from '../../support/postgresProxy.ts';
import { until } from '../../support/until.ts';
import {
  age,
  codeOf,
  createInboxWorld,
  type Followed,
  followInbox,
  type InboxWorld,
  openRun,
} from './world.ts';

const NEVER = new AbortController().signal;

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database, { digestSeconds: 0.1 });
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

/** A run of bot’s in its second thread, which stands before another in which it has none. */
const begin = async () => {
  const world = await createInboxWorld(api.services);
  const [, , conversation = ''] = world.threadIds;
  const run = await openRun(db.database, world, conversation);
  const worker = await api.authentication.authenticate({ authorization: `Bearer ${run.secret}` });
  return { world, conversation, run, worker };
};

const post = async (world: InboxWorld, threadId: string, content: string): Promise<string> =>
  (await api.services.timeline.post(world.owner, { threadId, as: world.ids.ann ?? '', content })).event.id;
const change = (world: InboxWorld, threadId: string, handle: string, to: 'REMOVED' | 'ACTIVE') =>
  api.services.threads.changeState(world.owner, { threadId, participantId: world.ids[handle] ?? '' }, to);
const take = async (
  actor: Actor,
  input: object = {},
): Promise<readonly (ControlNotice | MessageDelivery)[]> =>
  (await api.services.inbox.take(actor, input, NEVER)).given;
const contents = (given: readonly (ControlNotice | MessageDelivery)[]): string[] =>
  given.flatMap((one) =>
    one.channel === 'MESSAGE'
      ? one.events.flatMap((event) => (event.type === 'MESSAGE' ? [event.content] : []))
      : [one.kind],
  );
const changed = ({ given }: Followed): string[] =>
  given
    .flatMap(({ events }) => events)
    .flatMap((event) => (event.type === 'PARTICIPANT_STATE_CHANGED' ? [event.threadId] : []));
const query = (text: string, values: readonly unknown[]) => db.database.query({ name: '', text }, values);

describe('a run that pulls', () => {
  test('is told what becomes of its message and of its worker, as a stream is', async () => {
    const { world, conversation, worker } = await begin();
    const message = await post(world, conversation, 'one');
    expect(contents(await take(worker))).toEqual(['one']);
    await api.services.timeline.retract(world.owner, { messageId: message, as: world.ids.ann ?? '' });
    expect(contents(await take(worker))).toEqual(['MESSAGE_RETRACTED']);
    await change(world, conversation, 'bot', 'REMOVED');
    expect(contents(await take(worker))).toEqual(['REMOVED']);
    expect(await codeOf(take(worker))).toBe('PARTICIPANT_NOT_ACTIVE');
    expect(contents(await take(world.owner, { as: world.ids.bot }))).toEqual([
      'MESSAGE_RETRACTED',
      'REMOVED',
    ]);
  });

  test('has its conversation to itself between two pulls, until it is over', async () => {
    const { world, conversation, worker, run } = await begin();
    const owner = { as: world.ids.bot };
    await post(world, conversation, 'one');
    const [first] = await take(worker);
    await post(world, conversation, 'two');
    const deliveryId = first?.channel === 'MESSAGE' ? first.deliveryId : '';
    await api.services.timeline.acknowledge(worker, { threadId: conversation, deliveryId });
    expect(contents(await take(world.owner, owner))).toEqual([]);
    expect(contents(await take(world.owner, { ...owner, threadId: conversation }))).toEqual([]);
    await api.services.runs.update(world.owner, { runId: run.id, status: 'CANCELLED' });
    expect(contents(await take(world.owner, { ...owner, waitSeconds: 5 }))).toContain('two');
  });

  test('that did so long ago is still told, while it is open', async () => {
    const { world, conversation, worker } = await begin();
    const message = await post(world, conversation, 'one');
    await take(worker);
    await query(`UPDATE inboxes SET held_until = now() - interval '2 days' WHERE owner_id = $1`, [
      world.owner.userId,
    ]);
    await query('SELECT empty_inboxes(100)', []);
    await api.services.timeline.retract(world.owner, { messageId: message, as: world.ids.ann ?? '' });
    expect(contents(await take(worker))).toEqual(['MESSAGE_RETRACTED']);
  });
});

describe('what is left to a run', () => {
  test('comes to the main inbox where the run’s stream ends without a word, however late that is noticed', async () => {
    const { world, conversation, run } = await begin();
    const [elsewhere = ''] = world.threadIds;
    // Of a process that is about to be killed.
    await query(
      `INSERT INTO inboxes (owner_id, participant_id, run_id, thread_id, holder, held_until)
       VALUES ($1, $2, $3, $4, 'a stream', now() + interval '1 hour')`,
      [world.owner.userId, world.ids.bot, run.id, conversation],
    );
    await using main = await followInbox(api, world);
    const move = async (threadId: string, handle: string): Promise<void> => {
      const before = changed(main).filter((id) => id === threadId).length;
      await change(world, threadId, handle, 'REMOVED');
      await until(() => changed(main).filter((id) => id === threadId).length > before);
    };
    await change(world, conversation, 'bob', 'REMOVED');
    await move(elsewhere, 'ann');
    // It is beyond what is looked at again.
    await age(db.database);
    await move(elsewhere, 'solo');
    expect(changed(main)).not.toContain(conversation);
    await query(
      `UPDATE inboxes SET held_until = now() - interval '1 second' WHERE owner_id = $1 AND run_id = $2`,
      [world.owner.userId, run.id],
    );
    await until(() => changed(main).includes(conversation));
  });

  test('is asked once a look: who waits for it asks nothing', async () => {
    await using proxy = await startPostgresProxy(db.url);
    const database = await openPostgres(proxy.url, { poolSize: 2 });
    const proxied = createApi(database);
    const { world, conversation, worker } = await begin();
    await take(worker);
    await post(world, conversation, 'one');
    const gone = new AbortController();
    const waiting = proxied.services.inbox.take(
      world.owner,
      { as: world.ids.bot, threadId: conversation, waitSeconds: 30 },
      gone.signal,
    );
    const ran = (name: string): number => proxy.ran.filter((statement) => statement === name).length;
    // It looks once as it begins to listen.
    await until(() => ran('inbox_poll') >= 1);
    const before = ran('take_inbox');
    await until(() => ran('inbox_poll') >= 4);
    expect(ran('take_inbox')).toBe(before);
    gone.abort();
    expect((await waiting).given).toEqual([]);
    await proxied.close();
    await database.close();
  });
});
