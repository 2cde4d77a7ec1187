import { expect, inject, test } from 'vitest';
import { createTenant, startProcess } from '../support/app.ts';
import { isUpkeep, startBehindProxy } from '../support/behindProxy.ts';
import { askAs } from '../support/oracle/callers.ts';
import { createFollowing, Following, TRANSPORTS } from '../support/oracle/live.ts';
import { play } from '../support/oracle/play.ts';
import { World } from '../support/oracle/world.ts';

const plain = {
  mention: 1,
  source: 0,
  originating: 0,
  acknowledge: null,
  condition: null,
  repeat: false,
  wild: false,
};

test('an event whose nested reads fail is delivered whole, once, as soon as they succeed', async () => {
  await using proxied = await startBehindProxy();
  await using other = await startProcess({
    databaseUrl: proxied.testDatabase.url,
    redisUrl: inject('redisUrl'),
  });
  const tenant = await createTenant(other, { p0: 'HUMAN', p1: 'HUMAN', p2: 'HUMAN' });
  const ids = Object.fromEntries(Object.entries(tenant.participants).map(([handle, { id }]) => [handle, id]));
  const world = new World({
    ids,
    agents: new Set(),
    ask: askAs(
      () => other,
      tenant,
      () => 'TOKEN',
    ),
  });
  await play(world, [{ act: 'post', thread: 0, by: 0, ...plain }]);
  const [thread] = world.threads;
  if (thread === undefined) throw new Error('There is no thread.');
  const clients = TRANSPORTS.map((transport) =>
    createFollowing(transport, {
      place: () => ({ url: proxied.server.url, socketUrl: proxied.server.socketUrl }),
      token: () => tenant.participants.p1?.token ?? '',
    }),
  );
  const followings = clients.map((client) => new Following(client, { viewer: 'p1', thread, after: null }));
  await Promise.all(followings.map((following) => following.begun()));

  let failed = 0;
  proxied.proxy.before = (statement) => {
    if (isUpkeep(statement)) return undefined;
    failed++;
    if (failed === 6) proxied.proxy.before = null;
    return Promise.reject(new Error('The connection breaks.'));
  };
  await play(world, [{ act: 'post', thread: 0, by: 0, ...plain }]);
  for (const following of followings) await following.compare();
  expect(failed).toBe(6);
  await Promise.all(clients.map((client) => client.dispose()));
});
