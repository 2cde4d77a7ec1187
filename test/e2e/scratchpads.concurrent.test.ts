import { afterAll, beforeAll, test } from 'vitest';
import { type Server, startApp, startProcess } from '../support/app.ts';
import { loadPad } from '../support/padLoad.ts';

let here: Awaited<ReturnType<typeof startApp>>;
let servers: Server[];
beforeAll(async () => {
  here = await startApp();
  servers = await Promise.all([startProcess(here.stores), startProcess(here.stores)]);
});
afterAll(async () => {
  for (const server of servers) await server.close();
  await here.close();
});

test('64 writers on two processes lose no entry while the body is written and entries are cleared, and every follower has all', {
  timeout: 600_000,
}, async () => {
  let turn = 0;
  const server = (): Server => servers[turn++ % servers.length] ?? here;
  const graphql: Server['graphql'] = (...operation) => server().graphql(...operation);
  await loadPad({ server, graphql }, { writers: 64, each: 500, hasKeys: false });
});
