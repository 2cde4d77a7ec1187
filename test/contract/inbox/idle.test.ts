import { expect, test } from 'vitest';
import { openPostgres } from '../../../src/storage/postgres.ts';
import { createApi } from '../../support/api.ts';
import { isUpkeep } from '../../support/behindProxy.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startPostgresProxy } from '../../support/postgresProxy.ts';
import { until } from '../../support/until.ts';
import { AGENTS, age, createInboxWorld, lapse } from './world.ts';

const NEVER = new AbortController().signal;

test('of streams where nothing happens none asks anything: one statement looks for all of them', async () => {
  await using db = await createTestDatabase();
  await using proxy = await startPostgresProxy(db.url);
  const database = await openPostgres(proxy.url, { poolSize: 4 });
  const api = createApi(database, { digestSeconds: 0.1 });
  const { services, authentication } = api;
  const world = await createInboxWorld(services);
  const [first = '', second = ''] = world.threadIds;
  const as = (handle: string): string => world.ids[handle] ?? '';
  // What waits and cannot be given just now is nothing new either: taken back in hand, mentioning nobody.
  const { event } = await services.timeline.post(world.owner, {
    threadId: first,
    as: as('ann'),
    content: 'No.',
  });
  const { given } = await services.inbox.take(world.owner, { as: as('bot') }, NEVER);
  await services.timeline.retract(world.owner, { messageId: event.id, as: as('ann') });
  for (const one of given) if (one.channel === 'MESSAGE') await lapse(database, one.deliveryId);
  await services.timeline.post(world.owner, { threadId: second, as: as('bob'), content: 'To nobody.' });
  for (const one of (await services.inbox.take(world.owner, { as: as('bot') }, NEVER)).given)
    if (one.channel === 'MESSAGE') await lapse(database, one.deliveryId);
  await age(database);

  const gone = new AbortController();
  const streams: Promise<void>[] = [];
  const sessions: { close(): void }[] = [];
  // Two of each, of which the second waits for its turn.
  for (const [agent, standby] of AGENTS.flatMap((name) => [[name, false] as const, [name, true] as const])) {
    const token = await services.credentials.createParticipantToken(world.owner, {
      participantId: as(agent),
    });
    const session = await authentication.openSession({ authorization: `Bearer ${token.secret}` });
    sessions.push(session);
    const following = await services.followInbox(session, { onlyMentions: true, standby }, gone.signal);
    streams.push(
      (async () => {
        for await (const _delivery of following);
      })(),
    );
  }
  const looks = (): number => proxy.ran.filter((statement) => statement === 'inbox_poll').length;
  const begun = looks();
  await until(() => looks() >= begun + 2);
  const before = proxy.ran.length;
  await until(() => looks() >= begun + 4);
  const ran = proxy.ran.slice(before);
  expect(ran.filter((statement) => statement === 'inbox_digest' || !isUpkeep(statement))).toEqual([]);
  // What others say is nothing to who waits for its turn.
  await services.timeline.post(world.owner, { threadId: second, as: as('bob'), content: 'To nobody.' });
  await until(() => looks() >= begun + 5);
  expect(proxy.ran.slice(before).filter((statement) => statement === 'inbox_claim')).toEqual([]);
  gone.abort();
  await Promise.all(streams);
  for (const session of sessions) session.close();
  await api.close();
  await database.close();
}, 30_000);
