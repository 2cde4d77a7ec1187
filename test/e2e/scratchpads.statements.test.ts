import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Proxied, startBehindProxy } from '../support/behindProxy.ts';
import { createPadWorld, type PadWorld } from '../support/padApi.ts';
import { monitorRedis } from '../support/redisMonitor.ts';

let proxied: Proxied;
let world: PadWorld;
let redis: Redis;
/** Commands that reached Redis and name this world's owner; not those that a script runs. */
const commands: string[] = [];
/** Ends what is listened to: whatever was sent before it has been heard then. */
let fence = 0;
let heardFence: (() => void) | undefined;

beforeAll(async () => {
  proxied = await startBehindProxy();
  world = await createPadWorld(proxied.server);
  const path = inject('redisUrl').replace('unix://', '');
  redis = new Redis(path);
  disconnect = await monitorRedis(path, (args, source) => {
    if (source === 'lua') return;
    if (args[1] === `fence:${fence}`) heardFence?.();
    if (args.some((arg) => arg.includes(world.tenant.userId))) commands.push(args[0]?.toLowerCase() ?? '');
  });
});
let disconnect = (): void => {};
afterAll(async () => {
  disconnect();
  redis.disconnect();
  await proxied[Symbol.asyncDispose]();
});

/** Resolves once all is heard that was sent before: what is heard comes by another connection than what is answered. */
const allHeard = (): Promise<void> =>
  new Promise((resolve, reject) => {
    fence += 1;
    heardFence = resolve;
    redis.get(`fence:${fence}`).catch(reject);
  });

/** The statements and the commands of one operation. */
const during = async (action: () => Promise<unknown>) => {
  await allHeard();
  const before = commands.length;
  const statements = await proxied.during(action);
  await allHeard();
  return { statements, commands: commands.slice(before) };
};

const APPEND = `mutation ($input: AppendScratchpadEntryInput!) {
  appendScratchpadEntry(input: $input) { entry { id seq threadSeq content createdAt } cursor } }`;
const append = (token: string, content: string, input = {}) =>
  world.must<{ appendScratchpadEntry: { entry: { id: string } } }>(token, APPEND, {
    input: { scratchpadId: world.scratchpadId, content, ...input },
  });

describe('a write', () => {
  test.each(['apiKey', 'ada'] as const)(
    'of %s is one statement and one script once its credential is known',
    async (who) => {
      const token = who === 'apiKey' ? world.apiKey : world.token(who);
      await append(token, 'known');
      await world.setContent(token, 'known');
      for (const idempotencyKey of [undefined, 'a key', 'a key']) {
        const input = { idempotencyKey };
        for (const write of [() => append(token, 'a finding', input), () => append(token, 'x'.repeat(4_096))])
          expect(await during(write)).toEqual({ statements: ['scratchpad_grant'], commands: ['evalsha'] });
      }
      const CONTENT = `mutation ($input: SetScratchpadContentInput!) { setScratchpadContent(input: $input) { cursor } }`;
      expect(
        await during(() =>
          world.must(token, CONTENT, { input: { scratchpadId: world.scratchpadId, text: 'a plan' } }),
        ),
      ).toEqual({ statements: ['scratchpad_grant'], commands: ['evalsha'] });
    },
  );

  test('appends that come together share their statement', async () => {
    const token = world.token('ada');
    await append(token, 'known');
    const counts: number[] = [];
    // Whether requests come together is up to the machine: a busy one may take each in a turn of its own.
    while (counts.length < 20 && (counts.at(-1) ?? 40) === 40) {
      const { statements, commands: sent } = await during(() =>
        Promise.all(Array.from({ length: 40 }, (_, index) => append(token, `${index}`))),
      );
      expect(new Set(statements)).toEqual(new Set(['scratchpad_grant']));
      expect(sent).toHaveLength(40);
      counts.push(statements.length);
    }
    expect(counts.at(-1)).toBeLessThan(40);
  });
});

const PAGE = `query ($id: ID!, $first: Int, $after: Cursor, $last: Int, $before: Cursor) {
  scratchpad(id: $id) {
    end expiresAt viewerMayWrite formattedView
    content { text etag }
    entries(first: $first, after: $after, last: $last, before: $before) {
      nodes { id seq content author { handle } }
      pageInfo { hasNextPage hasPreviousPage }
    }
  }
}`;

describe('a page with body, end and view', () => {
  test('is one script also where the user asks for all of it as a member', async () => {
    const AS_MEMBER = `query ($id: ID!, $as: ID!) { scratchpad(id: $id) {
      end(as: $as) content(as: $as) { text } entries(as: $as, last: 5) { nodes { content } } } }`;
    const variables = { id: world.scratchpadId, as: world.id('ada') };
    const read = () => world.must(world.apiKey, AS_MEMBER, variables);
    await read();
    const { statements, commands: sent } = await during(read);
    expect(sent).toEqual(['evalsha']);
    expect(statements.length, statements.join('\n')).toBeLessThanOrEqual(3);
  });

  test('is one script and as many statements wherever it begins, for the user and for members', async () => {
    const contents = Array.from({ length: 200 }, (_, index) => `finding ${index}`);
    const { appendScratchpadEntries } = await world.must<{
      appendScratchpadEntries: { entries: { cursor: string }[] };
    }>(
      world.token('ben'),
      'mutation ($input: AppendScratchpadEntriesInput!) { appendScratchpadEntries(input: $input) { entries { cursor } } }',
      { input: { scratchpadId: world.scratchpadId, contents } },
    );
    const middle = appendScratchpadEntries.entries[100]?.cursor;
    const ranges = [{ first: 50 }, { last: 50 }, { first: 50, after: middle }, { last: 50, before: middle }];
    for (const token of [world.apiKey, world.token('ada')])
      for (const range of ranges) {
        const read = () => world.must(token, PAGE, { id: world.scratchpadId, ...range });
        await read();
        const { statements, commands: sent } = await during(read);
        expect(sent).toEqual(['evalsha']);
        expect(statements.length, statements.join('\n')).toBeLessThanOrEqual(3);
      }
  });
});

test('a list of pads with their bodies and entries is one pipeline and a few statements', async () => {
  for (let count = 1; count <= 20; count += 1) {
    const { createParticipant } = await world.must<{ createParticipant: { participant: { id: string } } }>(
      world.apiKey,
      'mutation ($handle: String!) { createParticipant(input: { handle: $handle, kind: AGENT }) { participant { id } } }',
      { handle: `agent-${count}` },
    );
    const { openThread } = await world.must<{ openThread: { thread: { id: string } } }>(
      world.apiKey,
      'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
      { ids: [world.id('ada'), createParticipant.participant.id] },
    );
    const { createScratchpad } = await world.must<{ createScratchpad: { scratchpad: { id: string } } }>(
      world.apiKey,
      'mutation ($id: ID!) { createScratchpad(input: { threadId: $id }) { scratchpad { id } } }',
      { id: openThread.thread.id },
    );
    await world.append(world.apiKey, `of ${count}`, { scratchpadId: createScratchpad.scratchpad.id });
  }
  const LIST =
    '{ scratchpads(first: 50) { nodes { id end content { text } entries(last: 3) { nodes { content author { handle } } } } } }';
  for (const token of [world.apiKey, world.token('ada')]) {
    const read = () => world.must<{ scratchpads: { nodes: object[] } }>(token, LIST);
    expect((await read()).scratchpads.nodes).toHaveLength(21);
    const { statements, commands: sent } = await during(read);
    expect(sent).toEqual(Array.from({ length: 21 }, () => 'evalsha'));
    expect(statements.length, statements.join('\n')).toBeLessThanOrEqual(4);
  }
});

describe('messages that derive from entries', () => {
  const POST = 'mutation ($input: PostMessageInput!) { postMessage(input: $input) { message { id } } }';
  const post = (sourceIds: readonly string[]) =>
    world.must(world.token('ada'), POST, {
      input: { threadId: world.threadId, content: 'derived', sourceIds },
    });

  /** What is published after a commit is not waited for. */
  const asked = (sent: readonly string[]) => sent.filter((command) => command !== 'publish');

  test('are posted with one look at the entries, and the rest as without', async () => {
    const entries = [await append(world.token('ada'), 'one'), await append(world.token('ada'), 'two')];
    const ids = entries.map(({ appendScratchpadEntry }) => appendScratchpadEntry.entry.id);
    await post(ids);
    const without = await during(() => post([]));
    expect([without.statements, asked(without.commands)]).toEqual([['append_message'], []]);
    const { statements, commands: sent } = await during(() => post(ids));
    expect(asked(sent)).toEqual(['evalsha']);
    expect(statements.at(-1)).toBe('append_message');
    expect(statements.length, statements.join('\n')).toBeLessThanOrEqual(3);
  });

  test('are read with one script for all of a page', async () => {
    for (let count = 1; count <= 10; count += 1) {
      const { appendScratchpadEntry } = await append(world.token('ada'), `source ${count}`);
      await post([appendScratchpadEntry.entry.id]);
    }
    const READ = `query ($id: ID!) { thread(id: $id) { timeline { events(last: 10) {
      nodes { ... on Message { sources { ... on ScratchpadEntry { content } } } } } } } }`;
    for (const token of [world.apiKey, world.token('ben')]) {
      const read = () =>
        world.must<{ thread: { timeline: { events: { nodes: object[] } } } }>(token, READ, {
          id: world.threadId,
        });
      const { thread } = await read();
      expect(thread.timeline.events.nodes).toEqual(
        Array.from({ length: 10 }, (_, index) => ({ sources: [{ content: `source ${index + 1}` }] })),
      );
      const { statements, commands: sent } = await during(read);
      expect(asked(sent)).toEqual(['evalsha']);
      expect(statements.length, statements.join('\n')).toBeLessThanOrEqual(3);
    }
  });
});

describe('a run on it', () => {
  const DELEGATE =
    'mutation ($input: DelegateRunInput!) { delegateRun(input: $input) { token run { id status conversationThreadId } } }';
  const CLAIM = 'mutation ($id: ID!) { claimRun(input: { runId: $id }) { token run { id status } } }';
  const UPDATE =
    'mutation ($id: ID!, $status: RunStatus!) { updateRun(input: { runId: $id, status: $status }) { run { id status } } }';
  const EXECUTE = 'mutation ($input: ExecuteToolInput!) { executeTool(input: $input) { output isError } }';
  interface Delegated {
    readonly token: string;
    readonly run: { readonly id: string };
  }
  const delegate = async (): Promise<Delegated> => {
    const input = { participantId: world.id('ben'), scratchpadId: world.scratchpadId };
    return (await world.must<{ delegateRun: Delegated }>(world.token('ada'), DELEGATE, { input }))
      .delegateRun;
  };
  const claim = async ({ run: { id } }: Delegated): Promise<Delegated> =>
    (await world.must<{ claimRun: Delegated }>(world.token('ben'), CLAIM, { id })).claimRun;

  test('is delegated, claimed and moved on with one statement that writes', async () => {
    let delegated = await delegate();
    await claim(delegated);
    const statements = await proxied.during(async () => {
      delegated = await delegate();
    });
    expect(statements, statements.join('\n')).toHaveLength(2);
    expect(statements.at(-1)).toBe('delegate_run');
    expect(await proxied.during(() => claim(delegated))).toEqual(['claim_run']);
    for (const status of ['INPUT_REQUIRED', 'IN_PROGRESS', 'COMPLETED']) {
      const update = () => world.must(world.token('ben'), UPDATE, { id: delegated.run.id, status });
      expect(await proxied.during(update)).toEqual(['update_run']);
    }
  });

  test.each([
    ['its worker', 'ben'],
    ['its delegator', 'ada'],
  ] as const)('is listed for %s in as few statements as many are', async (_, who) => {
    const PAGE = `query ($first: Int) { runs(first: $first) { nodes { id status participant { handle } delegator { handle }
      parentRun { id } scratchpad { id } conversationThread { id } } pageInfo { hasNextPage } } }`;
    for (let run = 0; run < 4; run += 1) await delegate();
    const page = (first: number) => proxied.during(() => world.must(world.token(who), PAGE, { first }));
    await page(4);
    const [one, many] = [await page(1), await page(4)];
    expect(many, many.join('\n')).toEqual(one);
    expect(one.length, one.join('\n')).toBeLessThanOrEqual(5);
  });

  test.each<[string, object, string[], string[]]>([
    [
      'append_scratchpad',
      { note: 'Seen.' },
      ['scratchpads_by_id', 'scratchpad_grant'],
      ['scratchpads_of_threads', 'scratchpad_grant'],
    ],
    ['store', { memory: { text: 'Hello' } }, ['store_memory'], ['store_memory']],
  ])(
    'is counted and told with one statement each around what %s does',
    async (name, given, own, ofThread) => {
      const { token } = await claim(await delegate());
      const call = (credential: string, more: object) => () =>
        world.must(credential, EXECUTE, { input: { name, arguments: given, ...more } });
      const inside = call(token, {});
      await inside();
      // What is the worker's alone is shown only where it is alone.
      const looked = name === 'store' ? ['private_conversation'] : [];
      expect(await proxied.during(inside)).toEqual([
        'begin_tool_call',
        ...own,
        ...looked,
        'finish_tool_call',
      ]);
      const outside = call(world.token('ben'), { threadId: world.threadId });
      await outside();
      expect(await proxied.during(outside)).toEqual(['begin_tool_call', ...ofThread]);
      const named = call(world.token('ben'), { threadId: world.threadId, toolCallId: `${name} once` });
      // What comes from a scratchpad is not told in its thread: whether another attempt was first is asked then.
      const again = name === 'append_scratchpad' ? ['begin_tool_call'] : [];
      expect(await proxied.during(named)).toEqual([
        'begin_tool_call',
        ...ofThread,
        'finish_tool_call',
        ...again,
      ]);
      expect(await proxied.during(named)).toEqual(['begin_tool_call']);
    },
  );
});
