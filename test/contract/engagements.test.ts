import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Services } from '../../src/services.ts';
import { ID_PREFIX, idSuffix } from '../../src/shared/ids.ts';
import { createApi } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createWorld, type World } from '../support/world.ts';

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let services: Services;
let world: World;
/** A chain of three threads, a fourth that continues its first too, and one on its own. */
let threads: { first: string; second: string; third: string; branch: string; alone: string };
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  services = api.services;
  world = await createWorld(services, 'stitch');
  const { ada, scout, rex, nora, lil } = world.people;
  const extend = async (threadId: string, id: string): Promise<string> =>
    (await services.threads.extend(world.owner, { threadId, participantIds: [id] })).threadId;
  const open = async (participantIds: string[]): Promise<string> =>
    (await services.threads.open(world.owner, { participantIds })).threadId;
  const first = await open([ada.id, nora.id]);
  const second = await extend(first, scout.id);
  const third = await extend(second, lil.id);
  const branch = await extend(first, rex.id);
  threads = { first, second, third, branch, alone: await open([nora.id, lil.id]) };
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const idOf = (threadId: string): string => `${ID_PREFIX.Engagement}_${idSuffix(threadId)}`;

test('the list, the ids and the walk from any of its threads give one and the same item', async () => {
  const { first, second, third, branch, alone } = threads;
  const { ada, scout, lil, nora } = world.people;
  const seen: readonly [string | null, string[][]][] = [
    [null, [[first, second, third, branch], [alone]]],
    [ada.id, [[first, second, third, branch]]],
    [nora.id, [[first, second, third, branch], [alone]]],
    [scout.id, [[second, third]]],
    [lil.id, [[third], [alone]]],
  ];
  for (const [as, items] of seen) {
    const { edges } = await services.engagements.page(world.owner, { as, first: 200 });
    const listed = edges.map(({ node }) => node);
    const ids = items.map(([root = '']) => idOf(root));
    const found = await services.engagements.findAll(world.owner, { as, ids });
    for (const threadIds of items) {
      const [root = ''] = threadIds;
      const item = listed.find(({ id }) => id === idOf(root));
      expect(item?.threadIds).toEqual(threadIds);
      expect(found.find(({ id }) => id === idOf(root))).toEqual(item);
      expect(await services.engagements.find(world.owner, { as, id: idOf(root) })).toEqual(item);
      for (const threadId of threadIds)
        expect(await services.engagements.find(world.owner, { as, threadId })).toEqual(item);
    }
  }
});

test('neither a later thread’s id nor a thread one is no member of names an item', async () => {
  const { first, second } = threads;
  const { scout } = world.people;
  for (const [as, threadId] of [
    [null, second],
    [scout.id, first],
  ] as const) {
    const id = idOf(threadId);
    expect(await services.engagements.find(world.owner, { as, id })).toBeNull();
    expect(await services.engagements.findAll(world.owner, { as, ids: [id] })).toEqual([]);
  }
  expect(await services.engagements.find(world.owner, { as: scout.id, threadId: first })).toBeNull();
});
