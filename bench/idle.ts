import { Redis } from 'ioredis';
import { WebSocket } from 'ws';
import type { Member } from '../scripts/replay/members.ts';
import type { Bench } from './support/bench.ts';
import { startChild } from './support/child.ts';
import { report, round } from './support/figures.ts';
import { heldBytes } from './support/memory.ts';
import { startProduct } from './support/product.ts';
import { openSocket, subscribe } from './support/socket.ts';
import { startStores, transactions } from './support/stores.ts';
import { createTenant, openRoom } from './support/world.ts';

const FOLLOW =
  'subscription Follow($threadId: ID!) { timeline(threadId: $threadId) { cursor event { id } ended } }';
const AT_ONCE = 25;

/** Opens so many sockets, a few at a time. */
const openMany = async (count: number, open: (index: number) => Promise<WebSocket>): Promise<WebSocket[]> => {
  const sockets: WebSocket[] = [];
  for (let from = 0; from < count; from += AT_ONCE)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, index) => open(from + index)),
      )),
    );
  return sockets;
};

/** What many subscriptions cost while nothing happens: statements, channels, and memory beyond that of a bare socket. */
export const idle: Bench = async ({ smoke }) => {
  const following = smoke ? 50 : 1_000;
  const resting = smoke ? 100 : 5_000;
  const tokens = smoke ? 5 : 100;
  await using stores = await startStores();
  await using product = await startProduct(stores, { inspected: true });
  await using bare = await startChild({
    args: ['--import', 'tsx', 'bench/bare/sockets.ts'],
    env: {},
    says: /ready on (\d+)/,
    inspected: true,
  });
  const redis = new Redis(stores.redis.path);
  const tenant = await createTenant(product, 'Idle');
  const room = await openRoom(product, tenant, 'room', tokens);
  const member = (index: number): Member => {
    const one = room.members[index % room.members.length];
    if (one === undefined) throw new Error('Nobody is there.');
    return one;
  };
  const followOn = (socket: WebSocket) =>
    subscribe(socket, { query: FOLLOW, variables: { threadId: room.threadId } });
  const follow = async (index: number): Promise<WebSocket> => {
    const socket = await openSocket(product.port, member(index).token);
    await followOn(socket);
    return socket;
  };
  const channels = async (): Promise<number> => ((await redis.pubsub('CHANNELS', '*')) as string[]).length;
  /** Statements a second of a process that nobody asks anything. */
  const upkeep = async (): Promise<number> => {
    const seconds = smoke ? 2 : 15;
    const before = await transactions(stores);
    const startedAt = performance.now();
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    const after = await transactions(stores);
    return (after - before) / ((performance.now() - startedAt) / 1_000);
  };

  // One of each, so that what is made once is made.
  const first = await follow(0);
  const channelsOfOne = await channels();
  const upkeepOfOne = await upkeep();
  const sockets = await openMany(following - 1, (index) => openSocket(product.port, member(index).token));
  const statements = await transactions(stores);
  const startedAt = performance.now();
  await Promise.all(sockets.map(followOn));
  const opened = (await transactions(stores)) - statements;
  const rest = upkeepOfOne * ((performance.now() - startedAt) / 1_000);
  const verdicts = [
    report({
      what: `${following} subscriptions to one thread: further channels`,
      figure: (await channels()) - channelsOfOne,
      target: { atMost: 0 },
    }),
    report({
      // On sockets that have authenticated. Those that come while a look is on its way share the next one.
      what: `${following} subscriptions with ${tokens} tokens, begun at once: statements beyond the upkeep of that time`,
      figure: opened - rest,
      target: { atMost: 50 },
    }),
  ];
  for (const socket of [first, ...sockets]) socket.terminate();

  const plain = await measureMemory(resting, bare, (): Promise<WebSocket> => plainSocket(bare.ready));
  const ours = await measureMemory(resting, product.child, follow);
  const upkeepOfMany = await upkeep();
  verdicts.push(
    report({
      what: `${resting} idle subscriptions: kB each beyond a bare socket`,
      figure: (ours.bytes - plain.bytes) / 1_000,
      target: { atMost: 20 },
      detail: `${round(ours.bytes / 1_000)} kB to ${round(plain.bytes / 1_000)} kB`,
    }),
    report({
      what: `${resting} idle subscriptions: statements a second more than with one`,
      figure: upkeepOfMany - upkeepOfOne,
      target: { atMost: 1.5 },
      detail: `${round(upkeepOfMany)}/s to ${round(upkeepOfOne)}/s`,
    }),
  );
  for (const socket of [...ours.sockets, ...plain.sockets]) socket.terminate();
  redis.disconnect();
  return verdicts.every(Boolean);
};

const plainSocket = (port: string): Promise<WebSocket> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false });
    socket.once('open', () => resolve(socket));
    socket.once('error', reject);
  });

/** Bytes that each socket of many makes a process hold. */
const measureMemory = async (
  count: number,
  process: Parameters<typeof heldBytes>[0],
  open: (index: number) => Promise<WebSocket>,
): Promise<{ readonly bytes: number; readonly sockets: readonly WebSocket[] }> => {
  const before = await heldBytes(process);
  const sockets = await openMany(count, open);
  const after = await heldBytes(process);
  return { bytes: (after - before) / count, sockets };
};
