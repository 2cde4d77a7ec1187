import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant, type Tenant } from '../support/app.ts';
import { type Cluster, openThread, startCluster } from '../support/cluster.ts';
import { expectCommitOrder, expectWholeRecord, type LoadOptions, startLoad } from '../support/load.ts';
import { answered } from '../support/oracle/callers.ts';
import { createFollowing, Following, TRANSPORTS } from '../support/oracle/live.ts';
import { readRecord } from '../support/oracle/record.ts';
import type { OracleThread } from '../support/oracle/rules.ts';
import { createRandom } from '../support/random.ts';

// Invariants of delivery on two server processes with a real Postgres and Redis: whatever is killed, paused or cut
// under load, each follower gets what the rules say it may see, once, in order. Followers are stock clients.

const ROUNDS = Number(process.env.DELIVERY_ROUNDS ?? 3);
const SNAPSHOTS = 1_000;
const MEMBERS = ['w0', 'w1', 'w2', 'w3', 'away0', 'away1', 'idle'];

let cluster: Cluster;
let tenant: Tenant;
/** Each follower's present token. */
let tokens: Map<string, string>;

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster[Symbol.asyncDispose]());

const tokenOf = (handle: string | null): string =>
  handle === null ? tenant.apiKey : (tokens.get(handle) ?? tenant.participants[handle]?.token ?? '');

interface Scene {
  readonly thread: OracleThread;
  readonly load: ReturnType<typeof startLoad>;
}

/** Everybody follows a thread over both transports while it is written to and `trouble` happens. */
const underLoad = async (
  trouble: (scene: Scene) => Promise<void>,
  options: Partial<LoadOptions> = {},
): Promise<void> => {
  tokens = new Map();
  tenant = await createTenant(
    cluster.server(),
    Object.fromEntries(MEMBERS.map((handle) => [handle, 'AGENT' as const])),
  );
  const { id, start } = await openThread(cluster, tenant);
  const thread: OracleThread = { id, members: MEMBERS, events: [], acknowledged: new Map() };
  const clients = [...MEMBERS, null].flatMap((viewer) =>
    TRANSPORTS.map((transport) => ({
      transport,
      viewer,
      client: createFollowing(transport, { place: cluster.place, token: () => tokenOf(viewer) }),
    })),
  );
  const followings = clients.map(
    ({ client, viewer, transport }) =>
      new Following(client, { viewer, thread, after: { seq: 0, cursor: start } }, transport),
  );
  await Promise.all(followings.map((following) => following.begun()));
  const load = startLoad(cluster, tenant, {
    threadId: id,
    writers: ['w0', 'w1', 'w2', 'w3'],
    restless: ['away0', 'away1'],
    pauseMs: 5,
    ...options,
  });
  try {
    await load.more(20);
    await trouble({ thread, load });
    if (!load.isOver()) await load.more(20);
    await load.stop();
    await readRecord(
      { graphql: (token, query, variables) => cluster.graphql(token ?? '', query, variables) },
      tenant,
      id,
      thread,
    );
    expectWholeRecord(thread, load.acknowledged);
    for (const following of followings) await following.compare();
  } finally {
    await load.stop();
    await Promise.all(clients.map(({ client }) => client.dispose()));
  }
};

const admin = async (...words: [string, ...string[]]): Promise<void> => {
  const client = new Redis(cluster.redis.path);
  await client.call(...words);
  client.disconnect();
};

describe('nothing is lost or doubled, under load, when', () => {
  test('Redis is killed and comes back', async () => {
    await underLoad(async ({ load }) => {
      for (let round = 0; round < ROUNDS; round++) {
        await cluster.redis.kill9();
        await load.more(60);
        await cluster.redis.restart();
        await load.more(60);
      }
    });
  });

  test('Redis is paused', async () => {
    await underLoad(async ({ load }) => {
      for (let round = 0; round < ROUNDS; round++) {
        cluster.redis.pause();
        await load.more(60);
        cluster.redis.resume();
        await load.more(60);
      }
    });
  });

  test('the links for messages are cut', async () => {
    await underLoad(async ({ load }) => {
      for (let round = 0; round < 10 * ROUNDS; round++) {
        await admin('CLIENT', 'KILL', 'TYPE', 'pubsub');
        await load.more(10);
      }
    });
  });

  test('the followers are cut', async () => {
    const random = createRandom('Cuts of followers');
    await underLoad(async ({ load }) => {
      for (let round = 0; round < 20 * ROUNDS; round++) {
        cluster.proxy.cut(() => random() < 0.3);
        await load.more(10);
      }
    });
  });

  test('credentials are revoked, and followers come back with fresh ones', async () => {
    await underLoad(async ({ load }) => {
      for (const handle of MEMBERS) {
        const { data } = await cluster.graphql<{ createParticipantToken: { token: string } }>(
          tenant.apiKey,
          'mutation ($id: ID!) { createParticipantToken(input: { participantId: $id }) { token } }',
          { id: tenant.participants[handle]?.id },
        );
        const { data: listed } = await cluster.graphql<{
          credentials: { nodes: { id: string; prefix: string }[] };
        }>(tenant.apiKey, 'query ($id: ID!) { credentials(participantId: $id) { nodes { id prefix } } }', {
          id: tenant.participants[handle]?.id,
        });
        const old = tokenOf(handle);
        const ended = listed?.credentials.nodes.find(({ prefix }) => old.startsWith(prefix));
        tokens.set(handle, data?.createParticipantToken.token ?? '');
        // Writers go on with the token they have.
        if (handle.startsWith('w')) continue;
        await cluster.graphql(
          tenant.apiKey,
          'mutation ($id: ID!) { revokeCredential(input: { credentialId: $id }) { credential { id } } }',
          { id: ended?.id },
        );
        await load.more(20);
      }
    });
  });

  test('servers drain and others take their place', { timeout: 120_000 + ROUNDS * 60_000 }, async () => {
    await underLoad(async ({ load }) => {
      for (let round = 0; round < ROUNDS; round++) {
        await cluster.replace(round % 2 === 0 ? 0 : 1, 'DRAIN');
        await load.more(40);
      }
    });
  });

  test('servers are killed, at whatever they were', { timeout: 120_000 + ROUNDS * 100_000 }, async () => {
    await underLoad(async ({ load }) => {
      for (let round = 0; round < 2 * ROUNDS; round++) {
        await cluster.replace(round % 2 === 0 ? 0 : 1, 'KILL');
        await load.more(40);
      }
    });
  });
});

test('to read and then to follow from where one read leaves no hole, a thousand times under load', async () => {
  await underLoad(async ({ thread, load }) => {
    const clients = TRANSPORTS.map((transport) =>
      createFollowing(transport, { place: cluster.place, token: () => tokenOf('idle') }),
    );
    const followings: Following[] = [];
    const readAndFollow = async (turn: number): Promise<void> => {
      const answer = await cluster.graphql<{
        thread: { timeline: { end: string; events: { nodes: { seq: number; cursor: string }[] } } };
      }>(
        tokenOf('idle'),
        'query ($id: ID!) { thread(id: $id) { timeline { events(last: 1) { nodes { seq cursor } } end } } }',
        { id: thread.id },
      );
      const { end, events } = answered(answer).thread.timeline;
      const [last] = events.nodes;
      expect(last?.cursor).toBe(end);
      const client = clients[turn % clients.length];
      if (last === undefined || client === undefined) throw new Error('Nothing was read.');
      const following = new Following(client, { viewer: 'idle', thread, after: last });
      followings.push(following);
      await following.begun();
      await following.received(1);
      following.stop();
    };
    for (let turn = 0; turn < SNAPSHOTS; turn += 25)
      await Promise.all(Array.from({ length: 25 }, (_, index) => readAndFollow(turn + index)));
    await load.stop();
    await readRecord(cluster, tenant, thread.id, thread);
    expect(followings).toHaveLength(SNAPSHOTS);
    for (const following of followings) following.compareSoFar();
    await Promise.all(clients.map((client) => client.dispose()));
  });
});

test('64 writers on two processes: positions without a gap, in the order of commits', async () => {
  const writers = Array.from({ length: 64 }, (_, index) => `w${index}`);
  tenant = await createTenant(
    cluster.server(),
    Object.fromEntries(writers.map((handle) => [handle, 'HUMAN' as const])),
  );
  const { id } = await openThread(cluster, tenant);
  const load = startLoad(cluster, tenant, { threadId: id, writers });
  await load.more(64 * 10 * ROUNDS);
  await load.stop();
  const thread = await readRecord(cluster, tenant, id);
  expectWholeRecord(thread, load.acknowledged);
  expect(thread.events).toHaveLength(load.acknowledged.length + 1);
  expectCommitOrder(load.acknowledged);
});
