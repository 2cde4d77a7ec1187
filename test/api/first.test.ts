import { expect, test } from 'vitest';
import { createTenant, startApp } from '../support/app.ts';

test('a thread is opened, posted to, and read back by the other', async () => {
  await using server = await startApp();
  const tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT' });
  const { ada, scout } = tenant.participants;
  const opened = await server.graphql<{ openThread: { created: boolean; thread: { id: string } } }>(
    tenant.apiKey,
    'mutation($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { created thread { id } } }',
    { ids: [ada?.id, scout?.id] },
  );
  const id = opened.data?.openThread.thread.id;
  const posted = await server.graphql<{ postMessage: { edge: { node: { id: string } } } }>(
    ada?.token ?? '',
    'mutation($id: ID!) { postMessage(input: { threadId: $id, content: "Hello" }) { edge { cursor node { id } } } }',
    { id },
  );
  const read = await server.graphql(
    scout?.token ?? '',
    `{ threads { nodes { id unreadCount lastMessage { id content sender { handle } }
       timeline { events { nodes { seq __typename } pageInfo { hasNextPage hasPreviousPage } } } } } }`,
  );
  const messageId = posted.data?.postMessage.edge.node.id;
  expect(read).toEqual({
    data: {
      threads: {
        nodes: [
          {
            id,
            unreadCount: 1,
            lastMessage: { id: messageId, content: 'Hello', sender: { handle: 'ada' } },
            timeline: {
              events: {
                nodes: [
                  { seq: 1, __typename: 'SystemEvent' },
                  { seq: 2, __typename: 'Message' },
                ],
                pageInfo: { hasNextPage: false, hasPreviousPage: false },
              },
            },
          },
        ],
      },
    },
  });
});
