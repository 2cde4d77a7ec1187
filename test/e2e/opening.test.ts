import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Answer,
  createTenant,
  type Server,
  startApp,
  startProcess,
  type Tenant,
} from '../support/app.ts';

// Who opens what, when everybody does at once, on two processes.

let app: Awaited<ReturnType<typeof startApp>>;
let servers: readonly Server[];
let tenant: Tenant;
/** Nobody waits for a connection but for others. */
const POOL = { DATABASE_POOL_SIZE: '60' };
const names = ['ada', 'bo', 'cy', 'di', 'ed', 'flo', 'gus', 'hal'];

beforeAll(async () => {
  app = await startApp(POOL);
  servers = [app, await startProcess(app.stores, POOL)];
  tenant = await createTenant(app, Object.fromEntries(names.map((name) => [name, 'HUMAN' as const])));
  // Who is listed can be found, and a thread opened with it, by every other.
  for (const { id } of Object.values(tenant.participants))
    await app.graphql(
      tenant.apiKey,
      'mutation ($id: ID!) { updateParticipant(input: { participantId: $id, listed: true }) { participant { id } } }',
      { id },
    );
});
afterAll(async () => {
  for (const server of [...servers].reverse()) await server.close();
});

const at = (turn: number): Server => servers[turn % servers.length] ?? app;
const ids = (handles: readonly string[]): string[] =>
  handles.map((name) => tenant.participants[name]?.id ?? '');
const shuffled = <T>(items: readonly T[], seed: number): T[] =>
  fc.sample(fc.shuffledSubarray([...items], { minLength: items.length }), { numRuns: 1, seed })[0] ?? [];

interface Opened {
  readonly opened: { readonly created: boolean; readonly thread: { readonly id: string } };
}
const OPEN = /* GraphQL */ `
  mutation ($ids: [ID!]!, $key: String) {
    opened: openThread(input: { participantIds: $ids, idempotencyKey: $key }) { created thread { id } }
  }`;
const EXTEND = /* GraphQL */ `
  mutation ($id: ID!, $ids: [ID!]!, $key: String) {
    opened: extendThread(input: { threadId: $id, participantIds: $ids, idempotencyKey: $key }) { created thread { id } }
  }`;

const must = ({ data, errors }: Answer<Opened>): Opened['opened'] => {
  expect(errors).toBeUndefined();
  if (!data) throw new Error('No data.');
  return data.opened;
};

const open = (handles: readonly string[], turn = 0): Promise<Opened['opened']> =>
  at(turn)
    .graphql<Opened>(tenant.apiKey, OPEN, { ids: ids(handles) })
    .then(must);

test('a hundred who open one set at once, in any order, get one thread that one of them created', async () => {
  for (const size of [2, 5, 8]) {
    const set = names.slice(0, size);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, turn) => {
        const order = shuffled(set, turn);
        // As the user, and as each of its members; some name somebody twice.
        const token = turn % 3 === 0 ? tenant.apiKey : (tenant.participants[order[0] ?? '']?.token ?? '');
        const named = ids(turn % 4 === 0 ? [...order, ...order.slice(0, 1)] : order);
        return at(turn).graphql<Opened>(token, OPEN, { ids: named });
      }),
    );
    const opened = answers.map(must);
    expect(new Set(opened.map(({ thread }) => thread.id)).size).toBe(1);
    expect(opened.filter(({ created }) => created)).toHaveLength(1);
  }
});

test('a hundred with one idempotency key get one and the same answer', async () => {
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, turn) =>
      at(turn).graphql<Opened>(tenant.apiKey, OPEN, {
        ids: ids(shuffled(['ada', 'gus', 'hal'], turn)),
        key: 'once',
      }),
    ),
  );
  const opened = answers.map(must);
  expect(new Set(opened.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(opened[0]?.created).toBe(true);
});

interface Linked {
  readonly nodes: readonly {
    readonly kind?: string;
    readonly relatedThread?: { readonly id: string } | null;
    readonly seq: number;
  }[];
}
const links = async (threadId: string): Promise<Linked['nodes']> => {
  const { data } = await app.graphql<{ thread: { timeline: { events: Linked } } }>(
    tenant.apiKey,
    'query ($id: ID!) { thread(id: $id) { timeline { events(first: 200) { nodes { seq ... on SystemEvent { kind relatedThread { id } } } } } } }',
    { id: threadId },
  );
  return data?.thread.timeline.events.nodes ?? [];
};

test('extending from everywhere into everything at once: no deadlock, one thread a set, one link a pair', async () => {
  const small = await Promise.all(
    names
      .slice(0, 5)
      .flatMap((one, index) =>
        names
          .slice(index + 1, 5)
          .map(async (other) => ({ set: [one, other], ...(await open([one, other], index)) })),
      ),
  );
  const known = new Map(small.map(({ set, thread }) => [[...set].sort().join(), thread.id]));
  const pairs = new Set<string>();
  // Twice over: in the second round the larger threads are extended too, while the smaller still lead to them.
  for (let round = 0; round < 2; round++) {
    const from = [...known];
    const extended = await Promise.all(
      from.flatMap(([set, id], index) =>
        [0, 1, 2].map(async (step) => {
          const members = set.split(',');
          const added = shuffled(
            names.slice(0, 5).filter((name) => !members.includes(name)),
            index * 7 + step,
          ).slice(0, 2);
          if (added.length === 0) return null;
          const answer = await at(index + step).graphql<Opened>(tenant.apiKey, EXTEND, {
            id,
            ids: ids(added),
          });
          return { id, set: [...members, ...added].sort().join(), ...must(answer) };
        }),
      ),
    );
    for (const item of extended) {
      if (item === null) continue;
      expect(known.get(item.set) ?? item.thread.id).toBe(item.thread.id);
      known.set(item.set, item.thread.id);
      pairs.add(`${item.id} ${item.thread.id}`);
    }
    const created = extended.filter((item) => item?.created);
    expect(new Set(created.map((item) => item?.set)).size).toBe(created.length);
  }
  const found: string[] = [];
  const back: string[] = [];
  for (const id of known.values())
    for (const [index, { seq, kind, relatedThread }] of (await links(id)).entries()) {
      expect(seq).toBe(index + 1);
      if (kind === 'CONTINUED_AS') found.push(`${id} ${relatedThread?.id}`);
      if (kind === 'CONTINUES') back.push(`${relatedThread?.id} ${id}`);
    }
  expect(found.sort()).toEqual([...pairs].sort());
  expect(back.sort()).toEqual([...pairs].sort());
});

test('two that extend towards each other meet in one thread, also with one key each and members away', async () => {
  for (let round = 0; round < 10; round++) {
    const [a = '', b = '', c = ''] = shuffled(names.slice(5), round);
    const one = await open([a, b, 'ada', ...names.slice(1, 1 + (round % 4))]);
    const other = await open([b, c, 'ada', ...names.slice(1, 1 + (round % 4))]);
    if (round % 2 === 0)
      await app.graphql(
        tenant.apiKey,
        'mutation ($id: ID!, $ada: ID!) { removeParticipant(input: { threadId: $id, participantId: $ada }) { cursor } }',
        { id: one.thread.id, ada: tenant.participants.ada?.id },
      );
    const storm = await Promise.all(
      Array.from({ length: 20 }, (_, turn) =>
        at(turn).graphql<Opened>(tenant.apiKey, EXTEND, {
          id: turn % 2 === 0 ? one.thread.id : other.thread.id,
          ids: ids(turn % 2 === 0 ? [c] : [a]),
          key: turn < 4 ? `key ${round}` : null,
        }),
      ),
    );
    expect(new Set(storm.map(must).map(({ thread }) => thread.id)).size).toBe(1);
  }
});
