import { Redis } from 'ioredis';
import { WebSocket } from 'ws';
import type { Bench } from './support/bench.ts';
import { startChild } from './support/child.ts';
import { alternate, median, quantile, ratio, report, round } from './support/figures.ts';
import { openConnection } from './support/http.ts';
import { startProduct } from './support/product.ts';
import { openSocket } from './support/socket.ts';
import { startStores } from './support/stores.ts';
import { createTenant, openRoom, textOf } from './support/world.ts';

const APPEND =
  'mutation Append($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { seq } } }';
const FOLLOW = `subscription Follow($id: ID!) {
  scratchpad(scratchpadId: $id) { cursor change { __typename ... on EntryAppended { entry { id seq content author { handle } } } } ended }
}`;

/** What a group of readers has read: when each had the item of a number. */
const createReaders = (count: number) => {
  const times = new Map<number, number[]>();
  let waiting: { readonly numbers: readonly number[]; resolve(): void } | undefined;
  const isDone = (numbers: readonly number[]): boolean =>
    numbers.every((number) => times.get(number)?.length === count);
  return {
    read(number: number): void {
      const at = times.get(number) ?? [];
      at.push(performance.now());
      times.set(number, at);
      if (at.length < count || waiting === undefined || !isDone(waiting.numbers)) return;
      waiting.resolve();
      waiting = undefined;
    },
    /** When each reader had each of these, once all have all. */
    all: (numbers: readonly number[]) =>
      new Promise<readonly (readonly number[])[]>((resolve) => {
        const done = () => resolve(numbers.map((number) => times.get(number) ?? []));
        if (isDone(numbers)) done();
        else waiting = { numbers, resolve: done };
      }),
  };
};

/**
 * 16 writers append to one pad at once, and 200 followers read it, each with a token of its own: from an append's
 * acknowledgement to its being read, beside a bare Redis publish of 16 at once that a process sends to 200 sockets.
 * Every follower must have every entry, in order.
 */
export const padLive: Bench = async ({ smoke }) => {
  const followers = smoke ? 10 : 200;
  const writers = smoke ? 4 : 16;
  const bursts = smoke ? 3 : 25;
  const rounds = smoke ? 1 : 7;
  await using stores = await startStores();
  await using product = await startProduct(stores);
  await using bare = await startChild({
    args: ['--import', 'tsx', 'bench/bare/fanout.ts'],
    env: { REDIS_PATH: stores.redis.path },
    says: /ready on (\d+)/,
  });
  const tenant = await createTenant(product, 'PadLive');
  const { members, scratchpadId } = await openRoom(product, tenant, 'room', followers);
  const text = textOf(270);

  const ours = createReaders(followers);
  let outOfOrder = 0;
  const sockets = await Promise.all(
    members.map(async ({ token }) => {
      const socket = await openSocket(product.port, token);
      let last = 0;
      await new Promise<void>((resolve) => {
        socket.on('message', (data: Buffer) => {
          const message = data.toString();
          if (message.includes('"type":"ping"')) return socket.send('{"type":"pong"}');
          const [, seq] = /"seq":(\d+)/.exec(message) ?? [];
          if (seq === undefined) return resolve();
          if (Number(seq) !== last + 1) outOfOrder += 1;
          last = Number(seq);
          ours.read(last);
        });
        const payload = { query: FOLLOW, variables: { id: scratchpadId } };
        socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
      });
      return socket;
    }),
  );
  const theirs = createReaders(followers);
  const plain = await Promise.all(
    members.map(
      () =>
        new Promise<WebSocket>((resolve) => {
          const socket = new WebSocket(`ws://127.0.0.1:${bare.ready}`, { perMessageDeflate: false });
          socket.on('message', (data: Buffer) => theirs.read(Number.parseInt(data.toString(), 10)));
          socket.once('open', () => resolve(socket));
        }),
    ),
  );

  const connections = await Promise.all(
    members.slice(0, writers).map(async ({ token }) => {
      const connection = await openConnection(product.port);
      return { connection, headers: `Authorization: Bearer ${token}\r\n` };
    }),
  );
  const body = JSON.stringify({ query: APPEND, variables: { input: { scratchpadId, content: text } } });
  const appendAndRead = async (): Promise<number[]> => {
    const acknowledged = await Promise.all(
      connections.map(async ({ connection, headers }) => {
        const answer = await connection.post('/graphql', body, headers);
        const at = performance.now();
        const [, seq] = /"seq":(\d+)/.exec(answer.body) ?? [];
        if (seq === undefined) throw new Error(answer.body);
        return { seq: Number(seq), at };
      }),
    );
    const read = await ours.all(acknowledged.map(({ seq }) => seq));
    return read.flatMap((times, index) =>
      times.map((at) => Math.max(0, at - (acknowledged[index]?.at ?? Number.NaN))),
    );
  };
  const publisher = new Redis(stores.redis.path);
  let published = 0;
  const publishAndRead = async (): Promise<number[]> => {
    const numbers = Array.from({ length: writers }, () => ++published);
    const startedAt = performance.now();
    await Promise.all(numbers.map((number) => publisher.publish('bench', `${number} ${text}`)));
    return (await theirs.all(numbers)).flatMap((times) => times.map((at) => at - startedAt));
  };
  const p99Of = (once: () => Promise<number[]>) => async (): Promise<number> => {
    const times: number[] = [];
    for (let burst = 0; burst < bursts; burst++) times.push(...(await once()));
    return quantile(times, 0.99);
  };
  const sides = [
    { name: 'ours' as const, measure: p99Of(appendAndRead) },
    { name: 'bare' as const, measure: p99Of(publishAndRead) },
  ];
  await alternate(sides, 1);
  const figures = await alternate(sides, rounds);
  const verdicts = [
    report({
      what: `${writers} writers, acknowledged to read by ${followers}, p99: to publish and send`,
      figure: ratio(figures.ours, figures.bare),
      target: { atMost: 5 },
      detail: `${round(median(figures.ours))} ms to ${round(median(figures.bare))} ms`,
    }),
    report({ what: 'entries that a follower had out of order', figure: outOfOrder, target: { atMost: 0 } }),
  ];
  for (const socket of [...sockets, ...plain]) socket.terminate();
  for (const { connection } of connections) connection.close();
  publisher.disconnect();
  return verdicts.every(Boolean);
};
