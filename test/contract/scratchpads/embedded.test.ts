import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Database } from '../../../src/storage/database.ts';
import { migrate } from '../../../src/storage/migrations.ts';
import { openInMemory } from '../../../src/storage/pglite.ts';
import { createApi } from '../../support/api.ts';
import { padWriting } from '../../support/padWriting.ts';
import { until } from '../../support/until.ts';
import { createWorld } from '../../support/world.ts';

let database: Database;
let redis: Redis;
let api: ReturnType<typeof createApi>;
beforeAll(async () => {
  database = await openInMemory();
  await migrate(database);
  redis = new Redis(inject('redisUrl').replace('unix://', ''));
  api = createApi(database);
});
afterAll(async () => {
  redis.disconnect();
  await api.close();
  await database.close();
});

test('scratchpads live, are fenced and are purged alike with the embedded database', async () => {
  const world = await createWorld(api.services, 'embedded');
  const { owner, threadId, userId, scratchpadId, people } = world;
  const participantId = people.rex.id;
  const { services } = api;
  const writing = padWriting(api);
  const makers = Array.from({ length: 6 }, () =>
    services.scratchpads.create(owner, { threadId: world.laterThreadId }),
  );
  const made = (await Promise.allSettled(makers)).filter(({ status }) => status === 'fulfilled');
  expect(made).toHaveLength(1);

  const { event } = await services.threads.changeState(owner, { threadId, participantId }, 'ACTIVE');
  expect(await redis.hget(`scratchpad:${userId}:{${scratchpadId}}:meta`, 'fence')).toBe(String(event.seq));
  const note = await writing.append(owner, { scratchpadId, as: participantId, content: 'back again' });
  expect(note.entry.threadSeq).toBe(event.seq);
  await Promise.all([
    services.threads.changeState(owner, { threadId, participantId }, 'REMOVED'),
    ...Array.from({ length: 8 }, (_, index) =>
      writing.append(owner, { scratchpadId, as: people.ada.id, content: `note ${index}` }),
    ),
  ]);
  await expect(
    writing.append(owner, { scratchpadId, as: participantId, content: 'late' }),
  ).rejects.toMatchObject({ code: 'PARTICIPANT_NOT_ACTIVE' });

  await services.scratchpads.update(owner, { scratchpadId, metaData: { a: 1 }, ttlSeconds: 5 });
  await services.users.remove(owner, { confirmName: 'embedded company' });
  await until(async () => (await database.prisma.user.findUnique({ where: { id: userId } })) === null);
  const state = async () => (await redis.keys(`*${userId}*`)).filter((key) => !key.endsWith(':gone'));
  await until(async () => (await state()).length === 0);
});

test('memory and messages are found alike with the embedded database', async () => {
  const { owner, threadId, people, mark } = await createWorld(api.services, 'remembering');
  const { memories, search, timeline, participants } = api.services;
  const as = people.scout.id;
  const texts = ['Die Straße zum Café', '我们把数据库迁移到新服务器', 'ประชุมที่กรุงเทพ', 'deployments at ΑΘΗΝΑ'];
  for (const text of texts)
    await memories.store(owner, { as, threadId, payload: { text, tags: ['a', { n: 1 }] } });
  const content = `${mark} 东京会议`;
  const { event } = await timeline.post(owner, { threadId, as, content });
  const recalled = async (question: object): Promise<number[]> => {
    const { edges } = await memories.recall(owner, { as, threadId, ...question });
    return edges.map(({ node }) => texts.indexOf((node.payload as { text: string }).text));
  };
  expect(
    await Promise.all(['CAFE', '数据库', 'กรุงเทพ', 'deployment αθηνα'].map((query) => recalled({ query }))),
  ).toEqual([[0], [1], [2], [3]]);
  expect(await recalled({ match: { tags: [{ n: 1 }] }, last: 2 })).toEqual([1, 0]);
  for (const viewer of [null, as]) {
    const found = await search.messages(owner, { query: '会议', as: viewer });
    expect(found.edges.map(({ node }) => node.id)).toEqual([event.id]);
  }
  expect((await search.messages(owner, { query: '会议', as: people.rex.id })).edges).toEqual([]);
  const { id } = await participants.clone(owner, { participantId: as, handle: 'embedded-clone' });
  expect((await memories.pageOf(owner, id, {}))?.edges).toHaveLength(texts.length + 2);
});
