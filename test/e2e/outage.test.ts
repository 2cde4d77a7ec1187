import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant, startProcess, type Tenant } from '../support/app.ts';
import { ADMIN_TOKEN } from '../support/identity.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type Proxy as Link, startProxy } from '../support/proxy.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { LOSES_NOTHING, type RedisServer, startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { watchSocket, watchStream } from '../support/watchers.ts';

/** The whole product as a process, on stores of its own that are taken away from it in all ways. */
let postgres: PostgresServer;
let redis: RedisServer;
let postgresLink: Link;
let redisLink: Link;
let server: Awaited<ReturnType<typeof startProcess>>;
let tenant: Tenant;
let threadId: string;
beforeAll(async () => {
  [postgres, redis] = await Promise.all([startPostgres({ durable: true }), startRedis(LOSES_NOTHING)]);
  [postgresLink, redisLink] = await Promise.all([startProxy(postgres.socketFile), startProxy(redis.path)]);
  server = await startProcess(
    {
      databaseUrl: `postgresql://postgres@localhost:5432/postgres?host=${encodeURIComponent(postgresLink.folder)}`,
      redisUrl: `unix://${redisLink.path}`,
    },
    { LOG_LEVEL: 'trace' },
  );
  tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT' });
  const { ada, scout } = tenant.participants;
  const { data } = await server.graphql<{ openThread: { thread: { id: string } } }>(
    tenant.apiKey,
    'mutation($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
    { ids: [ada?.id, scout?.id] },
  );
  threadId = data?.openThread.thread.id ?? '';
});
afterAll(async () => {
  await server.close();
  await Promise.all([postgresLink[Symbol.asyncDispose](), redisLink[Symbol.asyncDispose]()]);
  await Promise.all([postgres.stop(), redis.stop()]);
});

const origin = (): string => server.url.replace('/graphql', '');

/** What a request answered, and that it took no longer than two seconds. */
const timely = async <T>(what: string, work: Promise<T>): Promise<T> => {
  const startedAt = performance.now();
  const result = await work;
  const took = Math.round(performance.now() - startedAt);
  expect([what, took]).toEqual([what, expect.toSatisfy((ms: number) => ms < 2_000)]);
  return result;
};

const ready = async (): Promise<{ status: number; needs: Record<string, string> }> => {
  const response = await fetch(`${origin()}/readyz`);
  const { needs } = (await response.json()) as { needs: Record<string, string> };
  return { status: response.status, needs };
};

let count = 0;
/** Posts, and says what came of it: the new number, or the code. */
const post = async (): Promise<number | string> => {
  const { data, errors } = await server.graphql<{ postMessage: { message: { seq: number } } }>(
    tenant.participants.scout?.token ?? '',
    'mutation($id: ID!, $text: String!) { postMessage(input: { threadId: $id, content: $text }) { message { seq } } }',
    { id: threadId, text: `message ${++count}` },
  );
  return data?.postMessage.message.seq ?? errors?.[0]?.extensions?.code ?? 'nothing';
};

const read = async (): Promise<string> => {
  const { errors } = await server.graphql(tenant.apiKey, '{ threads { nodes { id unreadCount } } }');
  return errors?.[0]?.extensions?.code ?? 'OK';
};

const WAYS = ['killed', 'stopped without a word', 'behind a dead link'] as const;
type Way = (typeof WAYS)[number];

const take = (store: PostgresServer | RedisServer, link: Link): Record<Way, () => Promise<void> | void> => ({
  killed: () => store.kill9(),
  'stopped without a word': () => store.pause(),
  'behind a dead link': () => link.blackHole(),
});
const giveBack = (
  store: PostgresServer | RedisServer,
  link: Link,
): Record<Way, () => Promise<void> | void> => ({
  killed: () => store.restart(),
  'stopped without a word': () => store.resume(),
  'behind a dead link': () => {
    link.thaw();
    link.cut();
  },
});

/** One that no process remembers yet. */
const newToken = async (): Promise<string> => {
  const { data } = await server.graphql<{ createParticipantToken: { token: string } }>(
    tenant.apiKey,
    'mutation($id: ID!) { createParticipantToken(input: { participantId: $id }) { token } }',
    { id: tenant.participants.ada?.id },
  );
  return data?.createParticipantToken.token ?? '';
};

const follow = async () => {
  const token = tenant.participants.ada?.token ?? '';
  return [
    await watchSocket(server, token, threadId),
    await watchStream(server, { token }, threadId),
  ] as const;
};

const expectWhole = ({ events }: { events: readonly { seq: number }[] }, last: number): void => {
  const first = events[0]?.seq ?? 0;
  expect(events.map(({ seq }) => seq)).toEqual(
    Array.from({ length: last - first + 1 }, (_, index) => first + index),
  );
};

describe('the database', () => {
  test.for(WAYS)(
    '%s: UNAVAILABLE within 2 s, all else goes on, and so does everything when it is back',
    async (way) => {
      const followers = await follow();
      const [before, token] = [await post(), await newToken()];
      expect(before).toBeTypeOf('number');
      await take(postgres, postgresLink)[way]();
      const [posted, listed, state, alive, page] = await Promise.all([
        timely('a mutation', post()),
        timely('a query', read()),
        timely('readiness', ready()),
        timely('liveness', fetch(`${origin()}/healthz`)),
        timely('metrics', fetch(`${origin()}/metrics`)),
      ]);
      expect([posted, listed]).toEqual(['UNAVAILABLE', 'UNAVAILABLE']);
      expect(state).toEqual({ status: 503, needs: { database: 'does not answer', redis: 'ready' } });
      expect([alive.status, page.status]).toEqual([200, 200]);
      // Whoever comes now is told to come back, not that its credential is dead.
      const socket = await openRawSocket(server.socketUrl);
      socket.send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
      expect((await timely('a new socket', socket.closed)).code).toBe(1013);
      expect(await timely('a second query', read())).toBe('UNAVAILABLE');

      await giveBack(postgres, postgresLink)[way]();
      await until(async () => (await ready()).status === 200, 50);
      expect(await read()).toBe('OK');
      const after = await post();
      if (typeof after !== 'number') throw new Error(after);
      for (const follower of followers) {
        await follower.reached(after);
        expectWhole(follower, after);
        expect(follower.reason()).toBeNull();
        follower.stop();
      }
      expect(server.process.exitCode).toBeNull();
    },
  );
});

describe('Redis', () => {
  test.for(WAYS)('%s: the record and its followers go on without it, readiness says so', async (way) => {
    const followers = await follow();
    await take(redis, redisLink)[way]();
    const state = await timely('readiness', ready());
    expect(state).toEqual({ status: 503, needs: { database: 'ready', redis: 'does not answer' } });
    const posted = [await timely('a mutation', post()), await timely('another', post())];
    expect(await timely('a query', read())).toBe('OK');
    const last = posted[1];
    if (typeof last !== 'number') throw new Error(String(last));
    const late = await watchSocket(server, tenant.participants.ada?.token ?? '', threadId);
    const third = await post();
    if (typeof third !== 'number') throw new Error(third);
    for (const follower of [...followers, late]) await follower.reached(third);

    await giveBack(redis, redisLink)[way]();
    await until(async () => (await ready()).status === 200, 50);
    const after = await post();
    if (typeof after !== 'number') throw new Error(after);
    for (const follower of [...followers, late]) {
      await follower.reached(after);
      expectWhole(follower, after);
      expect(follower.reason()).toBeNull();
      follower.stop();
    }
    expect(server.process.exitCode).toBeNull();
  });
});

test('nothing of all this was left unhandled, or told to the log that is nobody’s business', async () => {
  const [secret, words] = ['tp_key_secretsecretsecret', 'words of somebody'];
  await server.graphql(secret, '{ viewer { user { id } } }');
  await server.graphql(tenant.apiKey, `{ viewer { user(words: "${words}") { id } } }`);
  await server.graphql(
    tenant.apiKey,
    'mutation($input: PostMessageInput!) { postMessage(input: $input) { cursor } }',
    {
      input: {
        threadId,
        as: tenant.participants.ada?.id,
        content: words,
        data: { words },
        context: { task: `${words}\u0000` },
      },
    },
  );
  await fetch(`${server.url}?${new URLSearchParams({ token: secret, query: `{ a(words: "${words}") }` })}`);
  const socket = await openRawSocket(server.socketUrl);
  socket.send({ type: 'connection_init', payload: { authorization: `Bearer ${secret}` } });
  await socket.closed;
  const lines = server.log.join('\n');
  expect(server.log.length).toBeGreaterThan(10);
  expect(lines).not.toMatch(/not handled|unhandled/i);
  expect(lines).not.toContain('unexpected error');
  const tokens = Object.values(tenant.participants).map(({ token }) => token);
  for (const hidden of [tenant.apiKey, ...tokens, secret, words, ADMIN_TOKEN])
    expect(lines).not.toContain(hidden);
  expect(lines).not.toMatch(/message \d/);
});
