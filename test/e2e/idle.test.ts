import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { createTenant, type Tenant } from '../support/app.ts';
import { type BareSocket, type Message, openBareSocket } from '../support/bareSocket.ts';
import { type Proxied, startBehindProxy } from '../support/behindProxy.ts';
import { openThread, ROOMY } from '../support/cluster.ts';

// What subscriptions cost that do nothing, and what is left of those that go.

/** What runs every half minute whatever goes on, and once a while after a credential was used. */
const SELDOM = new Set(['empty_deleted', 'empty_inboxes', 'scratchpad_outboxes_due', 'credentials_last_use']);

let proxied: Proxied;
let tenant: Tenant;
let redis: Redis;
/** What ran before anybody asked anything. */
let untouched: Awaited<ReturnType<typeof idlingFor>>;
const HANDLES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

beforeAll(async () => {
  // Little room, so that garbage is collected often.
  proxied = await startBehindProxy({
    ...ROOMY,
    NODE_OPTIONS: '--max-old-space-size=320 --max-semi-space-size=4',
  });
  untouched = await idlingFor('runs_due', 4);
  tenant = await createTenant(
    proxied.server,
    Object.fromEntries([...HANDLES.map((handle) => [handle, 'HUMAN'] as const), ['bot', 'AGENT'] as const]),
  );
  redis = new Redis(new URL(inject('redisUrl')).pathname);
});
afterAll(async () => {
  redis.disconnect();
  await proxied[Symbol.asyncDispose]();
});

const FOLLOW = /* GraphQL */ `
  subscription ($id: ID!) { timeline(threadId: $id) { cursor event { id seq ... on Message { content sender { handle } } } } }`;

const gauges = async (): Promise<Record<string, number>> => {
  const text = await (await fetch(proxied.server.url.replace('/graphql', '/metrics'))).text();
  return Object.fromEntries(
    ['sockets', 'subscriptions', 'tails', 'channels'].map((name) => [
      name,
      Number(new RegExp(`^threadpad_${name} (.*)$`, 'm').exec(text)?.[1]),
    ]),
  );
};

/** The gauges are moved when a socket's end is noticed, a moment after it was closed. */
const gaugesBecome = async (expected: Record<string, number>): Promise<void> => {
  await expect.poll(gauges, { timeout: 20_000, interval: 50 }).toEqual(expect.objectContaining(expected));
};

const channelsOf = async (threadIds: readonly string[]): Promise<number> => {
  const all = (await redis.pubsub('CHANNELS', '*')) as string[];
  return all.filter((channel) => threadIds.some((id) => channel.includes(id))).length;
};

const ofToken = (turn: number): string =>
  tenant.participants[HANDLES[turn % HANDLES.length] ?? '']?.token ?? '';

const subscribeAll = async (
  sockets: readonly BareSocket[],
  count: number,
  threadOf: (turn: number) => string,
) => {
  const begun: Promise<Message | null>[] = [];
  for (let turn = 0; turn < count; turn++)
    begun.push(
      sockets[turn % sockets.length]?.subscribe(`s${turn}`, FOLLOW, { id: threadOf(turn) }) ??
        Promise.reject(),
    );
  const refused = (await Promise.all(begun)).filter((message) => message?.type !== 'next');
  expect(refused).toEqual([]);
};

const openSockets = (count: number): Promise<BareSocket[]> =>
  Promise.all(
    Array.from({ length: count }, (_, turn) => openBareSocket(proxied.server.socketUrl, ofToken(turn))),
  );

test('a process that nobody has asked anything looks for runs that are due, and for little else', () => {
  const { runs_due: looks = 0, ...others } = untouched.counts;
  expect(looks).toBeLessThanOrEqual(untouched.seconds / 0.9 + 2);
  expect(Object.keys(others).filter((name) => !SELDOM.has(name))).toEqual([]);
});

test('a thousand subscriptions to one thread: one channel, a bounded number of statements, one read for all', async () => {
  const { id } = await openThread(proxied.server, tenant);
  const sockets = await openSockets(20);
  const began = await proxied.during(() => subscribeAll(sockets, 1_000, () => id));
  expect(began.length, began.join('\n')).toBeLessThanOrEqual(60);
  expect(await gauges()).toEqual({
    sockets: 20,
    subscriptions: 1_000,
    tails: 1,
    channels: expect.any(Number) as number,
  });
  expect(await channelsOf([id])).toBe(1);

  const heard = Promise.all(sockets.map((socket) => socket.heard(50)));
  const told = await proxied.during(async () => {
    await proxied.server.graphql(
      ofToken(0),
      'mutation ($id: ID!) { postMessage(input: { threadId: $id, content: "Hello" }) { cursor } }',
      { id },
    );
    await heard;
  });
  expect(told.length, told.join('\n')).toBeLessThanOrEqual(30);
  for (const socket of sockets) socket.close();
  await gaugesBecome({ sockets: 0, subscriptions: 0, tails: 0 });
  expect(await channelsOf([id])).toBe(0);
});

test('five thousand idle subscriptions cause no statement of their own', async () => {
  const threads: string[] = [];
  for (let bits = 1; threads.length < 100; bits++) {
    const members = HANDLES.filter((_, index) => index === 0 || (bits & (1 << (index - 1))) !== 0);
    if (members.length >= 2) threads.push((await openThread(proxied.server, tenant, members)).id);
  }
  // `a` is in all of them.
  const sockets = await Promise.all(
    Array.from({ length: 25 }, () => openBareSocket(proxied.server.socketUrl, ofToken(0))),
  );
  await subscribeAll(sockets, 5_000, (turn) => threads[turn % threads.length] ?? '');
  await gaugesBecome({ sockets: 25, subscriptions: 5_000, tails: 100 });
  expect(await channelsOf(threads)).toBe(100);

  // The revocation log every 400 ms, with which it learns of runs that are due, and the heads of all that is followed
  // every second.
  const { counts, seconds } = await idlingFor('timeline_heads', 5);
  const { revocations_read: readings = 0, timeline_heads: heads = 0, ...others } = counts;
  expect(readings).toBeLessThanOrEqual(seconds / 0.4 + 2);
  expect(heads).toBeLessThanOrEqual(seconds + 2);
  expect(Object.keys(others).filter((name) => !SELDOM.has(name))).toEqual([]);
  expect(Object.values(others).filter((count) => count > 1)).toEqual([]);
  for (const socket of sockets) socket.close();
  await gaugesBecome({ sockets: 0, subscriptions: 0, tails: 0 });
  expect(await channelsOf(threads)).toBe(0);
});

test('inboxes in standby, however many, cost one statement a second together', async () => {
  const follow = 'subscription { inbox(standby: true) { notice } }';
  const token = tenant.participants.bot?.token ?? '';
  const sockets = await Promise.all(
    Array.from({ length: 2 }, () => openBareSocket(proxied.server.socketUrl, token)),
  );
  for (let turn = 0; turn < 300; turn++)
    sockets[turn % 2]?.subscribe(`s${turn}`, follow, {}).catch(() => undefined);
  await gaugesBecome({ sockets: 2, subscriptions: 300 });
  await idlingFor('inbox_poll', 2);
  const { counts, seconds } = await idlingFor('inbox_poll', 5);
  expect(counts.inbox_poll).toBeLessThanOrEqual(seconds + 2);
  expect(counts.inbox_claim ?? 0).toBe(0);
  for (const socket of sockets) socket.close();
  await gaugesBecome({ sockets: 0, subscriptions: 0 });
});

/** What runs until a statement of the process's own clock has run so often. */
const idlingFor = async (
  name: string,
  times: number,
): Promise<{ counts: Record<string, number>; seconds: number }> => {
  const from = proxied.proxy.ran.length;
  const startedAt = performance.now();
  const count = (): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const ran of proxied.proxy.ran.slice(from)) counts[ran] = (counts[ran] ?? 0) + 1;
    return counts;
  };
  await vi.waitUntil(() => (count()[name] ?? 0) >= times, {
    timeout: 20_000 + times * 2_000,
    interval: 50,
  });
  return { counts: count(), seconds: (performance.now() - startedAt) / 1_000 };
};

test('ten thousand subscriptions that come and go leave nothing behind', async () => {
  const { id } = await openThread(proxied.server, tenant, ['a', 'b']);
  const cycle = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const sockets = await openSockets(10);
      await Promise.all(
        sockets.map(async (socket, index) => {
          for (let turn = 0; turn < 50; turn++) {
            const begun = socket.subscribe(`${turn}`, FOLLOW, { id: index < 8 ? id : 'thread_none' });
            // Some leave before they have begun, some after, some with the socket.
            if (turn % 3 === 0) await begun;
            if (turn % 5 !== 0) socket.complete(`${turn}`);
          }
        }),
      );
      for (const [index, socket] of sockets.entries()) {
        if (index % 2 === 0) socket.close();
        else socket.terminate();
      }
    }
    await gaugesBecome({ sockets: 0, subscriptions: 0, tails: 0 });
  };
  const memory = async (): Promise<number> => {
    const text = await (await fetch(proxied.server.url.replace('/graphql', '/metrics'))).text();
    return Number(/^nodejs_heap_size_used_bytes (.*)$/m.exec(text)?.[1]);
  };
  /** What is used includes garbage: the least that is seen is nearest to what is held. */
  const leastDuring = async (rounds: number): Promise<number> => {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds; round++) {
      await cycle(1);
      least = Math.min(least, await memory());
    }
    return least;
  };
  await cycle(4);
  const early = await leastDuring(8);
  const late = await leastDuring(12);
  expect(late - early).toBeLessThan(16 * 1024 * 1024);
  expect(await channelsOf([id])).toBe(0);
});
