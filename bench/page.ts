import { timelineCursor } from '../src/shared/cursors.ts';
import type { Bench } from './support/bench.ts';
import { alternate, median, ratio, report, round, type Side } from './support/figures.ts';
import { type Connection, openConnection } from './support/http.ts';
import { type Product, startProduct } from './support/product.ts';
import { type Coming, seedThread } from './support/seed.ts';
import { type Stores, startStores, transactions } from './support/stores.ts';
import { createTenant, openRoom, type Room, type Tenant } from './support/world.ts';

const PAGE = `query Page($threadId: ID!, $before: Cursor, $types: [TimelineEventType!]) {
  thread(id: $threadId) { timeline { events(last: 50, before: $before, types: $types) {
    nodes { __typename id seq at
      ... on Message { content sender { id handle displayName } isRetracted retraction { id seq reason } }
      ... on Retraction { reason message { id } }
      ... on ParticipantStateChanged { transition participant { handle } } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }
}`;
const UNREAD = 'query Unread($threadId: ID!) { thread(id: $threadId) { unreadCount } }';

const TARGET = { atMost: 1.3 };

/** Windows: spread over the whole thread, or crowded before one place, where one page crosses many. */
const spread = (participantId: string, events: number): Coming => {
  const step = Math.floor(events / 100);
  return {
    participantId,
    at: Array.from({ length: 198 }, (_, index) =>
      index % 2 === 0 ? step * (index / 2 + 1) : step * ((index - 1) / 2 + 1) + Math.floor(step / 2),
    ),
  };
};
const crowded = (participantId: string, before: number): Coming => ({
  participantId,
  at: Array.from(
    { length: 198 },
    (_, index) => before - 1_001 + 10 * Math.floor(index / 2) + (index % 2 === 0 ? 2 : 7),
  ),
});
/** The first place that so many crowded windows have room before. */
const CROWD = 1_001;

/** A page of 50 early and late in a long thread, for viewers with one window and with a hundred. */
export const page: Bench = async ({ smoke }) => {
  const events = smoke ? 20_000 : 1_000_000;
  const rounds = smoke ? 1 : 9;
  const requests = smoke ? 10 : 150;
  await using stores = await startStores();
  await using product = await startProduct(stores);
  const tenant = await createTenant(product, 'Page');
  const long = await seedRoom(product, stores, tenant, 'long', events);
  const short = await seedRoom(product, stores, tenant, 'short', 1_000);
  await stores.client.query('VACUUM ANALYZE');
  const [, , , , one, hundred, dense, denseEarly] = long.members;
  const oneOfShort = short.members[4];
  if (!one || !hundred || !dense || !denseEarly || !oneOfShort) throw new Error('Somebody is missing.');

  const connection = await openConnection(product.port);
  const ask = asking(connection, requests);
  const before = async (seq: number): Promise<string> => {
    const { rows } = await stores.client.query<{ id: string }>(
      'SELECT id FROM events WHERE owner_id = $1 AND thread_id = $2 AND seq = $3',
      [tenant.userId, long.threadId, seq],
    );
    return timelineCursor(long.threadId, seq, rows[0]?.id ?? '');
  };
  const pageOf = async (name: string, token: string, seq: number, types: string[] | null): Promise<Side> => {
    const variables = { threadId: long.threadId, before: await before(seq), types };
    return { name, measure: () => ask(token, PAGE, variables) };
  };
  const late = events;
  /** Of one viewer; where its windows lie together, `early` is another viewer whose lie alike before the low place. */
  const compare = async (name: string, token: string, low: number, types: string[] | null, early = token) => {
    const sides = [
      await pageOf('start', early, 51, types),
      await pageOf('low', early, low, types),
      await pageOf('late', token, late, types),
    ];
    await alternate(sides, 1);
    const results = await alternate(sides, rounds);
    const [start = [], lower = [], end = []] = [results.start, results.low, results.late];
    return report({
      what: `${name}: at ${late} to at ${low}`,
      figure: ratio(end, lower),
      target: TARGET,
      detail: `${round(median(start))} ms at 50, ${round(median(lower))} at ${low}, ${round(median(end))} at ${late}`,
    });
  };
  const retractions = ['RETRACTION'];
  // The first place with a full page of retractions.
  const lowOfRetractions = 5_000;
  const verdicts = [
    await compare('one window', one.token, 1_000, null),
    await compare('100 windows', hundred.token, 1_000, null),
    await compare('100 windows, 20 in a page', dense.token, CROWD, null, denseEarly.token),
    await compare('retractions, one window', one.token, lowOfRetractions, retractions),
    await compare('retractions, 100 windows', hundred.token, lowOfRetractions, retractions),
  ];
  const unread = await alternate(
    [
      { name: 'short', measure: () => ask(oneOfShort.token, UNREAD, { threadId: short.threadId }) },
      { name: 'long', measure: () => ask(one.token, UNREAD, { threadId: long.threadId }) },
    ],
    rounds,
  );
  verdicts.push(
    report({
      what: `unreadCount, never acknowledged: of ${events} to of 1000`,
      figure: ratio(unread.long, unread.short),
      target: TARGET,
      detail: `${round(median(unread.short))} ms, ${round(median(unread.long))} ms`,
    }),
  );
  for (const [name, token, seq] of [
    ['at 50', one.token, 51],
    [`at ${late}, 100 windows`, hundred.token, late],
  ] as const) {
    const variables = { threadId: long.threadId, before: await before(seq), types: null };
    const upkeep = await statementsDuring(stores, async () => {});
    const all = await statementsDuring(stores, () => ask(token, PAGE, variables));
    verdicts.push(
      report({ what: `statements a page ${name}`, figure: (all - upkeep) / requests, target: { atMost: 5 } }),
    );
  }
  connection.close();
  return verdicts.every(Boolean);
};

const statementsDuring = async (stores: Stores, work: () => Promise<unknown>): Promise<number> => {
  const before = await transactions(stores);
  await work();
  return (await transactions(stores)) - before;
};

/** Four speakers, a viewer with one window, one with a hundred, one with a hundred at the end, one with as many at the start. */
const seedRoom = async (
  product: Product,
  { client }: Stores,
  tenant: Tenant,
  name: string,
  events: number,
): Promise<Room> => {
  const room = await openRoom(product, tenant, name, 8);
  const ids = room.members.map(({ id }) => id);
  const [hundred = '', dense = '', denseEarly = ''] = ids.slice(5);
  await seedThread(client, {
    ownerId: tenant.userId,
    threadId: room.threadId,
    speakerIds: ids.slice(0, 4),
    comings:
      events > 10_000 ? [spread(hundred, events), crowded(dense, events), crowded(denseEarly, CROWD)] : [],
    events,
  });
  return room;
};

/** The median time of one request, in milliseconds, one after the other. */
const asking =
  (connection: Connection, requests: number) =>
  async (token: string, query: string, variables: Readonly<Record<string, unknown>>): Promise<number> => {
    const body = JSON.stringify({ query, variables });
    const headers = `Authorization: Bearer ${token}\r\n`;
    const times: number[] = [];
    for (let index = 0; index < requests; index++) {
      const startedAt = performance.now();
      const answer = await connection.post('/graphql', body, headers);
      times.push(performance.now() - startedAt);
      if (answer.body.includes('"errors"')) throw new Error(answer.body.slice(0, 300));
    }
    return median(times);
  };
