import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryId, newEpoch, newId, readEntryId } from '../../src/shared/ids.ts';
import { type Server, startApp } from '../support/app.ts';
import { createPadWorld, type Name, type PadWorld } from '../support/padApi.ts';
import { createRestClient } from '../support/rest.ts';
import { subscribe } from '../support/subscribe.ts';

let server: Server;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

const SOURCES = 'sources { __typename id ... on ScratchpadEntry { content } ... on Message { content } }';
const POST = `mutation ($input: PostMessageInput!) {
  postMessage(input: $input) { message { id ${SOURCES} } } }`;

interface Source {
  readonly __typename: string;
  readonly id: string;
  readonly content?: string;
}
interface Posted {
  readonly id: string;
  readonly sources: readonly Source[];
}

const post = async (world: PadWorld, who: Name, input: object = {}): Promise<Posted> => {
  const { postMessage } = await world.must<{ postMessage: { message: Posted } }>(world.token(who), POST, {
    input: { threadId: world.threadId, content: 'said', ...input },
  });
  return postMessage.message;
};
const refused = (world: PadWorld, who: Name, input: object) =>
  world.refused(world.token(who), POST, { input: { threadId: world.threadId, content: 'said', ...input } });
const note = async (world: PadWorld, content: string): Promise<string> =>
  (await world.append(world.token('ada'), content)).entry.id;
const ids = (sources: readonly Source[]): string[] => sources.map(({ id }) => id);

describe('what a message derives from', () => {
  test('is shown in its order to whoever may see it, and left out for others, wherever the message is read', async () => {
    const world = await createPadWorld(server);
    await using live = subscribe<{ timeline: { event: Partial<Posted> | null } }>(
      server,
      world.token('cleo'),
      `subscription ($id: ID!) { timeline(threadId: $id) { event { __typename ... on Message { id ${SOURCES} } } } }`,
      { id: world.threadId },
    );
    await live.until((payloads) => payloads.length >= 1);
    const first = await note(world, 'for all');
    const { id: heard } = await post(world, 'ada');
    await world.setState('cleo', 'REMOVED');
    const hidden = await note(world, 'not for cleo');
    const { id: unheard } = await post(world, 'ben');
    await world.setState('cleo', 'ACTIVE');
    const last = await note(world, 'for all again');
    const sourceIds = [last, unheard, hidden, heard, first];
    const forCleo = [last, heard, first];

    const posted = await post(world, 'ada', { sourceIds });
    expect(posted.sources).toEqual([
      { __typename: 'ScratchpadEntry', id: last, content: 'for all again' },
      { __typename: 'Message', id: unheard, content: 'said' },
      { __typename: 'ScratchpadEntry', id: hidden, content: 'not for cleo' },
      { __typename: 'Message', id: heard, content: 'said' },
      { __typename: 'ScratchpadEntry', id: first, content: 'for all' },
    ]);

    const delivered = await live.until((payloads) =>
      payloads.some(({ timeline }) => timeline.event?.id === posted.id),
    );
    expect(ids(delivered.at(-1)?.timeline.event?.sources ?? [])).toEqual(forCleo);

    const READ = `query ($thread: ID!, $id: ID!) {
      node(id: $id) { ... on Message { ${SOURCES} } }
      thread(id: $thread) { timeline { events(last: 1) { nodes { ... on Message { ${SOURCES} } } } } }
    }`;
    const read = async (token: string) => {
      const { node, thread } = await world.must<{
        node: Posted;
        thread: { timeline: { events: { nodes: Posted[] } } };
      }>(token, READ, { thread: world.threadId, id: posted.id });
      expect(thread.timeline.events.nodes).toEqual([node]);
      const { body } = await createRestClient(server, token).get(`/v1/threads/${world.threadId}/events`);
      const page = body as { data: { id: string; source_ids?: string[] }[] };
      const rest = page.data.find(({ id }) => id === posted.id);
      expect(rest?.source_ids).toEqual(ids(node.sources));
      return ids(node.sources);
    };
    for (const token of [world.apiKey, world.token('ada'), world.token('ben')])
      expect(await read(token)).toEqual(sourceIds);
    expect(await read(world.token('cleo'))).toEqual(forCleo);

    await world.clear(world.token('ada'), 'Entries');
    expect(await read(world.apiKey)).toEqual([unheard, heard]);
  });

  test('is taken by REST as by GraphQL, each once', async () => {
    const world = await createPadWorld(server);
    const [entry, { id: event }] = [await note(world, 'a finding'), await post(world, 'ben')];
    const reply = await createRestClient(server, world.token('ben')).post(
      `/v1/threads/${world.threadId}/messages`,
      { content: 'derived', source_ids: [entry, event, entry] },
    );
    expect(reply.body).toMatchObject({ message: { source_ids: [entry, event] } });
  });

  test('may be an entry of another thread’s scratchpad, for those who are in it', async () => {
    const world = await createPadWorld(server);
    const entry = await note(world, 'elsewhere');
    const { openThread } = await world.must<{ openThread: { thread: { id: string } } }>(
      world.apiKey,
      'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
      { ids: [world.id('ada'), world.id('dora')] },
    );
    const threadId = openThread.thread.id;
    const { id } = await post(world, 'ada', { threadId, sourceIds: [entry] });
    expect(await refused(world, 'dora', { threadId, sourceIds: [entry] })).toMatchObject({
      code: 'NOT_FOUND',
    });
    const NODE = `query ($id: ID!) { node(id: $id) { ... on Message { ${SOURCES} } } }`;
    for (const [who, seen] of [
      ['ada', [entry]],
      ['dora', []],
    ] as const) {
      const { node } = await world.must<{ node: Posted }>(world.token(who), NODE, { id });
      expect(ids(node.sources)).toEqual(seen);
    }
  });
});

test('what the sender may not see is refused as what never existed, and nothing is written', async () => {
  const [world, other] = [await createPadWorld(server), await createPadWorld(server)];
  const seen = await note(world, 'seen');
  await world.setState('cleo', 'REMOVED');
  const hidden = await note(world, 'hidden');
  await world.setState('cleo', 'ACTIVE');
  const foreign = await note(other, 'foreign');
  const place = readEntryId(seen);
  if (place === undefined) throw new Error('No entry.');
  const nowhere = await refused(world, 'cleo', { sourceIds: [newId('Event')] });
  expect(nowhere).toMatchObject({ code: 'NOT_FOUND', field: 'sourceIds' });
  for (const id of [
    hidden,
    foreign,
    entryId({ ...place, seq: 99 }),
    entryId({ ...place, epoch: newEpoch() }),
    entryId({ ...place, scratchpadId: newId('Scratchpad') }),
    'entry_0',
    world.scratchpadId,
  ])
    expect(await refused(world, 'cleo', { sourceIds: [seen, id] }), id).toEqual(nowhere);
  const { thread } = await world.must<{ thread: { timeline: { events: { nodes: object[] } } } }>(
    world.apiKey,
    'query ($id: ID!) { thread(id: $id) { timeline { events(types: [MESSAGE]) { nodes { id } } } } }',
    { id: world.threadId },
  );
  expect(thread.timeline.events.nodes).toEqual([]);
});

test('a removed sender is told so, whatever it names', async () => {
  const world = await createPadWorld(server);
  const sourceIds = [await note(world, 'seen')];
  await world.setState('ben', 'REMOVED');
  expect(await refused(world, 'ben', { sourceIds })).toMatchObject({ code: 'PARTICIPANT_NOT_ACTIVE' });
});

describe('posted again with its key', () => {
  const GONE: Readonly<Record<string, (world: PadWorld) => Promise<unknown>>> = {
    'the entry was cleared': (world) => world.clear(world.token('ada'), 'Entries'),
    'the scratchpad was deleted': (world) =>
      world.must(
        world.apiKey,
        'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedId } }',
        { id: world.scratchpadId },
      ),
  };
  test.each(Object.entries(GONE))('a message answers as at first, also when %s', async (_, away) => {
    const world = await createPadWorld(server);
    const sourceIds = [await note(world, 'a finding')];
    const input = { sourceIds, idempotencyKey: 'k' };
    const { id } = await post(world, 'ben', input);
    await away(world);
    expect(await post(world, 'ben', input)).toEqual({ id, sources: [] });
    expect(await refused(world, 'ben', { ...input, content: 'other' })).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
    expect(await refused(world, 'ben', { ...input, idempotencyKey: 'new' })).toMatchObject({
      code: 'NOT_FOUND',
      field: 'sourceIds',
    });
    await world.setState('ben', 'REMOVED');
    expect(await post(world, 'ben', input)).toMatchObject({ id });
  });
});
