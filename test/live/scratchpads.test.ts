import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Server, startApp } from '../support/app.ts';
import { createPadWorld, FOLLOW, type PadPayload, type PadWorld, told } from '../support/padApi.ts';
import { type Heard, subscribe } from '../support/subscribe.ts';
import { until } from '../support/until.ts';

let server: Server;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

/** One follower of a world's pad, which says what it was told. */
const follow = (world: PadWorld, token: string, variables: Record<string, unknown> = {}) => {
  const which = 'threadId' in variables ? {} : { scratchpadId: world.scratchpadId };
  return subscribe<PadPayload>(server, token, FOLLOW, { ...which, ...variables });
};
const words = ({ payloads }: Heard<PadPayload>): string[] => payloads.map(told);
/** Resolves once it was told so many things, and answers them. */
const toldSoFar = async (heard: Heard<PadPayload>, count: number): Promise<string[]> => {
  await heard.until((payloads) => payloads.length >= count);
  return words(heard);
};

test('the first payload comes at once and says where it starts; then each change, in order, with who did it', async () => {
  const world = await createPadWorld(server);
  const { token } = world;
  await world.append(token('ada'), 'before');
  await using heard = follow(world, token('ben'));
  expect(await toldSoFar(heard, 1)).toEqual(['start']);
  expect(heard.payloads[0]).toEqual({
    scratchpad: {
      cursor: expect.any(String),
      scratchpadId: world.scratchpadId,
      change: null,
      ended: null,
    },
  });
  await world.setContent(token('ada'), 'a plan');
  await heard.until((payloads) => payloads.length >= 2);
  await world.append(token('cleo'), 'one');
  await world.append(world.apiKey, 'two');
  await world.clear(token('ada'), 'Entries');
  await heard.until((payloads) => payloads.length >= 5);
  await world.clear(world.apiKey, 'Content');
  expect(await toldSoFar(heard, 6)).toEqual(['start', '=a plan', '+one', '+two', '-entries', '-body']);
  expect(heard.payloads.map(({ scratchpad: { change } }) => change).slice(1)).toMatchObject([
    { content: { version: 1, updatedBy: { handle: 'ada' } } },
    { entry: { seq: 2, author: { handle: 'cleo' } } },
    { entry: { seq: 3, author: null } },
    { actor: { handle: 'ada' } },
    { actor: null },
  ]);
});

test('readers of one change who ask the same are each told what they may see of it', async () => {
  const world = await createPadWorld(server);
  const POST = 'mutation ($input: PostMessageInput!) { postMessage(input: $input) { message { id } } }';
  await world.setState('ben', 'REMOVED');
  const { postMessage } = await world.must<{ postMessage: { message: { id: string } } }>(
    world.token('ada'),
    POST,
    {
      input: { threadId: world.threadId, content: 'in the gap' },
    },
  );
  await world.setState('ben', 'ACTIVE');
  const sourceIds = [postMessage.message.id];
  interface Told {
    readonly scratchpad: {
      readonly change: { readonly entry: { readonly sources: readonly object[] } } | null;
    };
  }
  const SOURCES = `subscription ($id: ID!) { scratchpad(scratchpadId: $id) { change {
    ... on EntryAppended { entry { content author { handle } sources { id } } } } } }`;
  const followers = [
    world.token('ada'),
    world.token('ben'),
    world.apiKey,
    world.token('cleo'),
    world.token('ben'),
  ].map((token) => subscribe<Told>(server, token, SOURCES, { id: world.scratchpadId }));
  for (const heard of followers) await heard.until((payloads) => payloads.length >= 1);
  for (const content of ['one', 'two']) await world.append(world.token('ada'), content, { sourceIds });
  for (const [index, heard] of followers.entries()) {
    await heard.until((payloads) => payloads.length >= 3);
    const sources = index === 1 || index === 4 ? [] : sourceIds.map((id) => ({ id }));
    expect(heard.payloads.slice(1)).toEqual(
      ['one', 'two'].map((content) => ({
        scratchpad: { change: { entry: { content, author: { handle: 'ada' }, sources } } },
      })),
    );
    await heard[Symbol.asyncDispose]();
  }
});

test('a reader goes on from every cursor that it or anybody else was given', async () => {
  const world = await createPadWorld(server);
  const ada = world.token('ada');
  const mutations: string[] = [];
  await using whole = follow(world, ada);
  await whole.until((payloads) => payloads.length >= 1);
  // One after the other: of bodies set faster than they are read, the newest alone is promised.
  const make = async (change: Promise<{ cursor: string }>): Promise<void> => {
    mutations.push((await change).cursor);
    await whole.until((payloads) => payloads.length > mutations.length);
  };
  for (let round = 1; round <= 4; round += 1) {
    await make(world.append(ada, `${round} a`));
    await make(world.setContent(ada, `${round}`));
    await make(world.append(ada, `${round} b`));
  }
  const cursors = whole.payloads.map(({ scratchpad }) => scratchpad.cursor);
  expect(new Set(cursors).size).toBe(cursors.length);
  expect(cursors.slice(1)).toEqual(mutations);
  const all = words(whole);
  for (const [index, after] of cursors.entries()) {
    await using resumed = follow(world, world.token('cleo'), { after });
    const rest = all.slice(index + 1);
    await resumed.until((payloads) => payloads.map(told).at(-1) === (rest.at(-1) ?? 'start'));
    // Of the body the newest is promised, not those between.
    const promised = (told: readonly string[]) => told.filter((word) => !/^=[123]$/.test(word));
    expect(promised(words(resumed)), `after ${all[index]}`).toEqual(['start', ...promised(rest)]);
    expect(resumed.payloads[0]?.scratchpad.cursor).toBe(after);
  }
});

test('what was cleared before it was read is told as cleared', async () => {
  const world = await createPadWorld(server);
  const ada = world.token('ada');
  const { cursor: after } = await world.append(ada, 'one');
  await world.append(ada, 'never read');
  await world.setContent(ada, 'never read');
  await world.clear(ada);
  await world.append(ada, 'three');
  await using heard = follow(world, ada, { after });
  expect((await toldSoFar(heard, 4)).toSorted()).toEqual(['+three', '-body', '-entries', 'start']);
  expect(words(heard).at(-1)).toBe('+three');
});

describe('a snapshot and what follows its end', () => {
  test('have neither hole nor overlap under writes, for a member and for the user', async () => {
    const world = await createPadWorld(server);
    const SNAPSHOT =
      'query ($id: ID!) { scratchpad(id: $id) { end entries(last: 200) { nodes { content } } } }';
    let isOver = false;
    const writing = (async () => {
      for (let count = 1; !isOver; count += 1) await world.append(world.token('ada'), `${count}`);
    })();
    for (let round = 1; round <= 15; round += 1)
      for (const token of [world.apiKey, world.token('ben')]) {
        const { scratchpad } = await world.must<{
          scratchpad: { end: string; entries: { nodes: { content: string }[] } };
        }>(token, SNAPSHOT, { id: world.scratchpadId });
        await using heard = follow(world, token, { after: scratchpad.end });
        const [, next] = await toldSoFar(heard, 2);
        expect(next).toBe(`+${Number(scratchpad.entries.nodes.at(-1)?.content ?? 0) + 1}`);
      }
    isOver = true;
    await writing;
  });
});

describe('a thread without a scratchpad', () => {
  test('is followed until it has one, and from the start of that', async () => {
    const metrics = new URL('/metrics', server.url);
    const world = await createPadWorld(server, { hasPad: false });
    await using heard = follow(world, world.token('ada'), { threadId: world.threadId });
    await heard.until((payloads) => payloads.length >= 1);
    expect(heard.payloads[0]?.scratchpad).toMatchObject({ scratchpadId: null, change: null });
    const { createScratchpad } = await world.must<{ createScratchpad: { scratchpad: { id: string } } }>(
      world.token('ben'),
      'mutation ($id: ID!) { createScratchpad(input: { threadId: $id }) { scratchpad { id } } }',
      { id: world.threadId },
    );
    const scratchpadId = createScratchpad.scratchpad.id;
    await world.append(world.token('ben'), 'one', { scratchpadId });
    expect(await toldSoFar(heard, 3)).toEqual(['start', 'created', '+one']);
    // Nothing is followed any more but the thread and the pad.
    await until(async () => /^threadpad_tails 2$/m.test(await (await fetch(metrics)).text()));
    expect(heard.payloads[1]?.scratchpad).toMatchObject({
      scratchpadId,
      change: { scratchpad: { id: scratchpadId } },
    });
    for (const { scratchpad } of heard.payloads.slice(0, 2)) {
      await using resumed = follow(world, world.token('cleo'), {
        threadId: world.threadId,
        after: scratchpad.cursor,
      });
      const rest = scratchpad.change === null ? ['created', '+one'] : ['+one'];
      expect(await toldSoFar(resumed, rest.length + 1)).toEqual(['start', ...rest]);
    }
  });

  test('ends its readers when it is deleted', async () => {
    const world = await createPadWorld(server, { hasPad: false });
    await using heard = follow(world, world.token('ada'), { threadId: world.threadId });
    await heard.until((payloads) => payloads.length >= 1);
    await world.must(
      world.apiKey,
      'mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedId } }',
      {
        id: world.threadId,
      },
    );
    expect(await toldSoFar(heard, 2)).toEqual(['start', 'ended THREAD_DELETED']);
  });
});

describe('a member who is removed', () => {
  test('is told nothing until its re-add, then what was cleared and the newest body, and no entry of the gap', async () => {
    const world = await createPadWorld(server);
    const { token } = world;
    await using ben = follow(world, token('ben'));
    await using ada = follow(world, token('ada'));
    await toldSoFar(ben, 1);
    await toldSoFar(ada, 1);
    await world.append(token('ada'), 'one');
    await world.setContent(token('ada'), 'first');
    await toldSoFar(ben, 3);
    await world.setState('ben', 'REMOVED');
    await world.append(token('ada'), 'gap');
    await world.clear(token('ada'), 'Entries');
    await world.setContent(token('ada'), 'second');
    await world.append(token('ada'), 'gap 2');
    await world.setContent(token('ada'), 'third');
    await ada.until((payloads) => payloads.map(told).includes('=third'));
    expect(words(ben)).toEqual(['start', '+one', '=first']);
    const { cursor: away } = ben.payloads.at(-1)?.scratchpad ?? { cursor: '' };
    await using resumedAway = follow(world, token('ben'), { after: away });
    await toldSoFar(resumedAway, 1);

    await world.setState('ben', 'ACTIVE');
    await world.append(token('ada'), 'two');
    expect(await toldSoFar(ben, 6)).toEqual(['start', '+one', '=first', '-entries', '=third', '+two']);
    expect(await toldSoFar(resumedAway, 4)).toEqual(['start', '-entries', '=third', '+two']);
    // Whoever resumes afterwards, from whichever of its cursors, gets the same.
    await ben[Symbol.asyncDispose]();
    await ada[Symbol.asyncDispose]();
    await resumedAway[Symbol.asyncDispose]();
    for (const index of [0, 1, 2, 3, 4, 5]) {
      await using resumed = follow(world, token('ben'), {
        after: ben.payloads[index]?.scratchpad.cursor ?? '',
      });
      // By then the entry is gone, and the body was written anew.
      const rest = words(ben)
        .slice(index + 1)
        .filter((word) => word !== '+one' && word !== '=first');
      expect(await toldSoFar(resumed, rest.length + 1), `after ${words(ben)[index]}`).toEqual([
        'start',
        ...rest,
      ]);
    }
  });

  test('who begins to follow while removed starts at its own end, and cannot start beyond it', async () => {
    const world = await createPadWorld(server);
    const { token } = world;
    await world.append(token('ada'), 'one');
    await world.setState('ben', 'REMOVED');
    const { cursor } = await world.append(token('ada'), 'gap');
    await using beyond = follow(world, token('ben'), { after: cursor });
    await expect(beyond.until(() => false)).rejects.toThrow(/INVALID_CURSOR/);
    await using heard = follow(world, token('ben'));
    await toldSoFar(heard, 1);
    await world.setContent(token('ada'), 'now');
    await world.setState('ben', 'ACTIVE');
    await world.append(token('ada'), 'two');
    expect(await toldSoFar(heard, 3)).toEqual(['start', '=now', '+two']);
  });
});

describe('a pad that is deleted', () => {
  test.each(['deleteScratchpad', 'deleteThread'] as const)(
    'by %s ends everybody’s stream, also of the removed',
    async (field) => {
      const world = await createPadWorld(server);
      const { token } = world;
      await world.append(token('ada'), 'one');
      await world.setState('ben', 'REMOVED');
      const readers = [world.apiKey, token('ada'), token('ben')].map((one) => follow(world, one));
      for (const heard of readers) await toldSoFar(heard, 1);
      const input =
        field === 'deleteThread' ? { threadId: world.threadId } : { scratchpadId: world.scratchpadId };
      const type = `${field[0]?.toUpperCase()}${field.slice(1)}Input`;
      await world.must(
        world.apiKey,
        `mutation ($input: ${type}!) { ${field}(input: $input) { deletedId } }`,
        { input },
      );
      const ended = field === 'deleteThread' ? 'THREAD_DELETED' : 'SCRATCHPAD_DELETED';
      for (const heard of readers) {
        expect(await toldSoFar(heard, 2)).toEqual(['start', `ended ${ended}`]);
        expect(heard.payloads[1]?.scratchpad.scratchpadId).toBe(world.scratchpadId);
        if (ended === 'SCRATCHPAD_DELETED')
          expect(heard.payloads[1]?.scratchpad.change).toEqual({
            __typename: 'ScratchpadDeleted',
            scratchpadId: world.scratchpadId,
          });
        await heard[Symbol.asyncDispose]();
      }
    },
  );
});

test('a pad that expires is told within 2 s as reset, and what comes then is new', async () => {
  const world = await createPadWorld(server, { ttlSeconds: 1 });
  const { token } = world;
  await using heard = follow(world, token('ada'));
  await toldSoFar(heard, 1);
  await world.append(token('ada'), 'one');
  await toldSoFar(heard, 2);
  const writtenAt = performance.now();
  await toldSoFar(heard, 3);
  expect(performance.now() - writtenAt).toBeLessThan(3_500);
  await world.append(token('ada'), 'two');
  expect((await toldSoFar(heard, 4)).slice(0, 4)).toEqual(['start', '+one', 'reset', '+two']);
});

test('which pad is said by its own id or by its thread’s, one of them', async () => {
  const world = await createPadWorld(server);
  const cases: [string, Record<string, unknown>, RegExp][] = [
    [world.token('ada'), { threadId: world.threadId, scratchpadId: world.scratchpadId }, /BAD_USER_INPUT/],
    [world.token('ada'), { threadId: null }, /BAD_USER_INPUT/],
    [world.token('dora'), {}, /NOT_FOUND/],
    [world.token('dora'), { threadId: world.threadId }, /NOT_FOUND/],
    [world.token('ada'), { scratchpadId: 'sp_none' }, /NOT_FOUND/],
    [world.token('ada'), { after: 'nonsense' }, /INVALID_CURSOR/],
    [world.token('ada'), { after: (await world.append(world.apiKey, 'x')).entry.cursor }, /INVALID_CURSOR/],
    [world.token('ada'), { as: world.id('ben') }, /FORBIDDEN/],
  ];
  for (const [token, variables, says] of cases) {
    await using heard = follow(world, token, variables);
    await expect(
      heard.until(() => false),
      JSON.stringify(variables),
    ).rejects.toThrow(says);
  }
});

test('who begins after a clear is told nothing of what it took away, whoever else listens', async () => {
  const world = await createPadWorld(server);
  const ada = world.token('ada');
  await using listening = follow(world, ada);
  await listening.until((payloads) => payloads.length >= 1);
  const start = listening.payloads[0]?.scratchpad.cursor;
  await world.append(ada, 'secret finding');
  await world.setContent(ada, 'secret plan');
  await world.clear(ada, '');
  await listening.until((payloads) => payloads.map(told).includes('-entries'));
  await world.append(ada, 'open finding');

  await using late = follow(world, world.token('ben'), { after: start });
  await late.until((payloads) => payloads.map(told).at(-1) === '+open finding');
  expect(words(late).filter((word) => /secret/.test(word))).toEqual([]);
  expect(words(late)).toContain('-entries');
});

test('a position without an epoch is the start and nothing else: the head cannot be probed by it', async () => {
  const world = await createPadWorld(server);
  const ben = world.token('ben');
  await world.append(ben, 'before');
  await world.setState('ben', 'REMOVED');
  await world.append(world.apiKey, 'while away');
  const suffix = world.scratchpadId.replace(/^sp_/, '');
  for (const place of ['1 0', '2 0', '3 0', '0 1', '9 9']) {
    const after = Buffer.from(`p1 ${suffix}  ${place} `).toString('base64url');
    const heard = follow(world, ben, { after });
    await expect(
      heard.until(() => false),
      place,
    ).rejects.toThrow(/INVALID_CURSOR/);
  }
});
