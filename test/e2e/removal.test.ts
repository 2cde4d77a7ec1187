import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTenant, type Tenant } from '../support/app.ts';
import { type Cluster, openThread, startCluster } from '../support/cluster.ts';
import { answered } from '../support/oracle/callers.ts';
import { createFollowing, Following, TRANSPORTS } from '../support/oracle/live.ts';
import { readRecord } from '../support/oracle/record.ts';
import type { OracleThread } from '../support/oracle/rules.ts';

// Nothing after a removal reaches the removed: appends race removals on two servers, and the removed looks at once,
// on whichever server, by every way there is.

const ROUNDS = Number(process.env.REMOVAL_ROUNDS ?? 2_000);
const LANES = 8;

let cluster: Cluster;
let tenant: Tenant;

beforeAll(async () => {
  cluster = await startCluster();
  tenant = await createTenant(cluster, { victim: 'AGENT', one: 'HUMAN', other: 'AGENT', ...lanes() });
});
afterAll(() => cluster[Symbol.asyncDispose]());

/** Somebody else in each thread, so that each is another set. */
const lanes = () =>
  Object.fromEntries(Array.from({ length: LANES }, (_, lane) => [`lane${lane}`, 'HUMAN' as const]));

const token = (handle: string): string => tenant.participants[handle]?.token ?? '';

interface Changed {
  readonly changed: { readonly event: { readonly seq: number; readonly id: string } };
}
interface Posted {
  readonly posted: { readonly message: { readonly seq: number; readonly id: string } };
}
const CHANGE = (field: string) => /* GraphQL */ `
  mutation ($id: ID!, $who: ID!) { changed: ${field}(input: { threadId: $id, participantId: $who }) { event { seq id } } }`;
const POST = /* GraphQL */ `
  mutation ($id: ID!) { posted: postMessage(input: { threadId: $id, content: "now" }) { message { seq id } } }`;
const LOOK = /* GraphQL */ `
  query ($id: ID!, $ids: [ID!]!, $withList: Boolean!) {
    nodes(ids: $ids) { id ... on TimelineEvent { seq } }
    threads(first: 20) @include(if: $withList) { nodes { id ...Ends } }
    thread(id: $id) { id ...Ends timeline { events(last: 4) { nodes { seq } pageInfo { hasNextPage } } } }
  }
  fragment Ends on Thread { viewerState lastEvent { seq } lastMessage { seq } updatedAt timeline { windows { end } } }`;

interface Ends {
  readonly id: string;
  readonly viewerState: string;
  readonly lastEvent: { readonly seq: number };
  readonly lastMessage: { readonly seq: number } | null;
}
interface Seen {
  readonly nodes: readonly ({ readonly id: string; readonly seq: number } | null)[];
  readonly threads?: { readonly nodes: readonly Ends[] };
  readonly thread: Ends & {
    readonly timeline: {
      readonly events: {
        readonly nodes: readonly { readonly seq: number }[];
        readonly pageInfo: { readonly hasNextPage: boolean };
      };
    };
  };
}

const post = async (id: string, who: string): Promise<{ seq: number; id: string } | null> => {
  const { data, errors } = await cluster.graphql<Posted>(token(who), POST, { id });
  if (errors?.[0]?.extensions?.code === 'PARTICIPANT_NOT_ACTIVE') return null;
  return answered({ data, errors } as { data: Posted }).posted.message;
};

/** A message that was posted beside a removal, and the end that the removed had from it. */
interface Late {
  readonly id: string;
  readonly seq: number;
  readonly end: number;
}

/** Removes the victim while others and itself post, and has it look as soon as its removal is known. */
const race = async (id: string, withList: boolean, late: Late[], look: boolean): Promise<void> => {
  const who = tenant.participants.victim?.id;
  const change = async (field: string): Promise<{ seq: number; id: string }> =>
    answered(await cluster.graphql<Changed>(tenant.apiKey, CHANGE(field), { id, who })).changed.event;

  const removed = change('removeParticipant');
  const posted = Promise.all([post(id, 'one'), post(id, 'other'), post(id, 'victim'), post(id, 'one')]);
  const { seq: end } = await removed;
  const [seen, after] = await Promise.all([
    cluster.graphql<Seen>(token('victim'), LOOK, { id, ids: [id], withList }),
    post(id, 'other'),
  ]);
  const { thread, threads } = answered(seen);
  for (const ends of [thread, ...(threads?.nodes.filter((node) => node.id === id) ?? [])]) {
    expect(ends.viewerState).toBe('REMOVED');
    expect(ends.lastEvent.seq).toBe(end);
    expect(ends.lastMessage?.seq ?? 0).toBeLessThan(end);
  }
  const { nodes, pageInfo } = thread.timeline.events;
  expect(nodes.at(-1)?.seq).toBe(end);
  expect(pageInfo.hasNextPage).toBe(false);

  const [first, second, own, last] = await posted;
  if (own) expect(own.seq).toBeLessThan(end);
  for (const message of [first, second, last, after]) if (message) late.push({ ...message, end });
  if (look) await lookFor(late.splice(0));
  await change('readdParticipant');
};

/** By id, of each: those of this removal, and those of earlier ones, which are hidden for good. */
const lookFor = async (late: readonly Late[]): Promise<void> => {
  const byId = answered(
    await cluster.graphql<Pick<Seen, 'nodes'>>(
      token('victim'),
      'query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on TimelineEvent { seq } } }',
      { ids: late.map(({ id }) => id) },
    ),
  );
  expect(byId.nodes.map((node) => node?.seq ?? null)).toEqual(
    late.map(({ seq, end }) => (seq < end ? seq : null)),
  );
};

test(`appends race removals for ${ROUNDS} rounds: what comes after one reaches the removed nowhere`, {
  timeout: 120_000 + ROUNDS * 300,
}, async () => {
  const place = cluster.place;
  const followings: Following[] = [];
  const clients = TRANSPORTS.map((transport) =>
    createFollowing(transport, { place, token: () => token('victim') }),
  );
  const threads: OracleThread[] = [];
  for (let lane = 0; lane < LANES; lane++) {
    const members = ['victim', 'one', 'other', `lane${lane}`];
    const { id, start } = await openThread(cluster, tenant, members);
    const thread: OracleThread = { id, members, events: [], acknowledged: new Map() };
    threads.push(thread);
    for (const client of clients)
      followings.push(new Following(client, { viewer: 'victim', thread, after: { seq: 0, cursor: start } }));
  }
  await Promise.all(followings.map((following) => following.begun()));

  await Promise.all(
    threads.map(async ({ id }) => {
      const late: Late[] = [];
      // The list shows every thread of the removed, and costs as much as all else: at every fourth removal.
      for (let round = 1; round <= ROUNDS / LANES; round++)
        await race(id, round % 4 === 0, late, round % 8 === 0 || round * LANES >= ROUNDS);
    }),
  );
  for (const thread of threads) await readRecord(cluster, tenant, thread.id, thread);
  for (const following of followings) await following.compare();
  await Promise.all(clients.map((client) => client.dispose()));
});
