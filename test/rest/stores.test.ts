import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant, startApp, type Tenant } from '../support/app.ts';
import { createPadWorld } from '../support/padApi.ts';
import { LOSES_NOTHING, type RedisServer, startRedis } from '../support/redis.ts';
import { createRestClient, parsedAs, type RestClient, type RestReply } from '../support/rest.ts';
import { until } from '../support/until.ts';

/** What REST says of its stores, and leaves in them. */
let redis: RedisServer;
let server: Awaited<ReturnType<typeof startApp>>;
let tenant: Tenant;
let owner: RestClient;
beforeAll(async () => {
  redis = await startRedis(LOSES_NOTHING);
  server = await startApp({ REDIS_URL: redis.url });
  tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT' });
  owner = createRestClient(server, tenant.apiKey);
});
afterAll(async () => {
  await server.close();
  await redis.stop();
});

const newPad = async (): Promise<{ padId: string; threadId: string }> => {
  const { id } = parsedAs('Thread', await owner.post('/v1/threads', {}));
  const threadId = String(id);
  const made = parsedAs('ScratchpadRead', await owner.post('/v1/scratchpads', { thread_id: threadId }));
  return { padId: String(made.id), threadId };
};
const fill = async (padId: string): Promise<void> => {
  await owner.put(`/v1/scratchpads/${padId}/content`, { content: 'plan' });
  await owner.post(`/v1/scratchpads/${padId}/entries`, { content: 'note' }, { 'idempotency-key': 'k' });
};

describe('with Redis away', () => {
  test('what needs it says so within two seconds, and works again when it is back', async () => {
    const { padId, threadId } = await newPad();
    await fill(padId);
    const pad = `/v1/scratchpads/${padId}`;
    await redis.kill9();
    try {
      const asks: (() => Promise<RestReply>)[] = [
        () => owner.get(`${pad}/content`),
        () => owner.put(`${pad}/content`, { content: 'x' }),
        () => owner.post(`${pad}/entries`, { content: 'x' }),
        () => owner.get(`${pad}/entries`),
        () => owner.get(`${pad}/entries?limit=1`),
        () => owner.post(`${pad}/clear`),
        () => owner.post('/v1/tools/scratchpad/read', { thread_id: threadId }),
        () => owner.post('/tools/scratchpad/append', { thread_id: threadId, note: 'x' }),
      ];
      for (const ask of asks) {
        const asked = performance.now();
        const { status, code, headers, text } = await ask();
        expect([status, code, headers.get('retry-after')]).toEqual([503, 'UNAVAILABLE', '1']);
        expect(text).not.toMatch(/sock|ECONN|ioredis/);
        expect(performance.now() - asked).toBeLessThan(3_000);
      }
      expect((await owner.get(pad)).status).toBe(200);
      expect((await owner.patch(pad, { meta_data: { a: 1 } })).status).toBe(200);
      expect((await owner.get('/v1/scratchpads')).status).toBe(200);
      expect((await owner.get(`/v1/threads/${threadId}/events`)).status).toBe(200);
    } finally {
      await redis.restart();
    }
    await until(async () => (await owner.get(`${pad}/content`)).status === 200);
    const { data } = parsedAs('List', await owner.get(`${pad}/entries`));
    expect((data as { content: string }[]).map(({ content }) => content)).toEqual(['note']);
  });
});

test('a message that derives from an entry is refused with Redis away, unless it was posted already', async () => {
  const world = await createPadWorld(server);
  const { entry } = await world.append(world.token('ada'), 'a finding');
  const POST = 'mutation ($input: PostMessageInput!) { postMessage(input: $input) { message { id } } }';
  const input = { threadId: world.threadId, content: 'derived', sourceIds: [entry.id], idempotencyKey: 'k' };
  const posted = await world.must(world.token('ben'), POST, { input });
  await redis.kill9();
  try {
    expect(await world.must(world.token('ben'), POST, { input })).toEqual(posted);
    for (const [other, code] of [
      [{ idempotencyKey: 'new' }, 'UNAVAILABLE'],
      [{ content: 'another' }, 'IDEMPOTENCY_KEY_REUSED'],
    ] as const)
      expect(await world.refused(world.token('ben'), POST, { input: { ...input, ...other } })).toMatchObject({
        code,
      });
  } finally {
    await redis.restart();
  }
  const later = { input: { ...input, idempotencyKey: 'new' } };
  await until(async () => !(await server.graphql(world.token('ben'), POST, later)).errors);
});

describe('what is deleted', () => {
  test.for([
    ['a scratchpad', (padId: string) => `/v1/scratchpads/${padId}`],
    ['a thread', (_: string, threadId: string) => `/v1/threads/${threadId}`],
    ['a thread at its other address', (_: string, threadId: string) => `/api/v1/threads/${threadId}`],
  ] as const)('leaves nothing in Redis but its tombstone: %s', async ([, path]) => {
    const { padId, threadId } = await newPad();
    await fill(padId);
    const client = new Redis(redis.path);
    try {
      const keys = () => client.keys(`*${padId}*`);
      expect((await keys()).length).toBeGreaterThan(2);
      expect((await owner.delete(path(padId, threadId))).status).toBe(200);
      await until(async () => (await keys()).every((key) => key.endsWith(':gone')));
      expect((await owner.get(`/v1/scratchpads/${padId}`)).status).toBe(404);
      expect((await owner.post(`/v1/scratchpads/${padId}/entries`, { content: 'late' })).status).toBe(404);
      expect((await keys()).every((key) => key.endsWith(':gone'))).toBe(true);
    } finally {
      client.disconnect();
    }
  });
});
