import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { CombinedGraphQLErrors } from '@apollo/client/errors';
import { cacheExchange, fetchExchange, subscriptionExchange, Client as UrqlClient } from '@urql/core';
import { createClient } from 'graphql-ws';
import type { SubscribeFunction } from 'relay-runtime';
import relayRuntime from 'relay-runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { resumableLink } from '../../src/client/apollo.ts';
import { type StreamResult, type StreamSink, steady } from '../../src/client/index.ts';
import { resumableSubscribe } from '../../src/client/relay.ts';
import { resumableExchange, resumableForward } from '../../src/client/urql.ts';
import { FOLLOW, followLog } from '../support/follower.ts';
import { type LogServer, startLogServer } from '../support/log-server.ts';

const quick = { firstWaitMs: 2, longestWaitMs: 20 };

describe('the links', () => {
  let server: LogServer;
  beforeEach(async () => {
    server = await startLogServer();
  });
  afterEach(async () => {
    await server.stop();
  });
  const client = () => createClient({ url: server.wsUrl, webSocketImpl: WebSocket, ...steady });

  const byApollo = () => {
    const apollo = new ApolloClient({ cache: new InMemoryCache(), link: resumableLink(client(), quick) });
    return ({ variables }: { variables?: Record<string, unknown> }, sink: StreamSink) => {
      const subscription = apollo.subscribe({ query: gql(FOLLOW), variables: variables ?? {} }).subscribe({
        next: ({ data, error }) => (error ? sink.error(error) : sink.next({ data })),
        error: (problem) => sink.error(problem),
        complete: () => sink.complete(),
      });
      return () => subscription.unsubscribe();
    };
  };
  const byUrql = () => {
    const urql = new UrqlClient({
      url: 'http://127.0.0.1:9/',
      preferGetMethod: false,
      exchanges: [cacheExchange, resumableExchange(client(), quick), fetchExchange],
    });
    return ({ variables }: { variables?: Record<string, unknown> }, sink: StreamSink) =>
      urql.subscription(FOLLOW, variables ?? {}).subscribe(({ data, error }) => {
        if (error) sink.error(error);
        else sink.next({ data });
      }).unsubscribe;
  };
  const byRelay = () => {
    const subscribe = resumableSubscribe(client(), quick);
    return ({ variables }: { variables?: Record<string, unknown> }, sink: StreamSink) => {
      const subscription = relayStream(subscribe, variables ?? {}).subscribe({
        next: (result) => sink.next(result as StreamResult),
        error: (problem: Error) => sink.error(problem),
        complete: () => sink.complete(),
      });
      return () => subscription.unsubscribe();
    };
  };

  it.each([
    ['Apollo', byApollo],
    ['urql', byUrql],
    ['Relay', byRelay],
  ] as const)('of %s resume, report errors as theirs, and free everything', async (_name, connect) => {
    const subscribe = connect();
    const follower = followLog({ subscribe });
    await follower.until(() => follower.results.length > 0);
    for (let round = 1; round <= 10; round++) {
      server.append();
      server.reset();
      server.append();
      await follower.until(() => follower.seqs.length === 2 * round);
    }
    expect(follower.seqs).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    follower.stop();

    const wrong = followLog(
      { subscribe },
      { query: FOLLOW, variables: { threadId: 't', after: 'nonsense' } },
    );
    await wrong.until(wrong.isOver);
    expect(wrong.problem()).toBeInstanceOf(Error);
    expect(String(wrong.problem())).toContain('INVALID_CURSOR');
    while (server.openStreams() > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  it('of Apollo give GraphQL errors as CombinedGraphQLErrors', async () => {
    const wrong = followLog(
      { subscribe: byApollo() },
      { query: FOLLOW, variables: { threadId: 't', after: 'nonsense' } },
    );
    await wrong.until(wrong.isOver);
    expect(CombinedGraphQLErrors.is(wrong.problem())).toBe(true);
  });

  it('of urql can be put into an exchange of one’s own', () => {
    expect(subscriptionExchange({ forwardSubscription: resumableForward(client(), quick) })).toBeTypeOf(
      'function',
    );
  });

  it('of Relay say that an operation must be text', async () => {
    const subscribe = resumableSubscribe(client(), quick);
    const outcome = new Promise((resolve) => {
      relayStream(subscribe, {}, null).subscribe({ error: resolve });
    });
    expect(await outcome).toMatchObject({ message: expect.stringContaining('text') });
  });
});

const relayStream = (
  subscribe: SubscribeFunction,
  variables: Record<string, unknown>,
  text: string | null = FOLLOW,
) => {
  const request = {
    text,
    id: text === null ? 'abc' : null,
    cacheID: 'follow',
    name: 'Follow',
    operationKind: 'subscription',
    providedVariables: null,
    metadata: {},
  };
  const stream = subscribe(request as unknown as Parameters<SubscribeFunction>[0], variables, {});
  if (!(stream instanceof relayRuntime.Observable)) throw new Error('No observable.');
  return stream;
};
