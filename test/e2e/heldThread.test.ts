import pg from 'pg';
import { expect, test } from 'vitest';
import { createTenant, startApp } from '../support/app.ts';
import { subscribe } from '../support/subscribe.ts';

const OPEN = 'mutation($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }';
const POST =
  'mutation($id: ID!, $text: String!) { postMessage(input: { threadId: $id, content: $text }) { cursor } }';
const FOLLOW = 'subscription($id: ID!) { timeline(threadId: $id) { event { ... on Message { content } } } }';

interface Payload {
  timeline: { event: { content?: string } | null };
}

test('threads never wait for each other: one whose lock is held takes nothing from the rest', async () => {
  await using server = await startApp({ DATABASE_POOL_SIZE: '8' });
  const { apiKey, participants } = await createTenant(server, { ada: 'HUMAN', ben: 'HUMAN', cleo: 'AGENT' });
  const [ada, ben, cleo] = [participants['ada'], participants['ben'], participants['cleo']];
  const open = async (...ids: (string | undefined)[]): Promise<string> => {
    const { data } = await server.graphql<{ openThread: { thread: { id: string } } }>(apiKey, OPEN, { ids });
    return data?.openThread.thread.id ?? '';
  };
  const held = await open(ada?.id, ben?.id);
  const free = await open(ada?.id, cleo?.id);
  await using follower = subscribe<Payload>(server, cleo?.token ?? '', FOLLOW, { id: free });
  await follower.until((payloads) => payloads.length === 1);

  const holder = new pg.Client({ connectionString: server.stores.databaseUrl });
  await holder.connect();
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM thread_heads WHERE thread_id = $1 FOR UPDATE', [held]);
  const stuck = Array.from({ length: 40 }, (_, index) =>
    server.graphql<{ postMessage: object }>(ada?.token ?? '', POST, { id: held, text: `${index}` }),
  );
  for (let index = 0; index < 20; index += 1) {
    const answer = await server.graphql(ada?.token ?? '', POST, { id: free, text: `${index}` });
    expect(answer.errors).toBeUndefined();
  }
  await follower.until((payloads) => payloads.at(-1)?.timeline.event?.content === '19');
  expect(follower.payloads.slice(1).map(({ timeline }) => timeline.event?.content)).toEqual(
    Array.from({ length: 20 }, (_, index) => `${index}`),
  );

  await holder.query('COMMIT');
  await holder.end();
  const answers = await Promise.all(stuck);
  expect(
    answers.every(
      ({ data, errors }) =>
        data?.postMessage !== undefined || errors?.[0]?.extensions?.code === 'UNAVAILABLE',
    ),
  ).toBe(true);
  expect(answers.some(({ data }) => data?.postMessage !== undefined)).toBe(true);
});
