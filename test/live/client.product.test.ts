import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type ResumeOptions, resumable, steady } from '../../src/client/index.ts';
import { createTenant, type Server, startApp, startProcess } from '../support/app.ts';
import { followLog } from '../support/follower.ts';
import { openProduct, type Product } from '../support/product.ts';
import { startTcpProxy } from '../support/tcpProxy.ts';

const OPEN = 'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }';
const POST =
  'mutation ($id: ID!, $text: String!) { postMessage(input: { threadId: $id, content: $text }) { cursor } }';
const REVOKE =
  'mutation ($id: ID!) { revokeParticipantCredentials(input: { participantId: $id }) { credentials { id } } }';
const TOKEN = 'mutation ($id: ID!) { createParticipantToken(input: { participantId: $id }) { token } }';
const DELETE = 'mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedId } }';
const FOLLOW = 'subscription ($threadId: ID!) { timeline(threadId: $threadId) { event { seq } ended } }';

const openThread = async (server: Server) => {
  const { apiKey, participants } = await createTenant(server, { reader: 'HUMAN', writer: 'AGENT' });
  const { reader, writer } = participants;
  if (!reader || !writer) throw new Error('Nobody there.');
  const { data } = await server.graphql<{ openThread: { thread: { id: string } } }>(apiKey, OPEN, {
    ids: [reader.id, writer.id],
  });
  const threadId = data?.openThread.thread.id ?? '';
  return { apiKey, reader, writer, threadId };
};

describe.each(['graphql-ws', 'graphql-sse'] as const)('a resumable %s client of the product', (kind) => {
  let product: Product;
  const opened: { dispose(): unknown }[] = [];
  beforeAll(async () => {
    product = await openProduct();
  });
  afterAll(async () => {
    await product.close();
  });
  afterEach(async () => {
    for (const client of opened.splice(0)) await client.dispose();
  });

  const connect = (url: string, token: () => string, options: ResumeOptions = {}) => {
    const all = { firstWaitMs: 5, longestWaitMs: 100, ...options };
    const authorization = () => ({ authorization: `Bearer ${token()}` });
    const client =
      kind === 'graphql-ws'
        ? resumable(
            createWsClient({
              url: url.replace(/^http/, 'ws'),
              webSocketImpl: WebSocket,
              connectionParams: authorization,
              ...steady,
            }),
            all,
          )
        : resumable(createSseClient({ url, headers: authorization, ...steady }), all);
    opened.push(client);
    return client;
  };

  it('reads every event once and in order while its line is cut again and again', async () => {
    const { server, url, cut } = product;
    const { reader, writer, threadId } = await openThread(server);
    const follower = followLog(
      connect(url, () => reader.token),
      { query: FOLLOW, variables: { threadId } },
    );
    await follower.until(() => follower.results.length > 0);
    for (let number = 1; number <= 60; number++) {
      await server.graphql(writer.token, POST, { id: threadId, text: `${number}` });
      if (number % 4 === 0) cut();
    }
    await follower.until(() => follower.seqs.length >= 60 || follower.isOver());
    expect(follower.problem()).toBeUndefined();
    expect(follower.seqs).toEqual(Array.from({ length: 60 }, (_, index) => index + 2));
  });

  it('comes back with a fresh credential after its own was revoked', async () => {
    const { server, url } = product;
    const { apiKey, reader, writer, threadId } = await openThread(server);
    let { token } = reader;
    const client = connect(url, () => token, {
      freshCredential: async () => {
        const { data } = await server.graphql<{ createParticipantToken: { token: string } }>(apiKey, TOKEN, {
          id: reader.id,
        });
        token = data?.createParticipantToken.token ?? '';
        return true;
      },
    });
    const follower = followLog(client, { query: FOLLOW, variables: { threadId } });
    await follower.until(() => follower.results.length > 0);
    await server.graphql(apiKey, REVOKE, { id: reader.id });
    await server.graphql(writer.token, POST, { id: threadId, text: 'Still there?' });
    await follower.until(() => follower.seqs.length === 1 || follower.isOver());
    expect(follower.problem()).toBeUndefined();
    expect(follower.seqs).toEqual([2]);
    expect(token).not.toBe(reader.token);
  });

  it('ends when the thread is deleted, and when there never was one', async () => {
    const { server, url } = product;
    const { apiKey, reader, threadId } = await openThread(server);
    const client = connect(url, () => reader.token);
    const follower = followLog(client, { query: FOLLOW, variables: { threadId } });
    await follower.until(() => follower.results.length > 0);
    await server.graphql(apiKey, DELETE, { id: threadId });
    await follower.until(follower.isOver);
    expect(follower.problem()).toBeUndefined();
    expect(follower.results.at(-1)?.data).toMatchObject({ timeline: { ended: 'THREAD_DELETED' } });
    const nobody = followLog(client, { query: FOLLOW, variables: { threadId } });
    await nobody.until(nobody.isOver);
    expect(JSON.stringify(nobody.problem())).toContain('NOT_FOUND');
  });

  it('goes on at another process when its own is shut down, and when it is killed', async () => {
    const home = await startApp();
    const { reader, writer, threadId } = await openThread(home);
    const say = (text: string) => home.graphql(writer.token, POST, { id: threadId, text });
    const portOf = ({ url }: { readonly url: string }) => Number(new URL(url).port);
    const [first, second] = await Promise.all([startProcess(home.stores), startProcess(home.stores)]);
    let current: { readonly url: string } = first;
    await using line = await startTcpProxy(() => ({ host: '127.0.0.1', port: portOf(current) }));
    const url = `http://127.0.0.1:${line.port}/graphql`;
    const client = connect(url, () => reader.token);
    const follower = followLog(client, { query: FOLLOW, variables: { threadId } });
    await follower.until(() => follower.results.length > 0);
    await say('at the first');
    await follower.until(() => follower.seqs.length === 1);

    current = second;
    await Promise.all([first.close(), say('while it says goodbye')]);
    await say('at the second');
    await follower.until(() => follower.seqs.length === 3);

    current = home;
    await Promise.all([second.kill9(), say('while it dies')]);
    await say('at home');
    await follower.until(() => follower.seqs.length === 5 || follower.isOver());
    expect(follower.problem()).toBeUndefined();
    expect(follower.seqs).toEqual([2, 3, 4, 5, 6]);
    await client.dispose();
    await home.close();
  });
});
