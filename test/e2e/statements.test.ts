import type { TypedDocumentNode } from '@urql/core';
import { print } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, createTenant, type Tenant } from '../support/app.ts';
import { type Proxied, startBehindProxy } from '../support/behindProxy.ts';
import { graphql } from '../support/gql/gql.ts';
import type { TimelineEventType } from '../support/gql/graphql.ts';

const WINDOWS = 100;
/** Messages are taken back so many windows later: on another page. */
const LATER = 30;

let proxied: Proxied;
let tenant: Tenant;
let threadId: string;
/** Of some events of the thread, first to last. */
let cursors: string[];

const tokenOf = (handle: string): string => tenant.participants[handle]?.token ?? '';
const idOf = (handle: string): string => tenant.participants[handle]?.id ?? '';

const must = async <Data>(answer: Promise<Answer<Data>>): Promise<Data> => {
  const { data, errors } = await answer;
  expect(errors).toBeUndefined();
  if (!data) throw new Error('No data.');
  return data;
};

const POST = graphql(`
  mutation SayHello($id: ID!, $key: String) {
    postMessage(input: { threadId: $id, content: "Hello", idempotencyKey: $key }) { message { id seq } cursor }
  }`);
const ask = <Data, Variables extends Readonly<Record<string, unknown>>>(
  token: string,
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer<Data>> => proxied.server.graphql<Data>(token, print(document), variables, headers);

const CHANGE = (field: string) => /* GraphQL */ `
  mutation ($id: ID!, $participantId: ID!) {
    ${field}(input: { threadId: $id, participantId: $participantId }) { cursor }
  }`;

/** `often` comes and goes a hundred times while two others talk and take back; `steady` stays and never acknowledges. */
beforeAll(async () => {
  proxied = await startBehindProxy();
  const { server } = proxied;
  tenant = await createTenant(server, { steady: 'HUMAN', often: 'AGENT', talker: 'UNIT' });
  const opened = await must(
    server.graphql<{ openThread: { thread: { id: string } } }>(
      tenant.apiKey,
      'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
      { ids: ['steady', 'often', 'talker'].map(idOf) },
    ),
  );
  threadId = opened.openThread.thread.id;
  cursors = [];
  const posted: { readonly window: number; readonly sender: string; readonly messageId: string }[] = [];
  for (let window = 1; window <= WINDOWS; window++) {
    for (const sender of ['talker', 'often', 'talker']) {
      const { postMessage } = await must(ask(tokenOf(sender), POST, { id: threadId }));
      cursors.push(postMessage.cursor);
      posted.push({ window, sender, messageId: postMessage.message.id });
    }
    if (window % 3 === 0)
      for (const { sender, messageId } of posted.filter((message) => message.window === window - LATER))
        await must(
          server.graphql(
            tokenOf(sender),
            'mutation ($id: ID!) { retractMessage(input: { messageId: $id, reason: "no" }) { cursor } }',
            { id: messageId },
          ),
        );
    if (window === WINDOWS) break;
    for (const field of ['removeParticipant', 'readdParticipant'])
      await must(
        server.graphql(tenant.apiKey, CHANGE(field), { id: threadId, participantId: idOf('often') }),
      );
  }
});
afterAll(() => proxied[Symbol.asyncDispose]());

describe('an append', () => {
  test.each(['steady', 'talker'])('by %s is one statement once its credential is known', async (sender) => {
    const { during } = proxied;
    await must(ask(tokenOf(sender), POST, { id: threadId }));
    for (const key of [undefined, 'a key', 'a key']) {
      const ran = await during(() => must(ask(tokenOf(sender), POST, { id: threadId, key })));
      expect(ran).toEqual(['append_message']);
    }
  });
});

describe('memory and search', () => {
  const STORE =
    'mutation ($id: ID!) { storeMemory(input: { threadId: $id, payload: { text: "Hello" } }) { entry { id threadOnly } } }';
  const RECALL =
    'query ($id: ID!, $words: String, $match: JSON) { recall(threadId: $id, query: $words, match: $match) { nodes { id payload } pageInfo { hasNextPage hasPreviousPage } } }';
  const SEARCH =
    'query ($id: ID) { searchMessages(query: "hello", threadId: $id, first: 20) { nodes { id content } pageInfo { hasNextPage } } }';
  const SIGNAL = 'mutation ($id: ID!) { signal(input: { threadId: $id, kind: "typing" }) { delivered } }';

  test.each<[string, string, object, string[]]>([
    ['storing', STORE, {}, ['store_memory']],
    ['recalling the newest', RECALL, {}, ['recall_memory']],
    ['recalling by words', RECALL, { words: 'hello' }, ['recall_memory']],
    ['recalling by value', RECALL, { match: { text: 'Hello' } }, ['recall_memory']],
    ['searching one thread', SEARCH, {}, ['search_messages', 'looks']],
    ['searching all threads', SEARCH, { id: null }, ['search_messages', 'looks']],
    ['a signal', SIGNAL, {}, ['looks']],
  ])('%s is as few statements', async (_, document, variables, expected) => {
    const { server, during } = proxied;
    const run = () => must(server.graphql(tokenOf('talker'), document, { id: threadId, ...variables }));
    await run();
    expect(await during(run)).toEqual(expected);
  });
});

test('a page of scratchpads is one statement and one for all looks, from either end', async () => {
  const { server, during } = proxied;
  const PADS =
    'query ($first: Int, $last: Int) { scratchpads(first: $first, last: $last) { nodes { id metaData } pageInfo { hasNextPage } } }';
  await must(
    server.graphql(
      tenant.apiKey,
      'mutation ($id: ID!) { createScratchpad(input: { threadId: $id }) { scratchpad { id } } }',
      { id: threadId },
    ),
  );
  for (const [range, order] of [
    [{ first: 5 }, 'asc'],
    [{ last: 5 }, 'desc'],
  ] as const)
    for (const [token, whose] of [
      [tokenOf('steady'), 'viewer'],
      [tenant.apiKey, 'owner'],
    ] as const) {
      const run = () => must(server.graphql(token, PADS, range));
      await run();
      expect(await during(run)).toEqual([`scratchpads_of_${whose}_${order}`, 'looks']);
    }
});

describe('an inbox', () => {
  const TAKE = /* GraphQL */ `mutation {
    takePending(input: { max: 5, batch: 3 }) { deliveries { deliveryId cursor pendingCount events { id ... on Message { content } } } }
  }`;
  interface Taken {
    readonly takePending: { readonly deliveries: readonly { readonly deliveryId: string | null }[] };
  }

  test('hands out, keeps and takes back with one statement each, however much waits', async () => {
    const { server, during } = proxied;
    const token = tokenOf('often');
    const take = async (): Promise<string> => {
      const { takePending } = await must(server.graphql<Taken>(token, TAKE));
      return takePending.deliveries.find(({ deliveryId }) => deliveryId !== null)?.deliveryId ?? '';
    };
    const acknowledge = (deliveryId: string) =>
      must(
        server.graphql(
          token,
          'mutation($id: ID!, $deliveryId: ID!) { acknowledge(input: { threadId: $id, deliveryId: $deliveryId }) { pendingCount } }',
          { id: threadId, deliveryId },
        ),
      );
    const answer = (deliveryId: string) =>
      must(
        server.graphql(
          token,
          'mutation($id: ID!, $deliveryId: ID!) { postMessage(input: { threadId: $id, content: "Done.", deliveryId: $deliveryId }) { cursor } }',
          { id: threadId, deliveryId },
        ),
      );
    const extend = (deliveryId: string) =>
      must(
        server.graphql(
          token,
          'mutation($deliveryId: ID!) { extendLease(input: { deliveryId: $deliveryId, seconds: 60 }) { leaseExpiresAt } }',
          { deliveryId },
        ),
      );
    // Its comings and goings are told first.
    for (let round = 0; round < 6; round += 1) await acknowledge(await take());
    let deliveryId = '';
    expect(
      await during(async () => {
        deliveryId = await take();
      }),
    ).toEqual(['take_inbox']);
    expect(await during(() => extend(deliveryId))).toEqual(['inbox_extend']);
    expect(await during(() => acknowledge(deliveryId))).toEqual(['acknowledge', 'looks']);
    deliveryId = await take();
    expect(await during(() => answer(deliveryId))).toEqual(['append_message']);
  });
});

const PAGE = graphql(`
  query PageWithRetractions($id: ID!, $first: Int, $after: Cursor, $last: Int, $before: Cursor, $types: [TimelineEventType!]) {
    thread(id: $id) {
      unreadCount
      timeline {
        end
        events(first: $first, after: $after, last: $last, before: $before, types: $types) {
          nodes {
            id
            ... on Message { content sender { handle displayName } isRetracted retraction { reason } }
            ... on Retraction { reason actor { handle } message { id content } }
          }
          pageInfo { hasNextPage hasPreviousPage }
        }
      }
    }
  }`);

describe('a page of 50 with senders and retractions', () => {
  test.each<{ types: TimelineEventType[] | undefined }>([
    { types: undefined },
    { types: ['RETRACTION'] },
    { types: ['MESSAGE', 'RETRACTION'] },
  ])(
    'is the same few statements wherever it begins, with one window and with a hundred: %o',
    async ({ types }) => {
      const { during } = proxied;
      const middle = cursors[Math.floor(cursors.length / 2)];
      const ranges = [
        { first: 50 },
        { first: 50, after: middle },
        { last: 50, before: middle },
        { last: 50 },
      ];
      const runs: { readonly of: string; readonly statements: readonly string[] }[] = [];
      for (const viewer of ['steady', 'often'])
        for (const range of ranges) {
          const read = () => must(ask(tokenOf(viewer), PAGE, { id: threadId, types, ...range }));
          await read();
          runs.push({
            of: `${viewer} ${JSON.stringify(range)}`,
            statements: await during(read),
          });
        }
      const [first] = runs;
      expect(first?.statements.length).toBeGreaterThan(1);
      expect(first?.statements.length).toBeLessThanOrEqual(5);
      for (const { of, statements } of runs)
        expect(statements, `${of}: ${statements.join('\n')}`).toHaveLength(first?.statements.length ?? 0);
    },
  );

  test('is as many statements for the user, as itself and as another', async () => {
    const { during } = proxied;
    for (const headers of [{}, { 'x-act-as': idOf('often') }]) {
      const read = () => must(ask(tenant.apiKey, PAGE, { id: threadId, last: 50 }, headers));
      await read();
      expect((await during(read)).length).toBeLessThanOrEqual(5);
    }
  });
});

test('unreadCount is one statement, acknowledged or not', async () => {
  const { server, during } = proxied;
  for (const viewer of ['steady', 'often']) {
    const read = () =>
      must(
        server.graphql(tokenOf(viewer), 'query ($id: ID!) { thread(id: $id) { unreadCount } }', {
          id: threadId,
        }),
      );
    await read();
    expect(await during(read)).toEqual(['looks']);
  }
});

test('a list of threads with their last words is a few statements, however long it is', async () => {
  const { server, during } = proxied;
  const read = () =>
    must(
      server.graphql(
        tokenOf('often'),
        '{ threads { nodes { id unreadCount updatedAt lastMessage { content sender { handle } } lastEvent { id } participants { state } } } }',
      ),
    );
  await read();
  const ran = await during(read);
  expect(ran.length, ran.join('\n')).toBeLessThanOrEqual(5);
});

test('nodes are as many statements for many ids as for one of each type', async () => {
  const { server, during } = proxied;
  const { data } = await server.graphql<{
    credentials: { nodes: { id: string }[] };
    engagements: { nodes: { id: string }[] };
  }>(tenant.apiKey, '{ credentials { nodes { id } } engagements { nodes { id } } }');
  const participants = ['steady', 'often', 'talker'].map(idOf);
  const credentials = data?.credentials.nodes.map(({ id }) => id) ?? [];
  const engagements = data?.engagements.nodes.map(({ id }) => id) ?? [];
  const read = (ids: readonly string[]) =>
    must(
      server.graphql<{ nodes: ({ id: string } | null)[] }>(
        tenant.apiKey,
        'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }',
        { ids },
      ),
    );
  const few = [participants, credentials, engagements].map(([id = '']) => id);
  const many = [...participants, ...credentials, ...engagements, ...participants];
  expect((await read(many)).nodes.map((node) => node?.id)).toEqual(many);
  const [one, all] = [await during(() => read(few)), await during(() => read(many))];
  expect(all.length, all.join('\n')).toBe(one.length);
});
