import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Server as McpServer } from '@modelcontextprotocol/server';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createConnections } from '../../src/http/connections.ts';
import { createOrigins } from '../../src/http/cors.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { createOutgoing } from '../../src/http/outgoing.ts';
import type { Services } from '../../src/services.ts';
import { DomainError } from '../../src/shared/errors.ts';
import { log } from '../../src/shared/log.ts';
import { requireCaller } from '../../src/tools/mcp/caller.ts';
import { createMcpDoor } from '../../src/tools/mcp/door.ts';
import { createEventLog, PRIMING } from '../../src/tools/mcp/eventLog.ts';
import { notifyOf, presentOf } from '../../src/tools/mcp/notifying.ts';
import { resumeAnswers } from '../../src/tools/mcp/resuming.ts';
import { sessionKey } from '../../src/tools/mcp/sessions.ts';
import { followSubscriptions } from '../../src/tools/mcp/subscriptions.ts';
import { listen, plainMcp } from '../support/mcp.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';

/** What keeps a session’s streams going, whatever happens beside them. */
let scene: Scene;
let thread = '';
beforeAll(async () => {
  scene = await toolScene({ MAX_SOCKETS_PER_CREDENTIAL: '3' });
  thread = await scene.open('ada', 'scout');
});
afterAll(() => scene.server.close());

const TIMELINE = 'threadpad://timeline';
const SCRATCHPAD = 'threadpad://scratchpad';

const callerOf = async (handle: string) => {
  const session = await scene.server.services.authentication.openSession({
    authorization: `Bearer ${scene.tokenOf(handle)}`,
    apiKey: undefined,
    actAs: undefined,
  });
  return requireCaller(scene.server.services, session, thread);
};

describe('a resource', () => {
  test.for([
    ['the store is away', new DomainError('UNAVAILABLE', 'The database is not available.')],
    ['something fails that nobody foresaw', new Error('of a new kind')],
  ] as const)('is followed again when following began while %s', async ([, failure]) => {
    const { services } = scene.server;
    const caller = await callerOf('scout');
    let failures = 1;
    const failing: Services = {
      ...services,
      followTimeline: async (...given) => {
        if (failures-- > 0) throw failure;
        return services.followTimeline(...given);
      },
    };
    const warned: string[] = [];
    const own = Object.assign(Object.create(log) as typeof log, {
      warn: (_facts: object, message: string) => void warned.push(message),
    });
    const over = new AbortController();
    const told: string[] = [];
    const tell = async (_uri: string, position: string): Promise<void> => void told.push(position);
    const done = notifyOf(TIMELINE, '', { services: failing, caller, log: own, tell }, over.signal);
    // What happened meanwhile is told as a change, without a position.
    await until(() => told.includes(`${thread} `));
    await scene.post(thread, 'ada', 'now');
    await until(() => told.length > 1);
    over.abort();
    await done;
    expect(warned).toEqual(['A resource cannot be followed; it is tried again.']);
    caller.session.close();
  });

  test('that was deleted is told again once there is another in its place', async () => {
    const padded = await scene.open('bo', 'scout');
    const client = plainMcp(scene.server, scene.tokenOf('scout'), padded);
    await client.open();
    await client.request('resources/subscribe', { uri: SCRATCHPAD });
    const stream = await listen(scene.server, scene.tokenOf('scout'), client.sessionId, padded);
    let count = 0;
    const toldMore = async (): Promise<void> => {
      const told = () => stream.events.filter(({ data }) => data.includes(SCRATCHPAD)).length;
      await until(() => told() > count);
      count = told();
    };
    for (const _ of [1, 2]) {
      const padId = await scene.padOf(padded);
      await toldMore();
      await scene.ask(
        'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedId } }',
        { id: padId },
      );
      await toldMore();
    }
    stream.stop();
    await stream.over;
  });
});

describe('a session', () => {
  const open = async () => {
    const { mcpSessions: sessions } = scene.server.services;
    const { actor, session: credential } = await callerOf('scout');
    credential.close();
    const session = sessions.fresh(actor, thread);
    await sessions.open(session);
    return { sessions, session, actor };
  };

  test('has one stream of notifications, however many come at once', async () => {
    const { services } = scene.server;
    const { sessions, session } = await open();
    const caller = await callerOf('scout');
    const told: number[] = [];
    const left: number[] = [];
    const streams = [0, 1, 2, 3].map((index) => {
      const stop = new AbortController();
      const leave = (): void => {
        if (!stop.signal.aborted) left.push(index);
        stop.abort();
      };
      const server = {
        sendResourceUpdated: async () => void told.push(index),
        sendResourceListChanged: async () => undefined,
      } as unknown as McpServer;
      const done = followSubscriptions({ services, caller, log, server, session }, leave, stop.signal);
      return { index, stop, done };
    });
    await until(() => left.length === 3);
    const [stays] = streams.filter(({ index }) => !left.includes(index));
    await sessions.subscribe(session, TIMELINE, await presentOf(TIMELINE, services, caller));
    await scene.post(thread, 'ada', 'for one');
    await until(() => told.length > 0);
    expect(told).toEqual([stays?.index]);
    await sessions.end(session);
    await Promise.all(streams.map(({ done }) => done));
    expect(left).toHaveLength(4);
    caller.session.close();
  });

  test('has no stream that outlives the server’s drain, however early that comes', async () => {
    const { services } = scene.server;
    const { session } = await open();
    const draining = new AbortController();
    const drainedMeanwhile: Services = {
      ...services,
      draining: draining.signal,
      mcpSessions: {
        ...services.mcpSessions,
        find: async (...given) => {
          const found = await services.mcpSessions.find(...given);
          draining.abort(0);
          return found;
        },
      },
    };
    const door = createMcpDoor({
      services: drainedMeanwhile,
      authentication: services.authentication,
      connections: createConnections(),
      origins: createOrigins([]),
      mayBeSentTo: () => true,
      isDraining: () => false,
      metrics: createMetrics(),
      log,
    });
    const server = createServer(async (request, response) => {
      const path = request.url ?? '';
      const asked = { method: request.method ?? '', path, query: new URLSearchParams(), requestId: 'r' };
      await door.serve({ request, response, ...asked, outgoing: createOutgoing() });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const stream = await listen({ url }, scene.tokenOf('scout'), session.id, thread);
    expect(stream.status).toBe(200);
    await stream.over;
    server.close();
    server.closeAllConnections();
  }, 20_000);

  test('lives on with all that it subscribed to', async () => {
    const { redis } = scene.server.services;
    const { sessions, session, actor } = await open();
    await sessions.subscribe(session, TIMELINE, 'here');
    const keys = (['session', 'subscriptions'] as const).map((part) => sessionKey(session, part));
    for (const key of keys) await redis.expire(key, 100);
    expect(await sessions.find(session.id, actor, null)).toBe(null);
    for (const key of keys) expect(await redis.ttl(key)).toBeLessThanOrEqual(100);
    expect(await sessions.find(session.id, actor, thread)).toEqual(session);
    for (const key of keys) expect(await redis.ttl(key)).toBeGreaterThan(80_000);
  });

  test('keeps how far it was told only of what it still wants to hear of', async () => {
    const { sessions, session } = await open();
    await sessions.subscribe(session, TIMELINE, 'here');
    await sessions.subscribe(session, TIMELINE, 'elsewhere');
    expect([...(await sessions.subscriptions(session))]).toEqual([[TIMELINE, 'here']]);
    await sessions.told(session, TIMELINE, 'further');
    expect([...(await sessions.subscriptions(session))]).toEqual([[TIMELINE, 'further']]);
    await sessions.unsubscribe(session, TIMELINE);
    await sessions.told(session, TIMELINE, 'further still');
    expect([...(await sessions.subscriptions(session))]).toEqual([]);
  });

  test('that was ended keeps nothing, whatever comes after', async () => {
    const { sessions, session } = await open();
    await sessions.end(session);
    await expect(sessions.subscribe(session, TIMELINE, 'here')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await sessions.told(session, TIMELINE, 'here');
    expect(await scene.server.services.redis.keys(`*${session.id}*`)).toEqual([]);
  });

  test('that cut its calls off may connect again at once, and is bounded all the same', async () => {
    const token = scene.tokenOf('rex');
    const waiting = await scene.open('ada', 'rex');
    const client = plainMcp(scene.server, token, waiting);
    await client.open();
    const cutOff = async (id: number): Promise<number> => {
      const params = { name: 'next_message', arguments: { wait_seconds: 20 } };
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
      const stream = await listen(scene.server, token, client.sessionId, waiting, { method: 'POST', body });
      if (stream.status === 200) await until(() => stream.events.length > 0);
      stream.stop();
      await stream.over;
      return stream.status;
    };
    for (const id of [1, 2, 3]) expect(await cutOff(id)).toBe(200);
    await until(async () => (await client.request('tools/list')).status === 200);
    // As many again, which nobody takes over.
    for (let id = 4; (await cutOff(id)) !== 429; id += 1) expect(id).toBeLessThan(20);
  });
});

test('a resume waits as long, however wrong the clock of its process is', async () => {
  const session = { ownerId: scene.tenant.userId, id: 'r'.repeat(43) };
  const { redis } = scene.server.services;
  await redis.set(sessionKey(session, 'session'), 'x', 'EX', 100);
  const events = createEventLog(redis, session, log, [7]);
  const place = await events.locate(await events.add('calls', PRIMING));
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
  try {
    let looks = 0;
    const watched = {
      ...events,
      after: (position: string) => {
        looks += 1;
        return events.after(position);
      },
    };
    const text = resumeAnswers(watched, place, new AbortController().signal).text();
    await Promise.race([text, until(() => looks > 1)]);
    await createEventLog(redis, session, log).add('calls', { jsonrpc: '2.0', id: 7, result: { is: 'late' } });
    expect(await text).toContain('late');
    expect(await text).not.toContain('error');
  } finally {
    vi.useRealTimers();
  }
});
