import { Redis } from 'ioredis';
import { WebSocket } from 'ws';
import type { Bench } from './support/bench.ts';
import { startChild } from './support/child.ts';
import { alternate, median, quantile, ratio, report, round } from './support/figures.ts';
import { openConnection } from './support/http.ts';
import { startProduct } from './support/product.ts';
import { openSocket, subscribe } from './support/socket.ts';
import { startStores } from './support/stores.ts';
import { createTenant, openRoom, textOf } from './support/world.ts';

const POST = 'mutation Post($input: PostMessageInput!) { postMessage(input: $input) { cursor } }';
const FOLLOW = `subscription Follow($threadId: ID!) {
  timeline(threadId: $threadId) { cursor event { __typename id seq ... on Message { content sender { handle } clientKey } } ended }
}`;

/** Waits until every reader has read one message, and gives the times at which they did. */
interface Readers {
  /** Resolves with one time for each reader, once all have read what comes next. */
  next(): Promise<number[]>;
  read(): void;
}

const createReaders = (count: number): Readers => {
  let times: number[] = [];
  let resolve: ((times: number[]) => void) | undefined;
  return {
    next: () =>
      new Promise((done) => {
        times = [];
        resolve = done;
      }),
    read() {
      times.push(performance.now());
      if (times.length === count) resolve?.(times);
    },
  };
};

/**
 * From the acknowledgement of an append to its being read by 100 followers, each with a token of its own, beside a bare
 * Redis publish that a process sends to 100 sockets.
 */
export const live: Bench = async ({ smoke }) => {
  const followers = smoke ? 10 : 100;
  const messages = smoke ? 5 : 200;
  const rounds = smoke ? 1 : 7;
  await using stores = await startStores();
  await using product = await startProduct(stores);
  await using bare = await startChild({
    args: ['--import', 'tsx', 'bench/bare/fanout.ts'],
    env: { REDIS_PATH: stores.redis.path },
    says: /ready on (\d+)/,
  });
  const tenant = await createTenant(product, 'Live');
  const room = await openRoom(product, tenant, 'room', followers + 1);
  const [poster, ...others] = room.members;
  if (poster === undefined) throw new Error('Nobody posts.');

  const ours = createReaders(followers);
  const sockets = await Promise.all(
    others.map(async ({ token }) => {
      const socket = await openSocket(product.port, token);
      await subscribe(socket, { query: FOLLOW, variables: { threadId: room.threadId } }, ours.read);
      return socket;
    }),
  );
  const theirs = createReaders(followers);
  const plain = await Promise.all(
    others.map(
      () =>
        new Promise<WebSocket>((resolve) => {
          const socket = new WebSocket(`ws://127.0.0.1:${bare.ready}`, { perMessageDeflate: false });
          socket.on('message', theirs.read);
          socket.once('open', () => resolve(socket));
        }),
    ),
  );

  const text = textOf(270);
  const connection = await openConnection(product.port);
  const publisher = new Redis(stores.redis.path);
  const body = JSON.stringify({
    query: POST,
    variables: { input: { threadId: room.threadId, content: text } },
  });
  const headers = `Authorization: Bearer ${poster.token}\r\n`;
  const appendAndRead = async (): Promise<number[]> => {
    const read = ours.next();
    const answer = await connection.post('/graphql', body, headers);
    const acknowledgedAt = performance.now();
    if (answer.body.includes('"errors"')) throw new Error(answer.body);
    return (await read).map((at) => Math.max(0, at - acknowledgedAt));
  };
  const publishAndRead = async (): Promise<number[]> => {
    const read = theirs.next();
    const startedAt = performance.now();
    await publisher.publish('bench', text);
    return (await read).map((at) => at - startedAt);
  };
  const p99Of = (once: () => Promise<number[]>) => async (): Promise<number> => {
    const times: number[] = [];
    for (let index = 0; index < messages; index++) times.push(...(await once()));
    return quantile(times, 0.99);
  };
  const sides = [
    { name: 'ours' as const, measure: p99Of(appendAndRead) },
    { name: 'bare' as const, measure: p99Of(publishAndRead) },
  ];
  await alternate(sides, 1);
  const figures = await alternate(sides, rounds);
  const met = report({
    what: `acknowledged to read by ${followers}, p99: to publish and send`,
    figure: ratio(figures.ours, figures.bare),
    target: { atMost: 5 },
    detail: `${round(median(figures.ours))} ms to ${round(median(figures.bare))} ms`,
  });
  for (const socket of [...sockets, ...plain]) socket.terminate();
  connection.close();
  publisher.disconnect();
  return met;
};
