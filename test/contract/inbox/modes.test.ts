import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MessageDelivery } from '../../../src/inbox/handOut.ts';
import { MOST_WAITING } from '../../../src/inbox/pulling.ts';
import { newId } from '../../../src/shared/ids.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';
import { createInboxWorld, cursorOf, type Followed, followInbox, type InboxWorld, lapse } from './world.ts';

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

const post = async (world: InboxWorld, threadId: string, content: string, mentions: string[] = []) => {
  const mentionIds = mentions.map((handle) => world.ids[handle] ?? '');
  const input = { threadId, as: world.ids.ann ?? '', content, mentionIds };
  return (await api.services.timeline.post(world.owner, input)).event;
};
const move = async (world: InboxWorld, threadId: string): Promise<void> => {
  const input = { threadId, participantId: world.ids.bob ?? '' };
  await api.services.threads.changeState(world.owner, input, 'REMOVED');
  await api.services.threads.changeState(world.owner, input, 'ACTIVE');
};
const changes = ({ given }: Followed): number =>
  given.flatMap(({ events }) => events).filter(({ type }) => type === 'PARTICIPANT_STATE_CHANGED').length;
const take = async (world: InboxWorld, input: object = {}): Promise<MessageDelivery[]> =>
  (await api.services.inbox.take(world.owner, { as: world.ids.bot ?? '', ...input }, NEVER)).given.filter(
    (one): one is MessageDelivery => one.channel === 'MESSAGE',
  );
const acknowledge = (world: InboxWorld, input: { threadId: string; deliveryId?: string; upTo?: string }) =>
  api.services.timeline.acknowledge(world.owner, { ...input, as: world.ids.bot ?? '' });

describe('messages that mention nobody', () => {
  test('are observations of a stream that wants only mentions, also where an ordinary stream was there before', async () => {
    const world = await createInboxWorld(api.services);
    const [, , threadId = ''] = world.threadIds;
    for (const content of ['one', 'two', 'three']) await post(world, threadId, content);
    {
      await using ordinary = await followInbox(api, world);
      await move(world, threadId);
      await until(() => changes(ordinary) === 2);
    }
    await using stream = await followInbox(api, world, { onlyMentions: true });
    await post(world, threadId, 'four');
    await until(() => stream.contents('OBSERVATION').includes('four'));
    expect(stream.contents('OBSERVATION')).toEqual(['one', 'two', 'three', 'four']);
    // What was told before is not told again.
    expect(changes(stream)).toBe(0);
  });

  test('are told once, and not at all where they were delivered and acknowledged', async () => {
    const world = await createInboxWorld(api.services);
    const [, , threadId = ''] = world.threadIds;
    await post(world, threadId, 'delivered');
    const [first] = await take(world);
    await acknowledge(world, { threadId, deliveryId: first?.deliveryId ?? '' });
    const shown = await post(world, threadId, 'drained');
    await acknowledge(world, { threadId, upTo: cursorOf(shown) });
    await post(world, threadId, 'said');
    {
      await using stream = await followInbox(api, world, { onlyMentions: true });
      await until(() => stream.contents('OBSERVATION').length > 0);
      expect(stream.contents('OBSERVATION')).toEqual(['said']);
      await post(world, threadId, 'bot?', ['bot']);
      await until(() => stream.contents('MESSAGE').length > 0);
    }
    {
      // The digest of it comes once the next is asked for.
      await using ordinary = await followInbox(api, world);
      await move(world, threadId);
      await until(() => changes(ordinary) === 2);
    }
    await using stream = await followInbox(api, world, { onlyMentions: true });
    await post(world, threadId, 'last');
    await until(() => stream.contents('OBSERVATION').includes('last'));
    expect(stream.contents('OBSERVATION')).toEqual(['last']);
  });

  test('are told although a mention behind them was acknowledged before', async () => {
    const world = await createInboxWorld(api.services);
    const [, , threadId = ''] = world.threadIds;
    await post(world, threadId, 'chatter');
    await post(world, threadId, 'bot?', ['bot']);
    const [mention] = await take(world, { onlyMentions: true });
    await acknowledge(world, { threadId, deliveryId: mention?.deliveryId ?? '' });
    await using stream = await followInbox(api, world, { onlyMentions: true });
    await post(world, threadId, 'more');
    await until(() => stream.contents('OBSERVATION').includes('more'));
    expect(stream.contents('OBSERVATION')).toEqual(['chatter', 'more']);
  });
});

describe('what was taken under a name', () => {
  test('is not given again under it, nor anything else, whatever became of it', async () => {
    const world = await createInboxWorld(api.services);
    const [, , threadId = ''] = world.threadIds;
    for (const content of ['one', 'two']) await post(world, threadId, content);
    const named = { deliveryId: newId('Delivery') };
    const [taken] = await take(world, named);
    expect(taken).toMatchObject({ ...named, events: [{ content: 'one' }] });
    expect(await take(world, named)).toEqual([]);
    await lapse(db.database, named.deliveryId);
    expect(await take(world, named)).toEqual([]);
    const [again] = await take(world);
    expect(again).toMatchObject({ attempt: 2, events: [{ content: 'one' }] });
    await acknowledge(world, { threadId, deliveryId: again?.deliveryId ?? '' });
    expect(await take(world, named)).toEqual([]);
    // Another name, and one that was in hand when its taker was removed.
    const removed = { deliveryId: newId('Delivery') };
    expect(await take(world, removed)).toMatchObject([{ events: [{ content: 'two' }] }]);
    const input = { threadId, participantId: world.ids.bot ?? '' };
    await api.services.threads.changeState(world.owner, input, 'REMOVED');
    await api.services.threads.changeState(world.owner, input, 'ACTIVE');
    expect(await take(world, removed)).toEqual([]);
    expect(await take(world)).toMatchObject([{ attempt: 1, events: [{ content: 'two' }] }]);
  });
});

describe('pulls that wait', () => {
  test('are a hundred of one inbox at most; whoever goes makes room', async () => {
    const world = await createInboxWorld(api.services);
    const gone = new AbortController();
    const wait = async (signal: AbortSignal): Promise<number> => {
      const input = { as: world.ids.bot ?? '', waitSeconds: 30 };
      return (await api.services.inbox.take(world.owner, input, signal)).given.length;
    };
    const waiting = Array.from({ length: MOST_WAITING + 1 }, () =>
      wait(gone.signal).catch((error: unknown) => error),
    );
    expect(await Promise.race(waiting)).toMatchObject({ code: 'RATE_LIMITED' });
    gone.abort();
    const left = (await Promise.all(waiting)).filter((one) => one === 0);
    expect(left).toHaveLength(MOST_WAITING);

    const again = wait(NEVER);
    await post(world, world.threadIds[0] ?? '', 'for whoever waits');
    expect(await again).toBe(1);
  });
});
