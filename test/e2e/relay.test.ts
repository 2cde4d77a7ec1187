import { randomUUID } from 'node:crypto';
import { createClient } from 'graphql-ws';
import {
  type ConcreteRequest,
  ConnectionHandler,
  commitMutation,
  createOperationDescriptor,
  Environment,
  fetchQuery,
  type GraphQLResponse,
  Network,
  type RecordProxy,
  RecordSource,
  type RecordSourceProxy,
  requestSubscription,
  Store,
} from 'relay-runtime';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { steady } from '../../src/client/index.ts';
import { resumableSubscribe } from '../../src/client/relay.ts';
import { openProduct, type Product } from '../support/product.ts';
import { openConversation } from './conversation.ts';
import { compile } from './relay/compile.ts';
import { openScreen, type Shown, watchConsole } from './screen.ts';

interface PageData {
  readonly thread: {
    readonly timeline: {
      readonly id: string;
      readonly end: string;
      readonly events: {
        readonly edges: readonly { readonly node: Shown }[];
        readonly pageInfo: { readonly hasPreviousPage: boolean; readonly startCursor: string | null };
      };
    };
  };
}

interface SidebarData {
  readonly threads: {
    readonly nodes: readonly {
      readonly id: string;
      readonly lastMessage: { readonly content: string } | null;
    }[];
  };
}

describe('Relay', () => {
  let product: Product;
  let artifact: (name: string) => Promise<ConcreteRequest>;
  beforeAll(async () => {
    [product, artifact] = await Promise.all([openProduct(), compile()]);
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
    const network = Network.create(
      async ({ text }, variables) => {
        const response = await fetch(product.server.url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization },
          body: JSON.stringify({ query: text, variables }),
        });
        return (await response.json()) as GraphQLResponse;
      },
      resumableSubscribe(socket, { firstWaitMs: 10 }),
    );
    const environment = new Environment({ network, store: new Store(new RecordSource()) });
    return { environment, close: () => socket.dispose() };
  };

  it('shows a conversation as it is: pages, an optimistic post, live events, a lost connection', async () => {
    const { threadId, quietId, human, say, events } = await openConversation(product);
    const { environment, close } = connect(human.token);
    const screen = openScreen();
    const [sidebarQuery, pageQuery, postMutation, liveSubscription, liveSidebar] = await Promise.all(
      [
        'threadSidebarQuery',
        'threadPageQuery',
        'threadPostMutation',
        'threadLiveSubscription',
        'threadLiveSidebarSubscription',
      ].map(artifact),
    );
    if (!sidebarQuery || !pageQuery || !postMutation || !liveSubscription || !liveSidebar)
      throw new Error('Not compiled.');

    const readSidebar = async () =>
      (await fetchQuery(environment, sidebarQuery, {}).toPromise()) as SidebarData | undefined;
    expect((await readSidebar())?.threads.nodes.map(({ id }) => id)).toEqual([threadId, quietId]);

    const operation = createOperationDescriptor(pageQuery, { threadId });
    const retained = environment.retain(operation);
    await fetchQuery(environment, pageQuery, { threadId }).toPromise();
    const snapshot = environment.lookup(operation.fragment);
    let page = snapshot.data as unknown as PageData;
    const draw = (data: unknown) => {
      page = data as PageData;
      screen.show(page.thread.timeline.events.edges.map(({ node }) => node));
    };
    draw(snapshot.data);
    const watching = environment.subscribe(snapshot, ({ data }) => draw(data));
    for (;;) {
      const { hasPreviousPage, startCursor } = page.thread.timeline.events.pageInfo;
      if (!hasPreviousPage) break;
      await fetchQuery(environment, pageQuery, { threadId, before: startCursor }).toPromise();
    }
    const before = screen.shown().length;
    expect(screen.shown().map(({ id }) => id)).toEqual(await events());

    const timelineId = page.thread.timeline.id;
    /** All ways in lead here: the live event, the answer to one's own post, and what is shown until it comes. */
    const append = (store: RecordSourceProxy, node: RecordProxy | null | undefined, cursor: unknown) => {
      const timeline = store.get(timelineId);
      const connection = timeline && ConnectionHandler.getConnection(timeline, 'thread_events');
      if (!connection || !node) return;
      const key = node.getValue('clientKey');
      const isKnown = (connection.getLinkedRecords('edges') ?? []).some((edge) => {
        const known = edge?.getLinkedRecord('node');
        return known?.getDataID() === node.getDataID() || (key && known?.getValue('clientKey') === key);
      });
      if (isKnown) return;
      const edge = ConnectionHandler.createEdge(store, connection, node, 'TimelineEventEdge');
      edge.setValue(String(cursor), 'cursor');
      ConnectionHandler.insertEdgeAfter(connection, edge);
    };

    const live = requestSubscription(environment, {
      subscription: liveSubscription,
      variables: { threadId, after: page.thread.timeline.end },
      updater(store) {
        const delivery = store.getRootField('timeline');
        append(store, delivery?.getLinkedRecord('event'), delivery?.getValue('cursor'));
      },
    });
    // State, not a log: what changed while nothing was connected is asked for again.
    const liveThreads = requestSubscription<{
      response: { threads: { thread: object | null } };
      variables: object;
    }>(environment, {
      subscription: liveSidebar,
      variables: {},
      onNext: (data) => {
        if (data?.threads.thread === null) void readSidebar();
      },
    });

    const post = (content: string, key: string) =>
      new Promise<void>((resolve, reject) => {
        commitMutation(environment, {
          mutation: postMutation,
          variables: { input: { threadId, content, idempotencyKey: key } },
          optimisticUpdater(store) {
            const node = store.create(`optimistic:${key}`, 'Message');
            for (const [name, value] of Object.entries({
              content,
              clientKey: key,
              seq: 2 ** 30,
              isRetracted: false,
            }))
              node.setValue(value, name);
            node.setValue(`optimistic:${key}`, 'id');
            node.setValue(new Date().toISOString(), 'at');
            const sender = store.get(human.id) ?? store.create(human.id, 'Participant');
            sender.setValue(human.id, 'id');
            sender.setValue('human', 'displayName');
            node.setLinkedRecord(sender, 'sender');
            append(store, node, key);
          },
          updater(store) {
            const edge = store.getRootField('postMessage')?.getLinkedRecord('edge');
            append(store, edge?.getLinkedRecord('node'), edge?.getValue('cursor'));
          },
          onCompleted: () => resolve(),
          onError: reject,
        });
      });

    for (let round = 1; round <= 5; round++) {
      const key = randomUUID();
      const posted = post(`Answer ${round}`, key);
      await screen.until((shown) => shown.some(({ clientKey }) => clientKey === key));
      await posted;
      product.cut();
      await say(`Reply ${round}`);
      await screen.until(
        (shown) => shown.length === before + 2 * round && shown.every(({ id }) => !id.startsWith('opt')),
      );
    }

    expect(screen.shown().map(({ id }) => id)).toEqual(await events());
    expect(screen.problems()).toEqual([]);
    const sidebar = createOperationDescriptor(sidebarQuery, {});
    await screen.poll(() => {
      const { threads } = environment.lookup(sidebar.fragment).data as unknown as SidebarData;
      return threads.nodes[0]?.lastMessage?.content === 'Reply 5';
    });

    watching.dispose();
    retained.dispose();
    live.dispose();
    liveThreads.dispose();
    await close();
    expect(warnings.said()).toEqual([]);
  });
});
