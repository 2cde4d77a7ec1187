import type { Bench } from './support/bench.ts';
import { startChild } from './support/child.ts';
import { alternate, median, ratio, report, round } from './support/figures.ts';
import { startProduct } from './support/product.ts';
import { rate } from './support/rate.ts';
import { startStores } from './support/stores.ts';
import { createTenant, type Seat, type Tenant, takeSeat, textOf } from './support/world.ts';

const CLIENTS = 32;
const STORE = 'mutation Store($input: StoreMemoryInput!) { storeMemory(input: $input) { entry { id } } }';

/** `storeMemory` over HTTP: 32 agents in threads of their own, beside a bare handler that runs the same SQL. */
export const memory: Bench = async ({ smoke }) => {
  const rounds = smoke ? 1 : 5;
  const seconds = smoke ? 0.3 : 3;
  let met = true;
  for (const durable of smoke ? [false] : [true, false]) {
    await using stores = await startStores({ durable });
    await using product = await startProduct(stores);
    await using bare = await startChild({
      args: ['--import', 'tsx', 'bench/bare/memory.ts'],
      env: { DATABASE_URL: stores.databaseUrl },
      says: /ready on (\d+)/,
    });
    const tenant = await createTenant(product, 'Memory');
    const seats: Seat[] = [];
    for (let index = 0; index < CLIENTS; index++)
      seats.push(await takeSeat(product, tenant, `agent${index}`));
    console.log(`\n${durable ? 'Commits written through' : 'Commits not written through (processor time)'}`);
    for (const bytes of [270, 4_096]) {
      const payload = { type: 'note', text: textOf(bytes) };
      const tokens = seats.map(() => tenant.apiKey);
      const sides = [
        {
          name: 'product' as const,
          measure: () => rate(product.port, '/graphql', seats.map(askOf(payload)), tokens, seconds),
        },
        {
          name: 'bare' as const,
          measure: () =>
            rate(Number(bare.ready), '/store', seats.map(plainOf(tenant, payload)), tokens, seconds),
        },
      ];
      // Once for nothing: compiled, prepared, in the cache.
      await alternate(sides, 1);
      const { product: ours, bare: same } = await alternate(sides, rounds);
      met =
        report({
          what: `${bytes} bytes, ${CLIENTS} agents: to the same SQL behind bare HTTP`,
          figure: ratio(ours, same),
          target: { atLeast: 0.5 },
          detail: `${round(median(ours))}/s to ${round(median(same))}/s`,
        }) && met;
    }
  }
  return met;
};

const askOf =
  (payload: object) =>
  ({ threadId, agentId }: Seat): string =>
    JSON.stringify({ query: STORE, variables: { input: { threadId, as: agentId, payload } } });

const plainOf =
  ({ userId }: Tenant, payload: object) =>
  ({ threadId, agentId }: Seat): string =>
    JSON.stringify({ ownerId: userId, threadId, agentId, payload });
