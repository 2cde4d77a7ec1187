import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { padKeys } from '../../src/scratchpads/keys.ts';
import { newId } from '../../src/shared/ids.ts';
import { plainMcp } from '../support/mcp.ts';
import { restAt } from '../support/rest.ts';
import { subscribe } from '../support/subscribe.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';

interface Executed {
  readonly output: string;
  readonly isError: boolean;
  readonly conversationThreadId: string;
  readonly toolCallId: string | null;
}

let scene: Scene;
beforeAll(async () => {
  scene = await toolScene();
});
afterAll(() => scene.server.close());

const EXECUTE = `mutation ($input: ExecuteToolInput!) { executeTool(input: $input) {
  output isError conversationThreadId toolCallId } }`;

const graphql = async (token: string, input: object): Promise<Executed> =>
  (await scene.ask<{ executeTool: Executed }>(EXECUTE, { input }, token)).executeTool;

const codeOf = async (token: string, input: object): Promise<unknown> => {
  const { errors } = await scene.server.graphql(token, EXECUTE, { input });
  return errors?.[0]?.extensions?.code;
};

/** A run of scout’s on ada’s and bo’s scratchpad, in a conversation of its own. */
const newPlace = async (more: Partial<Parameters<Scene['newRun']>[1]> = {}) => {
  const padThread = await scene.open('ada', 'bo', ...(count++ % 2 === 0 ? ['rex'] : []));
  const conversation = await scene.open('bo', 'scout');
  const padId = await padIn(padThread);
  const run = await scene.newRun('scout', {
    conversation,
    padId,
    padViewer: 'ada',
    delegator: 'ada',
    ...more,
  });
  return { padThread, conversation, padId, ...run, results: () => resultsIn(conversation) };
};
let count = 0;
const pads = new Map<string, string>();
const padIn = async (thread: string): Promise<string> => {
  const known = pads.get(thread) ?? (await scene.padOf(thread));
  pads.set(thread, known);
  return known;
};

interface Result {
  readonly name: string;
  readonly toolCallId: string | null;
  readonly isError: boolean;
  readonly output: string;
  readonly runId: string;
}
const resultsIn = async (thread: string): Promise<Result[]> =>
  (await scene.eventsOf(thread)).flatMap(({ kind, data }) =>
    kind === 'TOOL_RESULT' ? [data as Result] : [],
  );

const endRun = async (id: string): Promise<void> => {
  await scene.server.services.database.prisma.run.update({
    where: { id },
    data: { status: 'CANCELLED', finishedAt: new Date() },
  });
};

const NOT_SHOWN = '(not shown: it is the worker’s alone)';

describe('in a run', () => {
  test('acts on the run’s scratchpad, and lets the result stand in the conversation', async () => {
    const place = await newPlace();
    const before = await scene.eventsOf(place.padThread);
    for (const [index, [name, given]] of (
      [
        ['update_scratchpad', { content: 'the plan' }],
        ['append_scratchpad', { note: 'a finding' }],
        ['read_scratchpad', {}],
        ['append_scratchpad', { note: '' }],
      ] as const
    ).entries())
      expect(
        await graphql(place.token, { name, arguments: given, toolCallId: `call-${index}` }),
      ).toMatchObject({
        isError: index === 3,
        conversationThreadId: place.conversation,
        toolCallId: `call-${index}`,
      });
    const results = (await place.results()).filter(({ runId }) => runId === place.id);
    expect(results.map(({ name, toolCallId, isError }) => [name, toolCallId, isError])).toEqual([
      ['update_scratchpad', 'call-0', false],
      ['append_scratchpad', 'call-1', false],
      ['read_scratchpad', 'call-2', false],
      ['append_scratchpad', 'call-3', true],
    ]);
    expect(results[1]?.output).toBe('Note appended successfully.');
    // The other member of the conversation may not see the scratchpad.
    expect(results[2]?.output).toBe(NOT_SHOWN);
    expect(results[3]?.output).toMatch(/^Error: note is empty/);
    expect(await scene.eventsOf(place.padThread)).toEqual(before);
    await endRun(place.id);
  });

  test('does the same through every door', async () => {
    const place = await newPlace();
    const rest = restAt(new URL(scene.server.url).origin);
    const mcp = plainMcp(scene.server, place.token);
    await mcp.open();
    const doors: Record<
      string,
      (name: string, given: object) => Promise<{ text: string; isError: boolean }>
    > = {
      graphql: async (name, given) => {
        const { output, isError } = await graphql(place.token, { name, arguments: given });
        return { text: output, isError };
      },
      rest: async (name, given) => {
        const headers = { 'x-api-key': place.token };
        const { body } = await rest(headers, 'POST', '/v1/tools/execute', {
          body: { name, arguments: given },
        });
        const { output, is_error: isError } = body as { output: string; is_error: boolean };
        return { text: output, isError };
      },
      text: async (name, given) => {
        const { output, isError } = await graphql(place.token, { name, arguments: JSON.stringify(given) });
        return { text: output, isError };
      },
      mcp: (name, given) => mcp.call(name, { ...given }),
    };
    const calls: [string, object][] = [
      ['append_scratchpad', { note: 'seen' }],
      ['update_scratchpad', { content: '' }],
      ['append_scratchpad', { note: 'x', thread_id: place.padThread }],
      ['read_scratchpad', { scratchpad_id: place.padId }],
      ['read_scratchpad', { owner_id: scene.tenant.userId, user: 'x' }],
      ['append_scratchpad', {}],
      ['append_scratchpad', { note: 7 }],
      ['recall', { query: '' }],
      ['peek_pending', {}],
      ['message_retract', { message_id: 'event_nothing' }],
    ];
    for (const [name, given] of calls) {
      const answers = await Promise.all(Object.values(doors).map((door) => door(name, given)));
      expect(
        new Set(answers.map((answer) => JSON.stringify(answer))).size,
        `${name} ${JSON.stringify(answers)}`,
      ).toBe(1);
    }
    expect((await doors.mcp?.('read_scratchpad', {}))?.text.match(/seen/g)).toHaveLength(4);
    expect(
      (await place.results()).filter(({ runId }) => runId === place.id).map(({ toolCallId }) => toolCallId),
    ).toContain(String(calls.length + 1));
    await endRun(place.id);
  });

  test('a repeated call acts once, counts once and answers the same, also when it is made twice at once', async () => {
    const place = await newPlace();
    const call = { name: 'append_scratchpad', arguments: { note: 'once' }, toolCallId: 'again' };
    const answers = await Promise.all([1, 2, 3, 4].map(() => graphql(place.token, call)));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    const read = { name: 'read_scratchpad', arguments: {}, toolCallId: 'read' };
    const first = await graphql(place.token, read);
    await graphql(place.token, { ...call, toolCallId: 'another' });
    expect(await graphql(place.token, read)).toEqual(first);
    expect(await codeOf(place.token, { ...read, name: 'peek_pending' })).toBe('IDEMPOTENCY_KEY_REUSED');
    expect(first.output.match(/once/g)).toHaveLength(1);
    const run = await scene.server.services.database.prisma.run.findUniqueOrThrow({
      where: { id: place.id },
    });
    expect([run.status, run.toolCalls]).toEqual(['IN_PROGRESS', 3]);
    expect((await place.results()).filter(({ runId }) => runId === place.id)).toHaveLength(3);
    await endRun(place.id);
  });

  test('ends with its calls used up, however many are made at once, and with the run', async () => {
    const place = await newPlace({ maxToolCalls: 5 });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        graphql(place.token, { name: 'append_scratchpad', arguments: { note: `n${index}` } }),
      ),
    );
    expect(answers.filter(({ isError }) => !isError)).toHaveLength(5);
    expect(answers.find(({ isError }) => isError)?.output).toMatch(/^Error: /);
    await endRun(place.id);
    const { errors } = await scene.server.graphql(place.token, EXECUTE, {
      input: { name: 'read_scratchpad', arguments: {} },
    });
    expect(errors?.[0]?.extensions?.code).toMatch(/^(INVALID_TRANSITION|UNAUTHENTICATED)$/);
    expect(
      (
        await scene.ask<{ scratchpad: { formattedView: string } }>(
          'query ($p: ID!) { scratchpad(id: $p) { formattedView } }',
          { p: place.padId },
        )
      ).scratchpad.formattedView.match(/\] n\d/g),
    ).toHaveLength(5);
  });

  test('shows what its worker read to nobody else: only in the run’s own conversation', async () => {
    const padId = await padIn(await scene.open('ada', 'rex'));
    const conversation = await scene.open('bo', 'scout');
    const place = await scene.newRun('scout', { conversation, padId, padViewer: 'ada', delegator: 'ada' });
    await graphql(place.token, { name: 'store', arguments: { memory: 'kept secret' } });
    const reading = ['read_scratchpad', 'recall', 'read_messages', 'peek_pending', 'next_message'];
    for (const name of reading)
      await graphql(place.token, { name, arguments: name === 'recall' ? { query: 'kept' } : {} });
    const results = (await resultsIn(conversation)).filter(({ runId }) => runId === place.id);
    expect(results.map(({ name, isError, output }) => [name, isError, output])).toEqual(
      ['store', ...reading].map((name) => [name, false, NOT_SHOWN]),
    );
    await endRun(place.id);

    const { delegateRun } = await scene.ask<{
      delegateRun: { run: { id: string; conversationThreadId: string }; token: string };
    }>(
      `mutation ($input: DelegateRunInput!) { delegateRun(input: $input) {
        token run { id conversationThreadId } } }`,
      { input: { participantId: scene.idOf('scout'), scratchpadId: padId } },
    );
    const { run, token } = delegateRun;
    await graphql(token, { name: 'append_scratchpad', arguments: { note: 'to be read' } });
    await graphql(token, { name: 'read_scratchpad', arguments: {} });
    expect((await resultsIn(run.conversationThreadId)).at(-1)?.output).toContain('to be read');
    await endRun(run.id);
  });

  test('recalls as its worker does in its conversation, whatever a scratchpad’s entries derive from', async () => {
    const padThread = await scene.open('bo', 'scout', 'rex');
    const [padId, conversation] = [await padIn(padThread), await scene.open('ada', 'scout')];
    await scene.ask(
      'mutation ($input: SetMemoryPolicyInput!) { setMemoryPolicy(input: $input) { thread { id } } }',
      { input: { threadId: padThread, threadOnly: true } },
    );
    const stored = async (handle: string): Promise<string> =>
      (
        await scene.ask<{ storeMemory: { entry: { id: string } } }>(
          'mutation ($input: StoreMemoryInput!) { storeMemory(input: $input) { entry { id } } }',
          { input: { threadId: padThread, as: scene.idOf(handle), payload: `of ${handle}` } },
        )
      ).storeMemory.entry.id;
    for (const handle of ['scout', 'rex'])
      await scene.ask(
        'mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { id } } }',
        {
          input: {
            scratchpadId: padId,
            as: scene.idOf(handle),
            content: 'derived',
            sourceIds: [await stored(handle)],
          },
        },
      );
    const SOURCES = `query ($p: ID!) { scratchpad(id: $p) { entries { nodes {
      sources { ... on MemoryEntry { payload } } } } } }`;
    interface Read {
      readonly scratchpad: { readonly entries: { readonly nodes: readonly { sources: unknown[] }[] } };
    }
    const read = async (token: string): Promise<unknown[]> =>
      (await scene.ask<Read>(SOURCES, { p: padId }, token)).scratchpad.entries.nodes.map(
        ({ sources }) => sources,
      );
    for (const padViewer of ['scout', null]) {
      const run = await scene.newRun('scout', { conversation, padId, padViewer });
      expect(await read(run.token)).toEqual([[], []]);
      await endRun(run.id);
    }
    expect(await read(scene.tokenOf('scout'))).toEqual([[{ payload: 'of scout' }], []]);
  });

  test('tells those who follow the run what is done on its scratchpad', async () => {
    const place = await newPlace();
    await using followed = subscribe<{ run: { activity: object | null } }>(
      scene.server,
      scene.tokenOf('ada'),
      'subscription ($id: ID!) { run(runId: $id) { activity } }',
      { id: place.id },
    );
    await followed.until((all) => all.length > 0);
    await graphql(place.token, { name: 'append_scratchpad', arguments: { note: 'told' } });
    await graphql(place.token, { name: 'append_scratchpad', arguments: { note: '' } });
    await graphql(place.token, { name: 'read_messages', arguments: {} });
    await graphql(scene.tenant.apiKey, { runId: place.id, name: 'read_scratchpad', arguments: {} });
    const told = await followed.until((all) => all.filter(({ run }) => run.activity !== null).length >= 6);
    const of = {
      type: 'scratchpad_status',
      origin: 'tool',
      run_id: place.id,
      assistant_id: scene.idOf('scout'),
    };
    const append = { ...of, operation: 'append', tool: 'append_scratchpad', activity: null };
    const read = { ...of, operation: 'read', tool: 'read_scratchpad', activity: null, entry: null };
    expect(told.flatMap(({ run }) => (run.activity === null ? [] : [run.activity]))).toEqual([
      { ...append, state: 'in_progress', entry: 'told' },
      { ...append, state: 'success', entry: 'told' },
      { ...append, state: 'in_progress', entry: '' },
      { ...append, state: 'error', entry: '', activity: 'Error: note is empty. Send the finding.' },
      { ...read, state: 'in_progress' },
      { ...read, state: 'success' },
    ]);
    await endRun(place.id);
  });

  test('tells those who follow the run also that a call came to nothing', async () => {
    const padId = await padIn(await scene.open('ada', 'bo', 'scout', 'rex'));
    const conversation = await scene.open('bo', 'scout');
    const place = await scene.newRun('scout', { conversation, padId, padViewer: 'ada', delegator: 'ada' });
    const { userId: ownerId } = scene.tenant;
    const [, meta = ''] = padKeys({ ownerId, scratchpadId: padId });
    const redis = new Redis(scene.server.stores.redisUrl);
    await graphql(place.token, { name: 'append_scratchpad', arguments: { note: 'stands' } });
    await using followed = subscribe<{ run: { activity: { state: string; activity: string } | null } }>(
      scene.server,
      scene.tokenOf('ada'),
      'subscription ($id: ID!) { run(runId: $id) { activity } }',
      { id: place.id },
    );
    await followed.until((all) => all.length > 0);
    // No key of ours is such: nobody has foreseen it.
    await redis.rename(meta, 'aside');
    await redis.set(meta, 'no hash');
    expect(await codeOf(place.token, { name: 'append_scratchpad', arguments: { note: 'x' } })).toBe(
      'INTERNAL',
    );
    const told = await followed.until((all) => all.filter(({ run }) => run.activity !== null).length >= 2);
    expect(told.flatMap(({ run }) => (run.activity === null ? [] : [run.activity]))).toMatchObject([
      { state: 'in_progress', activity: null },
      { state: 'error', activity: 'Error: It could not be done.' },
    ]);
    await redis.rename('aside', meta);
    await redis.quit();
    await endRun(place.id);
  });

  test('acts the same for its worker and for the user, by the id of the run', async () => {
    const place = await newPlace({ access: 'APPEND', maxToolCalls: 11 });
    const rest = restAt(new URL(scene.server.url).origin);
    const { apiKey } = scene.tenant;
    const scout = scene.tokenOf('scout');
    type Doing = (name: string, given: object, toolCallId?: string) => Promise<Executed>;
    const by: Record<string, Doing> = {
      token: (name, given, toolCallId) => graphql(place.token, { name, arguments: given, toolCallId }),
      worker: (name, given, toolCallId) =>
        graphql(scout, { runId: place.id, name, arguments: given, toolCallId }),
      user: (name, given, toolCallId) =>
        graphql(apiKey, { runId: place.id, as: scene.idOf('scout'), name, arguments: given, toolCallId }),
      rest: async (name, given, toolCallId) => {
        const { status, body } = await rest({ 'x-api-key': apiKey }, 'POST', '/v1/tools/execute', {
          body: { run_id: place.id, name, arguments: given, tool_call_id: toolCallId },
        });
        expect(status).toBe(200);
        const { output, is_error, conversation_thread_id, tool_call_id } = body as {
          output: string;
          is_error: boolean;
          conversation_thread_id: string;
          tool_call_id: string | null;
        };
        return {
          output,
          isError: is_error,
          conversationThreadId: conversation_thread_id,
          toolCallId: tool_call_id,
        };
      },
    };
    const all = async (...call: Parameters<Doing>): Promise<Executed> => {
      const answers = [];
      for (const act of Object.values(by)) answers.push(await act(...call));
      expect(new Set(answers.map((one) => JSON.stringify(one))).size, JSON.stringify(answers)).toBe(1);
      return answers[0] as Executed;
    };
    // Whose call it is does not matter: it acts once.
    expect(await all('append_scratchpad', { note: 'by whom' }, 'same')).toEqual({
      output: 'Note appended successfully.',
      isError: false,
      conversationThreadId: place.conversation,
      toolCallId: 'same',
    });
    // scout is no member of the scratchpad's thread: it sees it by the run, and may not replace the content.
    expect((await all('read_scratchpad', {})).output.match(/by whom/g)).toHaveLength(1);
    expect(await all('update_scratchpad', { content: 'mine' })).toMatchObject({ isError: true });
    expect((await all('read_scratchpad', {}, 'read')).output).toContain('(empty)');
    // 1 + 4 + 4 + 1 calls were counted.
    expect((await by.user?.('peek_pending', {}))?.isError).toBe(false);
    expect(await all('read_scratchpad', {})).toMatchObject({ isError: true });
    const results = (await place.results()).filter(({ runId }) => runId === place.id);
    expect(results.map(({ name }) => name).filter((name) => name === 'append_scratchpad')).toHaveLength(1);
    expect(results.length).toBeGreaterThanOrEqual(11);
    for (const [token, input, code] of [
      [scout, { runId: place.id, threadId: place.padThread }, 'FORBIDDEN'],
      [scout, { runId: place.id, as: scene.idOf('rex') }, 'FORBIDDEN'],
      [apiKey, { runId: place.id, threadId: place.padThread }, 'FORBIDDEN'],
      [apiKey, { runId: place.id, as: scene.idOf('ada') }, 'FORBIDDEN'],
      [scene.tokenOf('ada'), { runId: place.id }, 'FORBIDDEN'],
      [apiKey, { runId: place.id, as: scene.idOf('rex') }, 'NOT_FOUND'],
      [scene.tokenOf('rex'), { runId: place.id }, 'NOT_FOUND'],
      [apiKey, { runId: newId('Run') }, 'NOT_FOUND'],
      [apiKey, { runId: place.conversation }, 'NOT_FOUND'],
    ] as const)
      expect([input, await codeOf(token, { ...input, name: 'read_scratchpad', arguments: {} })]).toEqual([
        input,
        code,
      ]);
    await endRun(place.id);
    for (const token of [scout, apiKey])
      expect(await codeOf(token, { runId: place.id, name: 'read_scratchpad', arguments: {} })).toBe(
        'INVALID_TRANSITION',
      );
  });

  test('does no more than the run may, and reaches nothing else', async () => {
    const reader = await newPlace({ access: 'READ' });
    expect(
      await graphql(reader.token, { name: 'append_scratchpad', arguments: { note: 'x' } }),
    ).toMatchObject({
      isError: true,
    });
    expect((await graphql(reader.token, { name: 'read_scratchpad', arguments: {} })).isError).toBe(false);
    expect(await codeOf(reader.token, { runId: newId('Run'), name: 'read_scratchpad', arguments: {} })).toBe(
      'NOT_FOUND',
    );
    for (const input of [{ threadId: reader.padThread }, { as: scene.idOf('ada') }])
      expect(await codeOf(reader.token, { ...input, name: 'read_scratchpad', arguments: {} })).toBe(
        'FORBIDDEN',
      );
    expect((await graphql(reader.token, { name: 'read_messages', arguments: {} })).output).toContain(
      '"messages":[',
    );
    const elsewhere = plainMcp(scene.server, reader.token, reader.padThread);
    expect(await elsewhere.open()).toMatchObject({ status: 404 });
    await endRun(reader.id);
    const bare = await newPlace({ padId: null });
    expect(await graphql(bare.token, { name: 'read_scratchpad', arguments: {} })).toMatchObject({
      output: 'Error: This run has no scratchpad.',
      isError: true,
    });
    await endRun(bare.id);
  });
});

describe('outside of a run', () => {
  test('works in the thread that the runtime names, as whom it names', async () => {
    const thread = await scene.open('ada', 'scout', 'rex');
    const at = { threadId: thread, as: scene.idOf('scout') };
    const { apiKey } = scene.tenant;
    expect(await graphql(apiKey, { ...at, name: 'append_scratchpad', arguments: { note: 'mine' } })).toEqual({
      output: 'Note appended successfully.',
      isError: false,
      conversationThreadId: thread,
      toolCallId: null,
    });
    expect(
      (await graphql(scene.tokenOf('rex'), { threadId: thread, name: 'read_scratchpad', arguments: {} }))
        .output,
    ).toContain('[1] mine');
    expect(
      (await graphql(apiKey, { ...at, name: 'store', arguments: { memory: { task: 'count the figures' } } }))
        .isError,
    ).toBe(false);
    const recall = await graphql(apiKey, {
      ...at,
      name: 'recall',
      arguments: { query: 'figures' },
      toolCallId: 'r1',
    });
    expect(JSON.parse(recall.output)).toMatchObject({
      memories: [{ memory: { task: 'count the figures' } }],
      next_cursor: null,
    });
    await graphql(apiKey, { ...at, name: 'append_scratchpad', arguments: { note: 'x' }, toolCallId: 'a1' });
    // What comes of a scratchpad is not written to its own thread, and a memory is nobody else's.
    const results = await resultsIn(thread);
    expect(results.map(({ toolCallId }) => toolCallId)).toEqual(['r1']);
    expect(JSON.stringify(results)).not.toContain('figures');
  });

  test('has no inbox and no memory for a person', async () => {
    const thread = await scene.open('ada', 'scout', 'rex');
    for (const [name, given] of [
      ['peek_pending', {}],
      ['next_message', {}],
      ['store', { memory: 'mine' }],
      ['recall', { query: '' }],
    ] as const)
      expect(await graphql(scene.tokenOf('ada'), { threadId: thread, name, arguments: given })).toMatchObject(
        { isError: true, output: expect.stringMatching(/^Error: (Only a|A)gents and units have /) },
      );
  });

  test('copies nothing into the conversation that a member of it may not see', async () => {
    const thread = await scene.open('ada', 'bo', 'scout', 'rex');
    const set = (mutation: string, handle: string) =>
      scene.ask(
        `mutation ($input: ParticipantStateInput!) { ${mutation}(input: $input) { thread { id } } }`,
        { input: { threadId: thread, participantId: scene.idOf(handle) } },
      );
    await set('removeParticipant', 'bo');
    await scene.post(thread, 'ada', 'said in the gap');
    await set('readdParticipant', 'bo');
    const reading = ['read_messages', 'peek_pending', 'next_message'];
    for (const name of reading) {
      const call = { threadId: thread, name, arguments: {}, toolCallId: name };
      expect((await graphql(scene.tokenOf('scout'), call)).output).toContain('said in the gap');
    }
    expect(
      (await resultsIn(thread)).map(({ name, toolCallId, isError, output }) => [
        name,
        toolCallId,
        isError,
        output,
      ]),
    ).toEqual(reading.map((name) => [name, name, false, NOT_SHOWN]));
  });

  test('needs to know where, and tells the runtime what it got wrong', async () => {
    const foreign = await scene.open('ada', 'bo');
    const scout = scene.tokenOf('scout');
    const call = { name: 'read_scratchpad', arguments: {} };
    expect(await codeOf(scout, call)).toBe('BAD_USER_INPUT');
    expect(await codeOf(scout, { ...call, threadId: foreign })).toBe('NOT_FOUND');
    expect(await codeOf(scene.tenant.apiKey, { ...call, threadId: foreign })).toBe('BAD_USER_INPUT');
    expect(await codeOf(scout, { ...call, threadId: foreign, toolCallId: '' })).toBe('BAD_USER_INPUT');
    const own = await scene.open('rex', 'scout');
    expect(await graphql(scout, { threadId: own, name: 'no_such_tool', arguments: {} })).toMatchObject({
      output: expect.stringMatching(/^Error: There is no tool "no_such_tool"/),
      isError: true,
    });
    await scene.post(own, 'rex', 'unread');
    await scene.ask(
      'mutation ($input: ParticipantStateInput!) { removeParticipant(input: $input) { thread { id } } }',
      { input: { threadId: own, participantId: scene.idOf('scout') } },
    );
    const { output } = await graphql(scout, { threadId: own, name: 'peek_pending', arguments: {} });
    expect(JSON.parse(output)).toEqual({ count: 0, messages: [], next_cursor: null });
    for (const name of ['read_scratchpad', 'send_message', 'store'])
      expect(
        await graphql(scout, {
          threadId: own,
          name,
          arguments: { read_scratchpad: {}, send_message: { content: 'x' }, store: { memory: 'x' } }[name],
          toolCallId: `removed ${name}`,
        }),
      ).toMatchObject({ isError: true, output: expect.stringMatching(/^Error: .*not active/) });
    expect(await resultsIn(own)).toEqual([]);
  });
});

test('a run is over when the database says so, however wrong the clock of a process is', async () => {
  const place = await newPlace({});
  const { prisma } = scene.server.services.database;
  const read = () =>
    graphql(scene.tokenOf('scout'), { runId: place.id, name: 'read_scratchpad', arguments: {} });
  await prisma.run.update({
    where: { id: place.id },
    data: { expiresAt: new Date(Date.now() + 600_000) },
  });
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
  try {
    expect(await read()).toMatchObject({ isError: false });
  } finally {
    vi.useRealTimers();
  }
  await prisma.run.update({ where: { id: place.id }, data: { expiresAt: new Date(Date.now() - 1_000) } });
  await expect(read()).rejects.toThrow('INVALID_TRANSITION');
  await until(async () => {
    const { finishedAt } = await prisma.run.findUniqueOrThrow({ where: { id: place.id } });
    return finishedAt !== null;
  }, 50);
});
