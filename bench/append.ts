import type { Member } from '../scripts/replay/members.ts';
import type { Bench } from './support/bench.ts';
import { type Child, startChild } from './support/child.ts';
import { alternate, median, ratio, report, round } from './support/figures.ts';
import { type Product, startProduct } from './support/product.ts';
import { rate } from './support/rate.ts';
import { type Stores, startStores } from './support/stores.ts';
import { createTenant, openRoom, type Room, type Tenant, textOf } from './support/world.ts';

const CLIENTS = 32;
const POST =
  'mutation Post($input: PostMessageInput!) { postMessage(input: $input) { cursor message { id } } }';

/** Where one client posts, and as whom. */
interface Seat {
  readonly threadId: string;
  readonly sender: Member;
}

/**
 * `postMessage` over HTTP: 32 clients on 32 threads, and on one, beside a bare handler that runs the same SQL as one
 * prepared statement, and beside one that runs a single INSERT.
 */
export const append: Bench = async ({ smoke }) => {
  const rounds = smoke ? 1 : 5;
  const seconds = smoke ? 0.3 : 3;
  let met = true;
  for (const durable of smoke ? [false] : [true, false]) {
    await using stores = await startStores({ durable });
    await stores.client.query(
      'CREATE TABLE bench_messages (id text PRIMARY KEY, thread_id text NOT NULL, sender_id text NOT NULL, content text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())',
    );
    await using product = await startProduct(stores);
    await using bare = await startBare(stores);
    const tenant = await createTenant(product, 'Append');
    const rooms: Room[] = [];
    for (let index = 0; index < CLIENTS; index++)
      rooms.push(await openRoom(product, tenant, `room${index}`, 2));
    const apart = rooms.flatMap(({ threadId, members: [sender] }) => (sender ? [{ threadId, sender }] : []));
    const together = apart.map(() => apart[0]).filter((seat) => seat !== undefined);

    console.log(`\n${durable ? 'Commits written through' : 'Commits not written through (processor time)'}`);
    for (const bytes of [270, 4_096, 65_536]) {
      const run = { product, bare, tenant, seconds, text: textOf(bytes) };
      const figures = await measure(run, apart, rounds);
      const name = `${bytes} bytes, ${CLIENTS} threads`;
      met = say(name, figures, { atLeast: 0.5 }) && met;
    }
    const hot = { product, bare, tenant, seconds, text: textOf(270) };
    say('270 bytes, one hot thread', await measure(hot, together, rounds));
  }
  return met;
};

const startBare = ({ databaseUrl }: Stores): Promise<Child> =>
  startChild({
    args: ['--import', 'tsx', 'bench/bare/append.ts'],
    env: { DATABASE_URL: databaseUrl },
    says: /ready on (\d+)/,
  });

interface Run {
  readonly product: Product;
  readonly bare: Child;
  readonly tenant: Tenant;
  readonly seconds: number;
  readonly text: string;
}

type Sides = 'product' | 'append' | 'insert';

const measure = async (
  { product, bare, tenant, seconds, text }: Run,
  seats: readonly Seat[],
  rounds: number,
): Promise<Record<Sides, number[]>> => {
  const port = Number(bare.ready);
  const plain = ({ threadId, sender }: Seat): string =>
    JSON.stringify({ ownerId: tenant.userId, threadId, senderId: sender.id, content: text });
  const side = (name: Sides, target: number, path: string, bodyOf: (seat: Seat) => string) => ({
    name,
    measure: () =>
      rate(
        target,
        path,
        seats.map(bodyOf),
        seats.map(({ sender }) => sender.token),
        seconds,
      ),
  });
  const sides = [
    side('product', product.port, '/graphql', ({ threadId }) =>
      JSON.stringify({ query: POST, variables: { input: { threadId, content: text } } }),
    ),
    side('append', port, '/append', plain),
    side('insert', port, '/insert', plain),
  ];
  // Once for nothing: compiled, prepared, in the cache.
  await alternate(sides, 1);
  return alternate(sides, rounds);
};

const say = (
  name: string,
  { product, append: same, insert }: Record<Sides, number[]>,
  target?: { readonly atLeast: number },
): boolean => {
  const met = report({
    what: `${name}: to the same SQL behind bare HTTP`,
    figure: ratio(product, same),
    ...(target === undefined ? {} : { target }),
    detail: `${round(median(product))}/s to ${round(median(same))}/s`,
  });
  report({
    what: `${name}: to a single INSERT`,
    figure: ratio(product, insert),
    detail: `${round(median(insert))}/s`,
  });
  return met;
};
