import { randomUUID } from 'node:crypto';
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client';
import { relayStylePagination } from '@apollo/client/utilities';
import { OperationTypeNode } from 'graphql';
import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { resumableLink } from '../../src/client/apollo.ts';
import { steady } from '../../src/client/index.ts';
import { graphql } from '../support/gql/gql.ts';
import type { PageQuery, PostMutation } from '../support/gql/graphql.ts';
import { openProduct, type Product } from '../support/product.ts';
import { openConversation } from './conversation.ts';
import { possibleTypes } from './schemaFacts.ts';
import { createRefresh, openScreen, watchConsole } from './screen.ts';

const EVENT = graphql(`
  fragment Event on TimelineEvent {
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
`);

const SIDEBAR = graphql(`
  query Sidebar {
    threads(first: 20) {
      nodes {
        id
        unreadCount
        lastMessage {
          id
          content
        }
        participants {
          id
          state
          participant {
            id
            displayName
          }
        }
      }
    }
  }
`);

const PAGE = graphql(`
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
`);

const POST = graphql(`
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
`);

const LIVE = graphql(`
  subscription Live($threadId: ID!, $after: Cursor) {
    timeline(threadId: $threadId, after: $after) {
      cursor
      event {
        ...Event
      }
    }
  }
`);

const LIVE_SIDEBAR = graphql(`
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
`);

/** The page, which is there for whoever is in the thread. */
const timelineIn = ({ thread }: PageQuery) => {
  const timeline = thread?.timeline;
  if (!timeline?.events) throw new Error('No page.');
  return { ...timeline, events: timeline.events };
};

type Edge = PostMutation['postMessage']['edge'];

describe('Apollo Client', () => {
  let product: Product;
  beforeAll(async () => {
    product = await openProduct();
  });
  afterAll(async () => {
    await product.close();
  });
  const warnings = watchConsole();
  beforeEach(() => warnings.clear());

  const connect = (token: string) => {
    const authorization = `Bearer ${token}`;
    const socket = createClient({
      url: product.wsUrl,
      webSocketImpl: WebSocket,
      connectionParams: { authorization },
      ...steady,
    });
    const client = new ApolloClient({
      cache: new InMemoryCache({
        possibleTypes,
        typePolicies: { Timeline: { fields: { events: relayStylePagination(['types']) } } },
      }),
      link: ApolloLink.split(
        ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
        resumableLink(socket, { firstWaitMs: 10 }),
        new HttpLink({ uri: product.server.url, headers: { authorization } }),
      ),
    });
    return { client, close: () => socket.dispose() };
  };

  it('shows a conversation as it is: pages, an optimistic post, live events, a lost connection', async () => {
    const conversation = await openConversation(product);
    const { threadId } = conversation;
    const { client, close } = connect(conversation.human.token);
    const screen = openScreen();

    const sidebar = await client.query({ query: SIDEBAR });
    expect(sidebar.data?.threads?.nodes.map(({ id }) => id)).toEqual([threadId, conversation.quietId]);

    const page = client.watchQuery({ query: PAGE, variables: { threadId } });
    const watching = page.subscribe(({ data, dataState }) => {
      if (dataState === 'complete') screen.show(timelineIn(data).events.edges.map(({ node }) => node));
    });
    await screen.until((shown) => shown.length === 10);

    for (;;) {
      const { data, dataState } = page.getCurrentResult();
      if (dataState !== 'complete') throw new Error('No page.');
      const { hasPreviousPage, startCursor } = timelineIn(data).events.pageInfo;
      if (!hasPreviousPage || startCursor === null) break;
      const { length } = screen.shown();
      await page.fetchMore({ variables: { before: startCursor } });
      await screen.until((shown) => shown.length > length);
    }
    // The two who were there from the start, and thirty messages.
    await screen.until((shown) => shown.length >= 31);
    const before = screen.shown().length;

    const { data: first } = await client.query({ query: PAGE, variables: { threadId } });
    if (!first) throw new Error('No page.');
    const { id: timelineId, end } = timelineIn(first);
    const timeline = { __typename: 'Timeline', id: timelineId };
    /** Both ways in, the answer to one's own post and the live event, lead here: whichever is first. */
    const append = (cache: Pick<InMemoryCache, 'modify' | 'identify' | 'writeFragment'>, edge: Edge) => {
      const id = cache.identify(timeline);
      const node = cache.writeFragment({ fragment: EVENT, fragmentName: 'Event', data: { ...edge.node } });
      if (id === undefined || node === undefined) throw new Error('Not in the cache.');
      cache.modify<{ events: { edges: { node: { __ref: string } }[] } }>({
        id,
        fields: {
          events: (events, { isReference }) =>
            isReference(events) || events.edges.some((known) => known.node.__ref === node.__ref)
              ? events
              : {
                  ...events,
                  edges: [...events.edges, { __typename: 'TimelineEventEdge', cursor: edge.cursor, node }],
                },
        },
      });
    };
    const live = client
      .subscribe({ query: LIVE, variables: { threadId, after: end } })
      .subscribe(({ data }) => {
        if (data?.timeline.event)
          append(client.cache as InMemoryCache, { cursor: data.timeline.cursor, node: data.timeline.event });
      });
    // State, not a log: what changed while nothing was connected is asked for again.
    const refresh = createRefresh(() => client.query({ query: SIDEBAR, fetchPolicy: 'network-only' }));
    const liveSidebar = client.subscribe({ query: LIVE_SIDEBAR }).subscribe(({ data }) => {
      if (data) refresh.hear(data.threads.thread === null);
    });

    for (let round = 1; round <= 5; round++) {
      const key = randomUUID();
      const content = `Answer ${round}`;
      const posted = client.mutate({
        mutation: POST,
        variables: { input: { threadId, content, idempotencyKey: key } },
        optimisticResponse: {
          postMessage: {
            __typename: 'PostMessagePayload',
            edge: {
              __typename: 'TimelineEventEdge',
              cursor: key,
              node: {
                __typename: 'Message',
                id: `optimistic:${key}`,
                seq: 2 ** 30,
                at: new Date().toISOString(),
                content,
                clientKey: key,
                isRetracted: false,
                sender: { __typename: 'Participant', id: conversation.human.id, displayName: 'human' },
              },
            },
          },
        } as never,
        update: (cache, { data }) => {
          if (data) append(cache as InMemoryCache, data.postMessage.edge);
        },
      });
      await screen.until((shown) => shown.some(({ clientKey }) => clientKey === key));
      await posted;
      product.cut();
      await conversation.say(`Reply ${round}`);
      await screen.until(
        (shown) => shown.length === before + 2 * round && shown.every(({ id }) => !id.startsWith('opt')),
      );
    }

    const events = await conversation.events();
    expect(screen.shown().map(({ id }) => id)).toEqual(events);
    expect(screen.problems()).toEqual([]);
    await screen.poll(() => {
      const { threads } = client.readQuery({ query: SIDEBAR }) ?? {};
      return threads?.nodes[0]?.lastMessage?.content === 'Reply 5';
    });

    watching.unsubscribe();
    live.unsubscribe();
    liveSidebar.unsubscribe();
    await refresh.settled();
    client.stop();
    await close();
    expect(warnings.said()).toEqual([]);
  });
});
