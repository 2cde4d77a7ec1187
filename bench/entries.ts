import type { Member } from '../scripts/replay/members.ts';
import { GRANT } from '../src/scratchpads/access.ts';
import type { Bench } from './support/bench.ts';
import { startChild } from './support/child.ts';
import { alternate, median, ratio, report, round } from './support/figures.ts';
import { type Product, startProduct } from './support/product.ts';
import { rate } from './support/rate.ts';
import { startStores } from './support/stores.ts';
import { createTenant, openRoom, type Tenant, textOf } from './support/world.ts';

const CLIENTS = 32;
const APPEND =
  'mutation Append($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { cursor entry { id } } }';

/** Where one client writes, and as whom. */
interface Seat {
  readonly scratchpadId: string;
  readonly author: Member;
}

/**
 * An append to a scratchpad over GraphQL and over REST, 32 clients on 32 pads, beside a bare handler that runs the same
 * authorising statement and the same script, and beside one that does an RPUSH.
 */
export const entries: Bench = async ({ smoke }) => {
  const rounds = smoke ? 1 : 7;
  const seconds = smoke ? 0.3 : 2;
  await using stores = await startStores();
  await using product = await startProduct(stores);
  await using bare = await startChild({
    args: ['--import', 'tsx', 'bench/bare/entries.ts'],
    env: { DATABASE_URL: stores.databaseUrl, REDIS_PATH: stores.redis.path, GRANT: GRANT.text },
    says: /ready on (\d+)/,
  });
  const tenant = await createTenant(product, 'Entries');
  const seats: Seat[] = [];
  for (let index = 0; index < CLIENTS; index++) {
    const { scratchpadId, members } = await openRoom(product, tenant, `room${index}`, 2);
    const [author] = members;
    if (author === undefined) throw new Error('Nobody writes.');
    seats.push({ scratchpadId, author });
  }
  let met = true;
  for (const bytes of [270, 4_096]) {
    const text = textOf(bytes);
    const tokens = seats.map(({ author }) => author.token);
    const side = <Name extends string>(
      name: Name,
      port: number,
      pathOf: (seat: Seat) => string,
      bodyOf: (seat: Seat) => object,
    ) => ({
      name,
      measure: () =>
        rate(
          port,
          seats.map(pathOf),
          seats.map((seat) => JSON.stringify(bodyOf(seat))),
          tokens,
          seconds,
        ),
    });
    const plain = ({ scratchpadId, author }: Seat): object => ({
      ownerId: tenant.userId,
      scratchpadId,
      participantId: author.id,
      content: text,
    });
    const barePort = Number(bare.ready);
    const sides = [
      side(
        'graphql',
        product.port,
        () => '/graphql',
        ({ scratchpadId }) => ({
          query: APPEND,
          variables: { input: { scratchpadId, content: text } },
        }),
      ),
      side(
        'rest',
        product.port,
        ({ scratchpadId }) => `/v1/scratchpads/${scratchpadId}/entries`,
        () => ({
          content: text,
        }),
      ),
      side('same', barePort, () => '/append', plain),
      side('push', barePort, () => '/push', plain),
    ];
    // Once for nothing: compiled, prepared, in the cache. Before each measurement the pads are empty again: they are bounded.
    const emptied = sides.map((one) => ({
      ...one,
      measure: async () => {
        await clearAll(product, tenant, seats);
        return one.measure();
      },
    }));
    await alternate(emptied, 1);
    const figures = await alternate(emptied, rounds);
    for (const door of ['graphql', 'rest'] as const) {
      const reached = report({
        what: `${door}, ${bytes} bytes: to the same SQL and script behind bare HTTP`,
        figure: ratio(figures[door], figures.same),
        target: { atLeast: 0.5 },
        detail: `${round(median(figures[door]))}/s to ${round(median(figures.same))}/s`,
      });
      met = reached && met;
      report({
        what: `${door}, ${bytes} bytes: to an RPUSH behind bare HTTP`,
        figure: ratio(figures[door], figures.push),
        detail: `${round(median(figures.push))}/s`,
      });
    }
  }
  return met;
};

const clearAll = async ({ api }: Product, { apiKey }: Tenant, seats: readonly Seat[]): Promise<void> => {
  for (const { scratchpadId } of seats)
    await api.ask(
      apiKey,
      'mutation Clear($input: ClearScratchpadInput!) { clearScratchpad(input: $input) { scratchpad { id } } }',
      { input: { scratchpadId } },
    );
};
