import fc from 'fast-check';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { resumable, steady } from '../../src/client/index.ts';
import { FOLLOW, followLog } from '../support/follower.ts';
import { type LogServer, startLogServer } from '../support/log-server.ts';

/** What can happen to a follower. `caughtUp`: the next thing happens only after it has read everything. */
type Step =
  | { readonly kind: 'append'; readonly count: number }
  | { readonly kind: 'reset' }
  | { readonly kind: 'restart' }
  | { readonly kind: 'close'; readonly code: number }
  | { readonly kind: 'end'; readonly words: 'SERVER_DRAINING' | 'CREDENTIAL_ENDED' | 'COMPLETE' }
  | { readonly kind: 'refuse'; readonly count: number }
  | { readonly kind: 'fail'; readonly count: number }
  | { readonly kind: 'terminate' }
  | { readonly kind: 'caughtUp' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 3, arbitrary: fc.constant({ kind: 'caughtUp' as const }) },
  { weight: 3, arbitrary: fc.constant({ kind: 'reset' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'terminate' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('close' as const),
      code: fc.constantFrom(1001, 1012, 1013, 4403),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      words: fc.constantFrom('SERVER_DRAINING' as const, 'CREDENTIAL_ENDED' as const, 'COMPLETE' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('refuse' as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('fail' as const), count: fc.integer({ min: 1, max: 2 }) }),
  },
);

const quick = { firstWaitMs: 1, longestWaitMs: 8 };
/** The attempts of a stock client, but without its second of waiting before each. */
const stock = { retryWait: () => Promise.resolve(), retry: () => Promise.resolve() };

describe.each([
  { name: 'graphql-ws', kind: 'ws', options: steady, extensions: true },
  { name: 'graphql-ws without its cursor in the extensions', kind: 'ws', options: steady, extensions: false },
  { name: 'graphql-ws with attempts of its own', kind: 'ws', options: stock, extensions: true },
  { name: 'graphql-sse', kind: 'sse', options: steady, extensions: true },
  {
    name: 'graphql-sse without its cursor in the extensions',
    kind: 'sse',
    options: steady,
    extensions: false,
  },
] as const)('a resumable client over $name', ({ kind, options, extensions }) => {
  const servers: LogServer[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
  });

  const connect = (server: LogServer) => {
    if (kind === 'sse') {
      const client = resumable(createSseClient({ url: server.sseUrl, ...options }), quick);
      return { client, terminate: () => {} };
    }
    const client = resumable(
      createWsClient({ url: server.wsUrl, webSocketImpl: WebSocket, ...options }),
      quick,
    );
    let open = false;
    client.on('connected', () => {
      open = true;
    });
    client.on('closed', () => {
      open = false;
    });
    return {
      client,
      terminate() {
        if (open) client.terminate();
      },
    };
  };

  it('delivers the log once and in order, whatever happens to its connections', {
    timeout: 60_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
        const server = await startLogServer({ extensions });
        servers.push(server);
        const { client, terminate } = connect(server);
        const followers = [
          followLog(client, { query: FOLLOW, variables: { threadId: 't', after: 'c0' } }),
          followLog(client, {
            query: 'subscription { timeline(threadId: "t", after: "c0") { event { seq } } }',
          }),
        ];
        const caughtUp = () =>
          Promise.all(
            followers.map((follower) =>
              follower.until(() => follower.seqs.length >= server.length() || follower.isOver()),
            ),
          );
        for (const happening of steps) {
          switch (happening.kind) {
            case 'append':
              for (let index = 0; index < happening.count; index++) server.append();
              break;
            case 'caughtUp':
              await caughtUp();
              break;
            case 'reset':
              server.reset();
              break;
            case 'restart':
              await server.stop();
              await server.listen();
              break;
            case 'close':
              server.close(happening.code);
              break;
            case 'end':
              server.end(happening.words);
              break;
            case 'refuse':
              server.refuse('UNAVAILABLE', happening.count);
              break;
            case 'fail':
              server.fail('UNAVAILABLE', happening.count);
              break;
            case 'terminate':
              terminate();
              break;
            default:
              happening satisfies never;
          }
        }
        server.append();
        await caughtUp();
        const log = Array.from({ length: server.length() }, (_, index) => index + 1);
        for (const follower of followers) {
          expect(follower.problem()).toBeUndefined();
          expect(follower.seqs).toEqual(log);
        }
        await client.dispose();
        await server.stop();
      }),
      { numRuns: 60 },
    );
  });
});
