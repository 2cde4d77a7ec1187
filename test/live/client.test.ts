import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type ResumeOptions, resumable, steady } from '../../src/client/index.ts';
import { FOLLOW, followLog } from '../support/follower.ts';
import { type LogServer, startLogServer } from '../support/log-server.ts';

const quick = { firstWaitMs: 2, longestWaitMs: 20 };
const upTo = (length: number) => Array.from({ length }, (_, index) => index + 1);
const variables = { threadId: 't' };

describe.each(['graphql-ws', 'graphql-sse'] as const)('a resumable %s client', (kind) => {
  let server: LogServer;
  const opened: { dispose(): unknown }[] = [];

  const connect = (options: ResumeOptions = {}, token: () => string = () => 'first') => {
    const client =
      kind === 'graphql-ws'
        ? resumable(
            createWsClient({
              url: server.wsUrl,
              webSocketImpl: WebSocket,
              connectionParams: () => ({ authorization: token() }),
              ...steady,
            }),
            { ...quick, ...options },
          )
        : resumable(
            createSseClient({ url: server.sseUrl, headers: () => ({ authorization: token() }), ...steady }),
            { ...quick, ...options },
          );
    opened.push(client);
    return client;
  };
  const append = (count: number) => {
    for (let index = 0; index < count; index++) server.append();
  };

  beforeEach(async () => {
    server = await startLogServer();
  });
  afterEach(async () => {
    for (const client of opened.splice(0)) await client.dispose();
    await server.stop();
  });

  it('goes on where it was after each of a hundred resets', async () => {
    const follower = followLog(connect());
    await follower.until(() => follower.results.length > 0);
    for (let round = 1; round <= 100; round++) {
      server.reset();
      append(2);
      await follower.until(() => follower.seqs.length === round * 2);
    }
    expect(follower.seqs).toEqual(upTo(200));
  });

  it.each([1001, 1011, 1012, 1013, 4403])('goes on after the server closed with %i', async (code) => {
    const follower = followLog(connect());
    await follower.until(() => follower.results.length > 0);
    append(1);
    await follower.until(() => follower.seqs.length === 1);
    server.close(code);
    append(2);
    await follower.until(() => follower.seqs.length === 3);
    expect(follower.seqs).toEqual(upTo(3));
  });

  it('does not give up on a server that stays away for longer than a stock client tries', async () => {
    const waits: number[] = [];
    const away: { reached?: () => void } = {};
    const enough = new Promise<void>((resolve) => (away.reached = resolve));
    const client = connect({
      onRetry: (_problem, waitMs) => {
        if (waits.push(waitMs) === 12) away.reached?.();
      },
    });
    const follower = followLog(client);
    await follower.until(() => follower.results.length > 0);
    await server.stop();
    append(3);
    await enough;
    expect(Math.max(...waits)).toBeLessThanOrEqual(quick.longestWaitMs);
    await server.listen();
    await follower.until(() => follower.seqs.length === 3);
    expect(follower.seqs).toEqual(upTo(3));
  });

  it('goes on after SERVER_DRAINING, which it keeps to itself', async () => {
    const follower = followLog(connect());
    await follower.until(() => follower.results.length > 0);
    append(1);
    server.end('SERVER_DRAINING');
    append(1);
    await follower.until(() => follower.seqs.length === 2);
    expect(follower.seqs).toEqual(upTo(2));
    expect(JSON.stringify(follower.results)).not.toContain('SERVER_DRAINING');
  });

  it.each(['THREAD_DELETED', 'RUN_CLOSED'] as const)('ends with %s as the last payload', async (words) => {
    const follower = followLog(connect());
    await follower.until(() => follower.results.length > 0);
    append(1);
    server.end(words);
    await follower.until(follower.isOver);
    expect(follower.problem()).toBeUndefined();
    expect(follower.seqs).toEqual([1]);
    expect(follower.results.at(-1)?.data).toMatchObject({ timeline: { ended: words } });
  });

  it('takes a completion without a reason for an interruption, and for the end once the log is gone', async () => {
    const follower = followLog(connect());
    await follower.until(() => follower.results.length > 0);
    server.end('COMPLETE');
    append(1);
    await follower.until(() => follower.seqs.length === 1);
    server.delete();
    server.end('COMPLETE');
    await follower.until(follower.isOver);
    expect(follower.problem()).toBeUndefined();
    expect(follower.seqs).toEqual([1]);
  });

  it('reports errors of the operation at once and does not try again', async () => {
    const client = connect();
    const wrongCursor = followLog(client, { query: FOLLOW, variables: { ...variables, after: 'nonsense' } });
    await wrongCursor.until(wrongCursor.isOver);
    const unknownField = followLog(client, {
      query: 'subscription { timeline(threadId: "t") { nonsense } }',
    });
    await unknownField.until(unknownField.isOver);
    const told = [wrongCursor, unknownField].map((follower) =>
      JSON.stringify([follower.problem(), follower.results]),
    );
    expect(told[0]).toContain('INVALID_CURSOR');
    expect(told[1]).toContain('Cannot query field');
    expect(server.openStreams()).toBe(0);
  });

  it('waits and tries again while the server is unavailable or limits the rate', async () => {
    const waits: number[] = [];
    const client = connect({ onRetry: (_problem, waitMs) => waits.push(waitMs) });
    server.refuse('UNAVAILABLE', 7);
    const follower = followLog(client);
    await follower.until(() => follower.results.length > 0);
    expect(waits).toHaveLength(7);
    server.refuse('RATE_LIMITED', 1, { retryAfterMs: 60 });
    server.reset();
    append(1);
    await follower.until(() => follower.seqs.length === 1);
    expect(waits.at(-1)).toBeGreaterThanOrEqual(60);
    expect(follower.problem()).toBeUndefined();
  });

  it('keeps the connection of the others when one is refused', async () => {
    const client = connect();
    const first = followLog(client);
    await first.until(() => first.results.length > 0);
    const before = server.accepted();
    server.refuse('UNAVAILABLE', 1);
    const second = followLog(client);
    await second.until(() => second.results.length > 0);
    append(1);
    await first.until(() => first.seqs.length === 1);
    expect(first.results).toHaveLength(2);
    if (kind === 'graphql-ws') expect(server.accepted()).toBe(before);
  });

  it.each([
    ['UNAVAILABLE', 'payload'],
    ['UNAVAILABLE', 'event'],
    ['INTERNAL', 'payload'],
    ['INTERNAL', 'event'],
  ] as const)(
    'asks again for an event that failed with %s for a while, as the whole %s',
    async (code, where) => {
      const follower = followLog(connect());
      await follower.until(() => follower.results.length > 0);
      server.fail(code, 3, where);
      append(2);
      await follower.until(() => follower.seqs.length === 2);
      expect(follower.seqs).toEqual(upTo(2));
      expect(follower.results.every(({ errors }) => errors === undefined)).toBe(true);
    },
  );

  it('hands over an event of which something is refused, and goes on behind it', async () => {
    const follower = followLog(connect());
    await follower.until(() => follower.results.length > 0);
    server.fail('NOT_FOUND', 1, 'event');
    append(2);
    await follower.until(() => follower.seqs.length === 1);
    expect(follower.seqs).toEqual([2]);
    expect(follower.results.at(-2)?.errors).toHaveLength(1);
  });

  it('comes back with a fresh credential, which its owner is asked for once', async () => {
    let token = 'first';
    let asked = 0;
    server.requireToken('first');
    const client = connect(
      {
        freshCredential: () => {
          asked++;
          token = 'second';
          return Promise.resolve(true);
        },
      },
      () => token,
    );
    const followers = upTo(5).map(() => followLog(client));
    await Promise.all(followers.map((follower) => follower.until(() => follower.results.length > 0)));
    server.requireToken('second');
    server.end('CREDENTIAL_ENDED');
    append(1);
    await Promise.all(followers.map((follower) => follower.until(() => follower.seqs.length === 1)));
    expect(asked).toBe(1);
    expect(JSON.stringify(followers.map(({ results }) => results))).not.toContain('CREDENTIAL_ENDED');
  });

  it('ends with what the server said when there is no fresh credential', async () => {
    const client = connect({ freshCredential: () => false });
    const follower = followLog(client);
    await follower.until(() => follower.results.length > 0);
    server.end('CREDENTIAL_ENDED');
    await follower.until(follower.isOver);
    expect(follower.results.at(-1)?.data).toMatchObject({ timeline: { ended: 'CREDENTIAL_ENDED' } });
    server.requireToken('another');
    server.reset();
    const second = followLog(client);
    await second.until(second.isOver);
    expect(second.problem()).toBeDefined();
  });

  it('adds what a document lacks, and shows nothing of it', async () => {
    const client = connect();
    const follower = followLog(client, {
      query: 'subscription { live: timeline(threadId: "t") { event { seq } } }',
    });
    await follower.until(() => follower.results.length > 0);
    append(1);
    await follower.until(() => follower.results.length === 2);
    server.reset();
    append(1);
    await follower.until(() => follower.results.some(({ data }) => JSON.stringify(data).includes('2')));
    expect(follower.results.map(({ data }) => data)).toEqual([
      { live: { event: null } },
      { live: { event: { seq: 1 } } },
      { live: { event: null } },
      { live: { event: { seq: 2 } } },
    ]);
  });

  it('starts where a document says, as a variable or written down', async () => {
    append(3);
    const client = connect();
    const byVariable = followLog(client, { query: FOLLOW, variables: { ...variables, after: 'c1' } });
    const written = followLog(client, {
      query: 'subscription { timeline(threadId: "t", after: "c1") { event { seq } } }',
    });
    await byVariable.until(() => byVariable.seqs.length === 2);
    await written.until(() => written.seqs.length === 2);
    server.reset();
    append(1);
    await byVariable.until(() => byVariable.seqs.length === 3);
    await written.until(() => written.seqs.length === 3);
    expect([byVariable.seqs, written.seqs]).toEqual([
      [2, 3, 4],
      [2, 3, 4],
    ]);
  });

  it('starts a subscription of state afresh, and lets those of other schemas end', async () => {
    const client = connect();
    const state = followLog(client, { query: 'subscription { threads { changes } }' });
    await state.until(() => state.results.length === 3);
    state.stop();
    const countdown = followLog(client, { query: 'subscription { countdown }' });
    await countdown.until(countdown.isOver);
    expect(countdown.results).toHaveLength(2);
    expect(countdown.problem()).toBeUndefined();
  });

  it('passes queries on', async () => {
    const client = connect();
    const query = followLog(client, { query: '{ hello }' });
    await query.until(query.isOver);
    expect(query.results).toHaveLength(1);
  });

  it('ends a subscription whose consumer throws, and no other', async () => {
    const client = connect();
    const other = followLog(client);
    let problem: unknown;
    const failed = new Promise<void>((resolve) =>
      client.subscribe(
        { query: FOLLOW, variables },
        {
          next() {
            throw new Error('Not today.');
          },
          error(reason) {
            problem = reason;
            resolve();
          },
          complete: resolve,
        },
      ),
    );
    await failed;
    expect(problem).toMatchObject({ message: 'Not today.' });
    append(1);
    await other.until(() => other.seqs.length === 1);
  });

  it('iterates, and frees everything when the loop is left', async () => {
    const client = connect();
    append(1);
    const seen: unknown[] = [];
    for await (const { data } of client.iterate({
      query: FOLLOW,
      variables: { ...variables, after: 'c0' },
    })) {
      seen.push(data);
      if (seen.length === 2) server.reset();
      append(1);
      if (seen.length === 5) break;
    }
    expect(JSON.stringify(seen).match(/"seq":\d/g)).toEqual(['"seq":1', '"seq":2', '"seq":3']);
    await idle(server);
  });

  it('leaves nothing behind, whenever it is stopped', async () => {
    const client = connect();
    for (let round = 0; round < 50; round++) {
      const follower = followLog(client);
      if (round % 3 === 0) await follower.until(() => follower.results.length > 0);
      if (round % 3 === 1) server.reset();
      follower.stop();
      expect(follower.isOver()).toBe(true);
    }
    await client.dispose();
    await idle(server);
  });

  it('is disposed of without a complaint while its connection is failing', async () => {
    await server.stop();
    for (let round = 0; round < 20; round++) {
      const client = connect();
      const follower = followLog(client);
      await client.dispose();
      expect(follower.isOver()).toBe(true);
    }
    server = await startLogServer();
  });
});

/** Waits for the server to have noticed that everybody has gone, which it does by events that we cannot see. */
const idle = async (server: LogServer): Promise<void> => {
  while (server.openStreams() > 0) await new Promise((resolve) => setImmediate(resolve));
};
