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
