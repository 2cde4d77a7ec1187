import { randomUUID } from 'node:crypto';
import { Client, fetchExchange, gql, type TypedDocumentNode } from '@urql/core';
import { type Cache, cacheExchange } from '@urql/exchange-graphcache';
import { relayPagination } from '@urql/exchange-graphcache/extras';
import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { steady } from '../../src/client/index.ts';
import { resumableExchange } from '../../src/client/urql.ts';
import { openProduct, type Product } from '../support/product.ts';
import { openConversation } from './conversation.ts';
import { introspection, typesWithoutId } from './schemaFacts.ts';
import { createRefresh, openScreen, type Shown, watchConsole } from './screen.ts';

interface Edge {
  readonly __typename: 'TimelineEventEdge';
  readonly cursor: string;
  readonly node: Shown;
}

interface PageData {
  readonly thread: {
    readonly timeline: {
      readonly end: string;
      readonly events: {
        readonly edges: readonly Edge[];
        readonly pageInfo: { readonly hasPreviousPage: boolean; readonly startCursor: string | null };
      };
    };
  };
}

const EVENT = gql`
  fragment Event on TimelineEvent {
    __typename
    id
    seq
    at
    ... on Message {
      content
      clientKey
      isRetracted
      sender {
        id
        displayName
      }
    }
    ... on ParticipantStateChanged {
      transition
      participant {
        id
        displayName
      }
    }
  }
`;

const SIDEBAR: TypedDocumentNode<
  { threads: { nodes: { id: string; lastMessage: { content: string } | null }[] } },
  Record<string, never>
> = gql`
  query Sidebar {
    threads(first: 20) {
      nodes {
        id
        unreadCount
        lastMessage {
          id
          content
        }
      }
    }
  }
`;

const PAGE: TypedDocumentNode<PageData, { threadId: string; before?: string }> = gql`
  query Page($threadId: ID!, $before: Cursor) {
    thread(id: $threadId) {
      id
      timeline {
        id
        end
        events(last: 10, before: $before) {
          edges {
            cursor
            node {
              ...Event
            }
          }
          pageInfo {
            hasPreviousPage
            startCursor
            hasNextPage
            endCursor
          }
        }
      }
    }
  }
  ${EVENT}
`;

const POST: TypedDocumentNode<
  { postMessage: { edge: Edge } },
  { input: { threadId: string; content: string; idempotencyKey: string } }
> = gql`
  mutation Post($input: PostMessageInput!) {
    postMessage(input: $input) {
      edge {
        cursor
        node {
          ...Event
        }
      }
    }
  }
  ${EVENT}
`;

const LIVE: TypedDocumentNode<
  { timeline: { cursor: string; event: Shown | null } },
  { threadId: string; after: string }
> = gql`
  subscription Live($threadId: ID!, $after: Cursor) {
    timeline(threadId: $threadId, after: $after) {
      cursor
      event {
        ...Event
      }
    }
  }
  ${EVENT}
`;

const LIVE_SIDEBAR: TypedDocumentNode<
  { threads: { thread: { id: string } | null } },
  Record<string, never>
> = gql`
  subscription LiveSidebar {
    threads {
      thread {
        id
        unreadCount
        lastMessage {
          id
          content
        }
      }
    }
  }
`;

/** Both ways in, the answer to one's own post and the live event, lead here: whichever is first. */
const append = (cache: Cache, threadId: string, edge: Edge): void => {
  cache.updateQuery({ query: PAGE, variables: { threadId } }, (page) => {
    const { edges } = page?.thread.timeline.events ?? {};
    if (!page || !edges || edges.some(({ node }) => node.id === edge.node.id)) return page;
    const { thread } = page;
    const events = { ...thread.timeline.events, edges: [...edges, edge] };
    return { ...page, thread: { ...thread, timeline: { ...thread.timeline, events } } };
  });
};

describe('urql', () => {
  let product: Product;
  beforeAll(async () => {
    product = await openProduct();
  });
  afterAll(async () => {
    await product.close();
  });
  const warnings = watchConsole();
  beforeEach(() => warnings.clear());

  const connect = (token: string, me: { readonly id: string }) => {
    const authorization = `Bearer ${token}`;
    const socket = createClient({
      url: product.wsUrl,
      webSocketImpl: WebSocket,
      connectionParams: { authorization },
      ...steady,
    });
    const cache = cacheExchange({
      schema: introspection,
      keys: Object.fromEntries(typesWithoutId.map((name) => [name, () => null])),
      resolvers: { Timeline: { events: relayPagination() } },
      optimistic: {
        postMessage: ({ input }) => {
          const { content, idempotencyKey } = input as { content: string; idempotencyKey: string };
          return {
            __typename: 'PostMessagePayload',
            edge: {
              __typename: 'TimelineEventEdge',
              cursor: idempotencyKey,
              node: {
                __typename: 'Message',
                id: `optimistic:${idempotencyKey}`,
                seq: 2 ** 30,
                at: new Date().toISOString(),
                content,
                clientKey: idempotencyKey,
                isRetracted: false,
                sender: { __typename: 'Participant', id: me.id, displayName: 'human' },
              },
            },
          };
        },
      },
      updates: {
        Mutation: {
          postMessage: (result, { input }, store) =>
            append(
              store,
              (input as { threadId: string }).threadId,
              (result.postMessage as { edge: Edge }).edge,
            ),
        },
        Subscription: {
          timeline: (result, { threadId }, store) => {
            const { cursor, event } = result.timeline as { cursor: string; event: Shown | null };
            if (event)
              append(store, String(threadId), { __typename: 'TimelineEventEdge', cursor, node: event });
          },
        },
      },
    });
    const client = new Client({
      url: product.server.url,
      preferGetMethod: false,
      fetchOptions: { headers: { authorization } },
      exchanges: [cache, resumableExchange(socket, { firstWaitMs: 10 }), fetchExchange],
    });
    return { client, close: () => socket.dispose() };
  };

  it('shows a conversation as it is: pages, an optimistic post, live events, a lost connection', async () => {
    const conversation = await openConversation(product);
    const { threadId, human } = conversation;
    const { client, close } = connect(human.token, human);
    const screen = openScreen();

    const sidebar = await client.query(SIDEBAR, {}).toPromise();
    expect(sidebar.data?.threads.nodes.map(({ id }) => id)).toEqual([threadId, conversation.quietId]);

    let page: PageData | undefined;
    const watching = client.query(PAGE, { threadId }).subscribe(({ data }) => {
      page = data;
      if (data) screen.show(data.thread.timeline.events.edges.map(({ node }) => node));
    });
    await screen.until((shown) => shown.length === 10);
    for (;;) {
      const { hasPreviousPage, startCursor } = page?.thread.timeline.events.pageInfo ?? {};
      if (!hasPreviousPage || !startCursor) break;
      const { length } = screen.shown();
      await client.query(PAGE, { threadId, before: startCursor }).toPromise();
      await screen.until((shown) => shown.length > length);
    }
    const before = screen.shown().length;
    expect(screen.shown().map(({ id }) => id)).toEqual(await conversation.events());

    const live = client
      .subscription(LIVE, { threadId, after: page?.thread.timeline.end ?? '' })
      .subscribe(() => {});
    // State, not a log: what changed while nothing was connected is asked for again.
    const refresh = createRefresh(() =>
      client.query(SIDEBAR, {}, { requestPolicy: 'network-only' }).toPromise(),
    );
    const liveSidebar = client.subscription(LIVE_SIDEBAR, {}).subscribe(({ data }) => {
      if (data) refresh.hear(data.threads.thread === null);
    });

    for (let round = 1; round <= 5; round++) {
      const key = randomUUID();
      const input = { threadId, content: `Answer ${round}`, idempotencyKey: key };
      const posted = client.mutation(POST, { input }).toPromise();
      await screen.until((shown) => shown.some(({ clientKey }) => clientKey === key));
      expect((await posted).error).toBeUndefined();
      product.cut();
      await conversation.say(`Reply ${round}`);
      await screen.until(
        (shown) => shown.length === before + 2 * round && shown.every(({ id }) => !id.startsWith('opt')),
      );
    }

    expect(screen.shown().map(({ id }) => id)).toEqual(await conversation.events());
    expect(screen.problems()).toEqual([]);
    await screen.poll(
      () => client.readQuery(SIDEBAR, {})?.data?.threads.nodes[0]?.lastMessage?.content === 'Reply 5',
    );

    watching.unsubscribe();
    live.unsubscribe();
    liveSidebar.unsubscribe();
    await refresh.settled();
    await close();
    expect(warnings.said()).toEqual([]);
  });
});
