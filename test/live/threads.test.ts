import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';
import { subscribe } from '../support/subscribe.ts';

const FOLLOW = `subscription { threads { thread { id unreadCount metaData lastMessage { content } viewerState } deletedThreadId ended } }`;

interface Payload {
  threads: {
    thread: {
      id: string;
      unreadCount: number;
      metaData: object;
      lastMessage: { content: string } | null;
      viewerState: string | null;
    } | null;
    deletedThreadId: string | null;
    ended: string | null;
  };
}

let server: Server;
let tenant: Tenant;
const idOf = (handle: string): string => tenant.participants[handle]?.id ?? '';
const tokenOf = (handle: string): string => tenant.participants[handle]?.token ?? '';

beforeAll(async () => {
  server = await startApp();
  tenant = await createTenant(server, { ada: 'HUMAN', ben: 'HUMAN', cleo: 'AGENT', dora: 'AGENT' });
});
afterAll(() => server.close());

const mutate = async (
  token: string,
  field: string,
  input: object,
  selection = '__typename',
): Promise<never> => {
  const type = `${field[0]?.toUpperCase()}${field.slice(1)}Input`.replace(
    /^(Remove|Readd)ParticipantInput$/,
    'ParticipantStateInput',
  );
  const answer = await server.graphql(
    token,
    `mutation($input: ${type}!) { ${field}(input: $input) { ${selection} } }`,
    { input },
  );
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
  return (answer.data as never)[field];
};

const open = async (...handles: string[]): Promise<string> => {
  const opened: { thread: { id: string } } = await mutate(
    tenant.apiKey,
    'openThread',
    { participantIds: handles.map(idOf) },
    'thread { id }',
  );
  return opened.thread.id;
};

const post = (handle: string, threadId: string, content: string): Promise<{ cursor: string }> =>
  mutate(tokenOf(handle), 'postMessage', { threadId, content }, 'cursor');

const isAbout = (threadId: string) => (payloads: readonly Payload[]) =>
  payloads.some(({ threads }) => threads.thread?.id === threadId);

test('a list of threads is woken by what goes through the viewer’s window and by its own doings, and by nothing else', async () => {
  const threadId = await open('ada', 'ben', 'cleo');
  await using ada = subscribe<Payload>(server, tokenOf('ada'), FOLLOW);
  await using cleo = subscribe<Payload>(server, tokenOf('cleo'), FOLLOW);
  await ada.until((payloads) => payloads.length === 1);
  await cleo.until((payloads) => payloads.length === 1);
  expect(ada.payloads[0]).toEqual({ threads: { thread: null, deletedThreadId: null, ended: null } });

  const { cursor } = await post('ben', threadId, 'one');
  await ada.until((payloads) => payloads.at(-1)?.threads.thread?.lastMessage?.content === 'one');
  await cleo.until((payloads) => payloads.at(-1)?.threads.thread?.lastMessage?.content === 'one');
  expect(ada.payloads.at(-1)?.threads.thread).toMatchObject({ id: threadId, unreadCount: 1 });

  // Its own read position, moved elsewhere.
  await mutate(tokenOf('ada'), 'acknowledge', { threadId, upTo: cursor });
  await ada.until((payloads) => payloads.at(-1)?.threads.thread?.unreadCount === 0);

  // Its own removal; after it, nothing of what the others do.
  await mutate(tenant.apiKey, 'removeParticipant', { threadId, participantId: idOf('cleo') });
  await cleo.until((payloads) => payloads.at(-1)?.threads.thread?.viewerState === 'REMOVED');
  const heard = cleo.payloads.length;
  await post('ben', threadId, 'behind its back');
  await ada.until((payloads) => payloads.at(-1)?.threads.thread?.lastMessage?.content === 'behind its back');
  const other = await open('cleo', 'dora');
  await cleo.until(isAbout(other));
  expect(cleo.payloads.slice(heard).map(({ threads }) => threads.thread?.id)).toEqual([other]);

  // What administration changes is everybody's.
  await mutate(tenant.apiKey, 'updateThread', { threadId, metaData: { topic: 'tea' } });
  await cleo.until((payloads) => payloads.at(-1)?.threads.thread?.id === threadId);
  expect(cleo.payloads.at(-1)?.threads.thread).toMatchObject({
    metaData: { topic: 'tea' },
    lastMessage: { content: 'one' },
  });

  await mutate(tenant.apiKey, 'deleteThread', { threadId });
  await ada.until((payloads) => payloads.at(-1)?.threads.deletedThreadId === threadId);
  await cleo.until((payloads) => payloads.at(-1)?.threads.deletedThreadId === threadId);
});

test('a burst in one thread is told as one change a second, and the last of it is never left out', async () => {
  const threadId = await open('ada', 'dora');
  await using ada = subscribe<Payload>(server, tokenOf('ada'), FOLLOW);
  await ada.until((payloads) => payloads.length === 1);
  const startedAt = performance.now();
  for (let i = 1; i <= 40; i += 1) await post('dora', threadId, `${i}`);
  await ada.until((payloads) => payloads.at(-1)?.threads.thread?.lastMessage?.content === '40');
  const seconds = (performance.now() - startedAt) / 1_000;
  const told = ada.payloads.filter(({ threads }) => threads.thread?.id === threadId).length;
  expect(told).toBeLessThanOrEqual(Math.floor(seconds) + 1);
});

test('a member is not woken by a link to a thread that it is not in', async () => {
  const pair = await open('ada', 'ben');
  const larger = await open('ada', 'ben', 'dora');
  await using dora = subscribe<Payload>(server, tokenOf('dora'), FOLLOW);
  await dora.until((payloads) => payloads.length === 1);
  await mutate(tenant.apiKey, 'extendThread', { threadId: pair, participantIds: [idOf('dora')] });
  const marker = await open('dora', 'cleo', 'ben');
  await dora.until(isAbout(marker));
  expect(isAbout(larger)(dora.payloads)).toBe(false);
});
