import type { Bench } from './support/bench.ts';
import { alternate, median, ratio, report } from './support/figures.ts';
import { type Product, startProduct } from './support/product.ts';
import { say, seedBacklog } from './support/seedBacklog.ts';
import { startStores } from './support/stores.ts';
import { createTenant, type Tenant } from './support/world.ts';

const TAKE = `mutation Take($as: ID!) { takePending(input: { as: $as }) { deliveries { deliveryId thread { id } events { id } } } }`;
const ACKNOWLEDGE = `mutation Done($input: AcknowledgeInput!) { acknowledge(input: $input) { pendingCount } }`;

interface Taken {
  readonly takePending: {
    readonly deliveries: readonly { readonly deliveryId: string; readonly thread: { readonly id: string } }[];
  };
}

/** Messages that are taken and acknowledged one after the other, in a second. */
const handOut = async ({ api }: Product, { apiKey }: Tenant, as: string, times: number): Promise<number> => {
  const startedAt = performance.now();
  for (let time = 0; time < times; time += 1) {
    const { takePending } = await api.ask<Taken>(apiKey, TAKE, { as });
    const [delivery] = takePending.deliveries;
    if (delivery === undefined) throw new Error('Nothing is pending.');
    const input = { as, threadId: delivery.thread.id, deliveryId: delivery.deliveryId };
    await api.ask(apiKey, ACKNOWLEDGE, { input });
  }
  return (times / (performance.now() - startedAt)) * 1_000;
};

/** What waits does not slow down what is handed out: 10,000 messages in 1,000 threads beside 100 in 10. */
export const inbox: Bench = async ({ smoke }) => {
  const [rounds, times] = smoke ? [1, 10] : [7, 100];
  await using stores = await startStores({ durable: false });
  await using product = await startProduct(stores);
  const tenant = await createTenant(product, 'Inboxes');
  const sizes = { few: 10, many: smoke ? 50 : 1_000 };
  const few = await seedBacklog(stores.client, tenant, 'few', sizes.few, 10);
  const many = await seedBacklog(stores.client, tenant, 'many', sizes.many, 10);
  await stores.client.query('VACUUM ANALYZE');
  let said = 10;
  const measured = await alternate(
    [
      { name: 'few', measure: () => handOut(product, tenant, few, times) },
      {
        name: 'many',
        measure: async () => {
          const figure = await handOut(product, tenant, many, times);
          // What the small one gave away is there again for the next round.
          await say(stores.client, tenant.userId, 'few', sizes.few, times / sizes.few, said);
          said += times / sizes.few;
          return figure;
        },
      },
    ],
    rounds,
  );
  report({ what: 'hand-outs/s, 100 pending in 10 threads', figure: median(measured.few) });
  report({
    what: `hand-outs/s, ${sizes.many * 10} pending in ${sizes.many} threads`,
    figure: median(measured.many),
  });
  return report({
    what: 'the larger backlog, of the smaller one’s rate',
    figure: ratio(measured.many, measured.few),
    target: { atLeast: 0.9 },
  });
};
