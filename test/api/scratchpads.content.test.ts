import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Server, startApp } from '../support/app.ts';
import {
  APPEND,
  APPEND_ALL,
  createPadWorld,
  type Entry,
  type PadWorld,
  SET_CONTENT,
} from '../support/padApi.ts';

let server: Server;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

const READ = `query ($id: ID!, $as: ID, $first: Int, $after: Cursor, $last: Int, $before: Cursor) {
  scratchpad(id: $id, as: $as) {
    id viewerMayWrite expiresAt end formattedView
    content { text version etag threadSeq updatedAt updatedBy { handle } }
    entries(first: $first, after: $after, last: $last, before: $before) {
      edges { cursor node { id } }
      nodes { id seq threadSeq content createdAt isErased cursor author { handle } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
}`;

interface Pad {
  readonly id: string;
  readonly viewerMayWrite: boolean;
  readonly expiresAt: string | null;
  readonly end: string | null;
  readonly formattedView: string | null;
  readonly content: {
    readonly text: string;
    readonly version: number;
    readonly etag: string;
    readonly threadSeq: number | null;
    readonly updatedAt: string | null;
    readonly updatedBy: { readonly handle: string } | null;
  } | null;
  readonly entries: {
    readonly nodes: readonly Entry[];
    readonly pageInfo: {
      readonly hasNextPage: boolean;
      readonly hasPreviousPage: boolean;
      readonly startCursor: string | null;
      readonly endCursor: string | null;
    };
  };
}

const read = async (world: PadWorld, token: string, variables: object = {}): Promise<Pad> =>
  (await world.must<{ scratchpad: Pad }>(token, READ, { id: world.scratchpadId, ...variables })).scratchpad;

const seqs = ({ entries }: Pad): number[] => entries.nodes.map(({ seq }) => seq);

test('a pad that was never written is empty for everybody', async () => {
  const world = await createPadWorld(server);
  for (const token of [world.apiKey, world.token('ada')])
    expect(await read(world, token)).toMatchObject({
      viewerMayWrite: true,
      expiresAt: null,
      content: { text: '', version: 0, etag: '', threadSeq: null, updatedAt: null, updatedBy: null },
      entries: { nodes: [], pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null } },
      formattedView: expect.stringMatching(/^\(.*update_scratchpad.*\)$/),
    });
});

test('what members and the user write is read by all of them, with who wrote it and when', async () => {
  const world = await createPadWorld(server);
  const { token } = world;
  const written = await world.setContent(token('ada'), 'A plan ✎');
  expect(written).toMatchObject({
    content: { text: 'A plan ✎', version: 1 },
    scratchpad: { id: world.scratchpadId },
  });
  const first = await world.append(token('ben'), 'first finding');
  expect(first).toMatchObject({
    entry: { seq: 1, content: 'first finding', author: { handle: 'ben' } },
    edge: { cursor: first.entry.cursor, node: { id: first.entry.id } },
  });
  await world.append(world.apiKey, 'by the user');
  await world.append(world.apiKey, 'as cleo', { as: world.id('cleo') });
  const pad = await read(world, token('cleo'));
  expect(pad.content).toMatchObject({
    text: 'A plan ✎',
    version: 1,
    etag: written.content.etag,
    updatedBy: { handle: 'ada' },
  });
  expect(pad.entries.nodes.map(({ seq, content, author }) => [seq, content, author?.handle ?? null])).toEqual(
    [
      [1, 'first finding', 'ben'],
      [2, 'by the user', null],
      [3, 'as cleo', 'cleo'],
    ],
  );
  for (const { createdAt } of pad.entries.nodes as readonly (Entry & { createdAt: string })[])
    expect(Math.abs(Date.parse(createdAt) - Date.now())).toBeLessThan(60_000);
  expect(pad.formattedView).toBe(
    '--- 📝 RESEARCH SCRATCHPAD ---\n\nWORKING BODY\nA plan ✎\n\nAPPENDED ENTRIES\n[1] first finding\n[2] by the user\n[3] as cleo',
  );
});

describe('the body', () => {
  test('is replaced whole, may be empty, and counts its versions', async () => {
    const world = await createPadWorld(server);
    const one = await world.setContent(world.token('ada'), 'one');
    const two = await world.setContent(world.token('ben'), '');
    expect(two.content).toMatchObject({ text: '', version: 2 });
    expect(two.content.etag).not.toBe(one.content.etag);
    expect(two.content.etag).not.toBe('');
  });

  test('is written over the expected one only', async () => {
    const world = await createPadWorld(server);
    const [ada, ben] = [world.token('ada'), world.token('ben')];
    const one = await world.setContent(ada, 'one', { expectedEtag: '' });
    await world.setContent(ben, 'two', { expectedEtag: one.content.etag });
    const input = { scratchpadId: world.scratchpadId, text: 'three' };
    const { etag } = (await read(world, ada)).content ?? { etag: '' };
    for (const expectedEtag of ['', one.content.etag, 'nonsense'])
      expect(await world.refused(ada, SET_CONTENT, { input: { ...input, expectedEtag } })).toMatchObject({
        code: 'VERSION_CONFLICT',
        currentEtag: etag,
      });
    await world.clear(ada, 'Content');
    expect(await world.refused(ada, SET_CONTENT, { input: { ...input, expectedEtag: etag } })).toMatchObject({
      code: 'VERSION_CONFLICT',
      currentEtag: '',
    });
    await world.setContent(ada, 'four', { expectedEtag: '' });
  });

  test('of 50 who write over the same one exactly one wins each time', async () => {
    const world = await createPadWorld(server);
    let { etag } = (await world.setContent(world.apiKey, 'start')).content;
    for (let round = 1; round <= 5; round += 1) {
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, writer) =>
          server.graphql<{ setScratchpadContent: { content: { etag: string } } }>(world.apiKey, SET_CONTENT, {
            input: { scratchpadId: world.scratchpadId, text: `${round}.${writer}`, expectedEtag: etag },
          }),
        ),
      );
      const won = outcomes.filter(({ errors }) => errors === undefined);
      expect(won).toHaveLength(1);
      etag = won[0]?.data?.setScratchpadContent.content.etag ?? '';
      for (const { errors } of outcomes)
        if (errors)
          expect(errors[0]?.extensions).toMatchObject({ code: 'VERSION_CONFLICT', currentEtag: etag });
    }
  });
});

describe('entries', () => {
  test('are appended all or none, with nothing of others between them', async () => {
    const world = await createPadWorld(server);
    const batches = await Promise.all(
      Array.from({ length: 10 }, (_, batch) =>
        world.must<{ appendScratchpadEntries: { entries: Entry[] } }>(world.token('ada'), APPEND_ALL, {
          input: {
            scratchpadId: world.scratchpadId,
            contents: Array.from({ length: 7 }, (_, index) => `${batch}.${index}`),
          },
        }),
      ),
    );
    for (const { appendScratchpadEntries } of batches) {
      const [from = 0] = appendScratchpadEntries.entries.map(({ seq }) => seq);
      expect(appendScratchpadEntries.entries.map(({ seq }) => seq)).toEqual(
        Array.from({ length: 7 }, (_, index) => from + index),
      );
    }
    expect(seqs(await read(world, world.apiKey, { first: 200 }))).toEqual(
      Array.from({ length: 70 }, (_, index) => index + 1),
    );
    const input = { scratchpadId: world.scratchpadId, contents: ['fine', 'x'.repeat(64 * 1024 + 1)] };
    expect(await world.refused(world.token('ada'), APPEND_ALL, { input })).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      field: 'contents',
      limit: 64 * 1024,
    });
    expect(seqs(await read(world, world.apiKey, { first: 200 }))).toHaveLength(70);
  });

  test('are paged both ways, with flags that are right, and cursors that outlive a clear', async () => {
    const world = await createPadWorld(server);
    await world.must(world.apiKey, APPEND_ALL, {
      input: { scratchpadId: world.scratchpadId, contents: Array.from({ length: 25 }, (_, i) => `${i + 1}`) },
    });
    const page = async (variables: object) => {
      const pad = await read(world, world.token('ada'), variables);
      const { hasNextPage, hasPreviousPage } = pad.entries.pageInfo;
      return [seqs(pad), hasPreviousPage, hasNextPage] as const;
    };
    const all = Array.from({ length: 25 }, (_, i) => i + 1);
    expect(await page({})).toEqual([all, false, false]);
    expect(await page({ first: 10 })).toEqual([all.slice(0, 10), false, true]);
    expect(await page({ last: 10 })).toEqual([all.slice(15), true, false]);
    const cursors = (await read(world, world.apiKey)).entries.nodes.map(({ cursor }) => cursor);
    expect(await page({ first: 10, after: cursors[9] })).toEqual([all.slice(10, 20), true, true]);
    expect(await page({ first: 10, after: cursors[19] })).toEqual([all.slice(20), true, false]);
    expect(await page({ last: 10, before: cursors[9] })).toEqual([all.slice(0, 9), false, true]);
    expect(await page({ last: 5, before: cursors[20], after: cursors[2] })).toEqual([
      all.slice(15, 20),
      true,
      true,
    ]);
    expect(await page({ first: 10, after: cursors[24] })).toEqual([[], true, false]);
    expect(await page({ first: 10, before: cursors[0] })).toEqual([[], false, true]);

    await world.clear(world.apiKey, 'Entries');
    expect(await page({ first: 10, after: cursors[9] })).toEqual([[], false, false]);
    await world.append(world.apiKey, 'after the clear');
    expect(await page({ first: 10, after: cursors[24] })).toEqual([[26], false, false]);
    expect(await page({ last: 10, before: cursors[9] })).toEqual([[], false, true]);
  });

  test('refuse cursors of another pad and of anything else', async () => {
    const [world, other] = [await createPadWorld(server), await createPadWorld(server)];
    const { entry, cursor } = await other.append(other.apiKey, 'elsewhere');
    await world.append(world.apiKey, 'here');
    for (const wrong of [entry.cursor, cursor, 'nonsense', ''])
      for (const field of ['after', 'before'])
        expect(
          await world.refused(world.token('ada'), READ, { id: world.scratchpadId, [field]: wrong }),
        ).toMatchObject({ code: 'INVALID_CURSOR', field });
    for (const wrong of [{ first: 0 }, { first: 201 }, { last: -1 }, { first: 1, last: 1 }])
      expect(
        await world.refused(world.token('ada'), READ, { id: world.scratchpadId, ...wrong }),
      ).toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  test('are nodes, for whoever may see them', async () => {
    const world = await createPadWorld(server);
    const { entry } = await world.append(world.token('ada'), 'a finding');
    const NODE = 'query ($id: ID!) { node(id: $id) { __typename id ... on ScratchpadEntry { content } } }';
    const found = { __typename: 'ScratchpadEntry', id: entry.id, content: 'a finding' };
    for (const token of [world.apiKey, world.token('cleo')])
      expect(await world.must(token, NODE, { id: entry.id })).toEqual({ node: found });
    const other = await createPadWorld(server);
    for (const token of [world.token('dora'), other.apiKey])
      expect(await world.must(token, NODE, { id: entry.id })).toEqual({ node: null });
    await world.clear(world.apiKey, 'Entries');
    expect(await world.must(world.apiKey, NODE, { id: entry.id })).toEqual({ node: null });
  });
});

describe('a member who is removed', () => {
  test('reads the entries of its windows and nothing that moved since; after its re-add everything but the gap', async () => {
    const world = await createPadWorld(server);
    const ben = world.token('ben');
    await world.setContent(world.token('ada'), 'before');
    await world.append(world.token('ada'), 'one');
    const before = await read(world, ben);
    await world.setState('ben', 'REMOVED');
    const frozen = { content: null, formattedView: null, expiresAt: null, viewerMayWrite: false };
    expect(await read(world, ben)).toMatchObject({ ...frozen, end: before.end });
    await world.append(world.token('ada'), 'in the gap');
    await world.setContent(world.token('ada'), 'newer');
    const away = await read(world, ben);
    expect(away).toMatchObject({ ...frozen, end: before.end });
    expect(seqs(away)).toEqual([1]);
    expect(away.entries.pageInfo).toMatchObject({ hasNextPage: false });
    const { entry, cursor } = await world.append(world.token('ada'), 'also in the gap');
    for (const beyond of [entry.cursor, cursor])
      expect(await world.refused(ben, READ, { id: world.scratchpadId, after: beyond })).toMatchObject({
        code: 'INVALID_CURSOR',
      });

    await world.setState('ben', 'ACTIVE');
    await world.append(world.token('ada'), 'four');
    const back = await read(world, ben);
    expect(seqs(back)).toEqual([1, 4]);
    expect(back.content?.text).toBe('newer');
    expect(back.formattedView).toContain('[1] one\n[2] four');
    // Inside the gap a position is accepted.
    expect(seqs(await read(world, ben, { after: entry.cursor }))).toEqual([4]);
    expect(seqs(await read(world, world.apiKey, { as: world.id('ben') }))).toEqual([1, 4]);
    expect(seqs(await read(world, world.apiKey))).toEqual([1, 2, 3, 4]);
  });

  test('may not write, and gets the first result of what it did before', async () => {
    const world = await createPadWorld(server);
    const ben = world.token('ben');
    const { scratchpadId } = world;
    const first = await world.append(ben, 'once', { idempotencyKey: 'k' });
    const body = await world.setContent(ben, 'body', { idempotencyKey: 'k' });
    await world.setState('ben', 'REMOVED');
    expect((await world.append(ben, 'once', { idempotencyKey: 'k' })).entry).toEqual(first.entry);
    expect((await world.setContent(ben, 'body', { idempotencyKey: 'k' })).content).toEqual(body.content);
    const inactive = { code: 'PARTICIPANT_NOT_ACTIVE' };
    for (const [query, input] of [
      [APPEND, { content: 'x' }],
      [APPEND, { content: 'once', idempotencyKey: 'other' }],
      [APPEND_ALL, { contents: ['x'] }],
      [SET_CONTENT, { text: 'x' }],
    ] as const)
      expect(await world.refused(ben, query, { input: { scratchpadId, ...input } })).toMatchObject(inactive);
    for (const what of ['', 'Content', 'Entries'])
      expect(
        await world.refused(
          ben,
          `mutation ($input: ClearScratchpadInput!) { clearScratchpad${what}(input: $input) { scratchpad { id } } }`,
          { input: { scratchpadId } },
        ),
      ).toMatchObject(inactive);
    const reused = { scratchpadId, content: 'twice', idempotencyKey: 'k' };
    expect(await world.refused(ben, APPEND, { input: reused })).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
  });
});

test('a retry with the same key acts once, also many at a time', async () => {
  const world = await createPadWorld(server);
  const all = await Promise.all(
    Array.from({ length: 20 }, () => world.append(world.token('ada'), 'once', { idempotencyKey: 'a key' })),
  );
  expect(new Set(all.map(({ entry }) => entry.id)).size).toBe(1);
  // Of another actor it is another key.
  const other = await world.append(world.token('ben'), 'once', { idempotencyKey: 'a key' });
  expect(other.entry.seq).toBe(2);
  const input = { scratchpadId: world.scratchpadId, content: 'else', idempotencyKey: 'a key' };
  expect(await world.refused(world.token('ada'), APPEND, { input })).toMatchObject({
    code: 'IDEMPOTENCY_KEY_REUSED',
  });
  // Conditions are no part of the input.
  const key = { idempotencyKey: 'body' };
  const one = await world.setContent(world.token('ada'), 'x', { ...key, expectedEtag: '' });
  const again = await world.setContent(world.token('ada'), 'x', { ...key, expectedEtag: one.content.etag });
  expect(again.content).toEqual(one.content);
  const odd = await world.setContent(world.token('ada'), 'x', { ...key, expectedEtag: '\u0000' });
  expect(odd.content).toEqual(one.content);
});

describe('what cannot be', () => {
  test.each<[string, string, object, object]>([
    ['an empty entry', APPEND, { content: '' }, { code: 'BAD_USER_INPUT', field: 'content' }],
    ['an entry with NUL', APPEND, { content: 'a\u0000' }, { code: 'BAD_USER_INPUT', field: 'content' }],
    [
      'too large an entry',
      APPEND,
      { content: 'é'.repeat(32 * 1024 + 1) },
      { code: 'PAYLOAD_TOO_LARGE', field: 'content', limit: 65_536 },
    ],
    ['an empty batch', APPEND_ALL, { contents: [] }, { code: 'BAD_USER_INPUT', field: 'contents' }],
    ['an empty entry in a batch', APPEND_ALL, { contents: ['a', ''] }, { code: 'BAD_USER_INPUT' }],
    [
      'too many in a batch',
      APPEND_ALL,
      { contents: Array.from({ length: 1_001 }, () => 'x') },
      { code: 'PAYLOAD_TOO_LARGE', field: 'contents', limit: 1_000 },
    ],
    [
      'too large a batch',
      APPEND_ALL,
      { contents: Array.from({ length: 65 }, () => 'x'.repeat(65_000)) },
      { code: 'PAYLOAD_TOO_LARGE', field: 'contents', limit: 4 * 1024 * 1024 },
    ],
    [
      'too large a body',
      SET_CONTENT,
      { text: 'x'.repeat(1024 * 1024 + 1) },
      { code: 'PAYLOAD_TOO_LARGE', field: 'text', limit: 1024 * 1024 },
    ],
    ['a key of nothing', APPEND, { content: 'x', idempotencyKey: '' }, { code: 'BAD_USER_INPUT' }],
    [
      'too many sources',
      APPEND,
      { content: 'x', sourceIds: Array.from({ length: 51 }, (_, i) => `event_${i}`) },
      { code: 'BAD_USER_INPUT', field: 'sourceIds' },
    ],
    [
      'a source that is none',
      APPEND,
      { content: 'x', sourceIds: ['event_0'] },
      { code: 'NOT_FOUND', field: 'sourceIds' },
    ],
  ])('%s is refused, and nothing is written', async (_, query, input, expected) => {
    const world = await createPadWorld(server);
    expect(
      await world.refused(world.token('ada'), query, {
        input: { scratchpadId: world.scratchpadId, ...input },
      }),
    ).toMatchObject(expected);
    expect(await read(world, world.apiKey)).toMatchObject({
      content: { version: 0 },
      entries: { nodes: [] },
    });
  });

  test('a pad that is not one’s own answers as one that never existed', async () => {
    const [world, other] = [await createPadWorld(server), await createPadWorld(server)];
    const { scratchpadId } = world;
    for (const token of [other.apiKey, other.token('ada'), world.token('dora')]) {
      expect(await world.must(token, READ, { id: scratchpadId })).toEqual({ scratchpad: null });
      for (const [query, input] of [
        [APPEND, { content: 'x' }],
        [APPEND_ALL, { contents: ['x'] }],
        [SET_CONTENT, { text: 'x' }],
      ] as const)
        expect(await world.refused(token, query, { input: { scratchpadId, ...input } })).toEqual({
          code: 'NOT_FOUND',
        });
    }
  });
});

test('an entry names what it derives from; who may not see a source is not shown it', async () => {
  const world = await createPadWorld(server);
  const { postMessage } = await world.must<{ postMessage: { message: { id: string } } }>(
    world.token('ada'),
    'mutation ($id: ID!) { postMessage(input: { threadId: $id, content: "hear" }) { message { id } } }',
    { id: world.threadId },
  );
  await world.setState('cleo', 'REMOVED');
  const hidden = await world.append(world.token('ada'), 'not for cleo');
  await world.setState('cleo', 'ACTIVE');
  const sourceIds = [postMessage.message.id, hidden.entry.id];
  const { entry } = await world.append(world.token('ada'), 'derived', { sourceIds });
  const body = await world.setContent(world.token('ada'), 'derived', { sourceIds });
  expect(body.content.version).toBe(1);
  const SOURCES =
    'query ($id: ID!) { scratchpad(id: $id) { content { sources { id } } entries(last: 1) { nodes { id sources { __typename id } } } } }';
  const sourcesFor = async (token: string) => {
    const { scratchpad } = await world.must<{
      scratchpad: {
        content: { sources: { id: string }[] };
        entries: { nodes: { id: string; sources: { id: string }[] }[] };
      };
    }>(token, SOURCES, { id: world.scratchpadId });
    expect(scratchpad.entries.nodes[0]?.id).toBe(entry.id);
    const of = (sources: readonly { id: string }[] = []) => sources.map(({ id }) => id);
    expect(of(scratchpad.content.sources)).toEqual(of(scratchpad.entries.nodes[0]?.sources));
    return of(scratchpad.content.sources);
  };
  expect(await sourcesFor(world.token('ben'))).toEqual(sourceIds);
  expect(await sourcesFor(world.token('cleo'))).toEqual([postMessage.message.id]);
  expect(
    await world.refused(world.token('cleo'), APPEND, {
      input: { scratchpadId: world.scratchpadId, content: 'x', sourceIds: [hidden.entry.id] },
    }),
  ).toMatchObject({ code: 'NOT_FOUND', field: 'sourceIds' });
});

test('a pad with a lifetime says when it expires, and each write puts it off', async () => {
  const world = await createPadWorld(server, { ttlSeconds: 3_600 });
  expect((await read(world, world.apiKey)).expiresAt).toBeNull();
  await world.append(world.apiKey, 'x');
  const { expiresAt } = await read(world, world.token('ada'));
  const left = Date.parse(expiresAt ?? '') - Date.now();
  expect(left).toBeGreaterThan(3_500_000);
  expect(left).toBeLessThanOrEqual(3_600_000);
});
