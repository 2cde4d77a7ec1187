import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MessageDelivery } from '../../../src/inbox/handOut.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { codeOf, createInboxWorld, type InboxWorld, lapse } from './world.ts';

const NEVER = new AbortController().signal;

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const take = async (world: InboxWorld, agent: string, threadId?: string): Promise<MessageDelivery[]> => {
  const input = { as: world.ids[agent] ?? '', max: 5, threadId };
  const { given } = await api.services.inbox.take(world.owner, input, NEVER);
  return given.filter((one): one is MessageDelivery => one.channel === 'MESSAGE');
};
const extend = (world: InboxWorld, agent: string, deliveryId: string, seconds: number): Promise<string> =>
  codeOf(api.services.inbox.extendLease(world.owner, { as: world.ids[agent] ?? '', deliveryId, seconds }));
/** What waits in two threads of both agents, the first before the other. */
const createWaiting = async (): Promise<InboxWorld> => {
  const world = await createInboxWorld(api.services);
  for (const [index, who] of ['ann', 'bob'].entries())
    await api.services.timeline.post(world.owner, {
      threadId: world.threadIds[index] ?? '',
      as: world.ids[who] ?? '',
      content: 'Now.',
    });
  return world;
};

describe('a lease that ran out', () => {
  test('is taken up again while nobody else has what it was for', async () => {
    const world = await createWaiting();
    for (const agent of ['bot', 'solo']) {
      const [first] = await take(world, agent);
      await lapse(db.database, first?.deliveryId ?? '');
      expect(await extend(world, agent, first?.deliveryId ?? '', 60)).toBe('OK');
      expect((await take(world, agent)).map(({ threadId }) => threadId)).not.toContain(first?.threadId);
    }
  });

  test('is not while its agent, which does one thing at a time, has another in hand', async () => {
    const world = await createWaiting();
    const [first] = await take(world, 'solo');
    const deliveryId = first?.deliveryId ?? '';
    await lapse(db.database, deliveryId);
    const [second] = await take(world, 'solo', world.threadIds[1]);
    expect(second?.threadId).toBe(world.threadIds[1]);
    expect(await extend(world, 'solo', deliveryId, 60)).toBe('CONFLICT');
    // It moves nothing by that: what is in hand stays so, and may be given back as ever.
    expect(await extend(world, 'solo', second?.deliveryId ?? '', 60)).toBe('OK');
    expect(await extend(world, 'solo', deliveryId, 0)).toBe('OK');
    expect(await extend(world, 'solo', second?.deliveryId ?? '', 0)).toBe('OK');
    expect(await extend(world, 'solo', deliveryId, 60)).toBe('OK');
  });
});
