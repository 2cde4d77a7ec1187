import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Called, plainMcp } from '../support/mcp.ts';
import { restAt } from '../support/rest.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';

/** A call that is repeated under its id acts once, whatever is in hand meanwhile and wherever it was lost. */
let scene: Scene;
beforeAll(async () => {
  scene = await toolScene();
  await scene.server.services.database.script(`
    CREATE FUNCTION lose_result() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM tp_fail('UNAVAILABLE', 'Lost between what was done and what was kept of it.');
      RETURN NEW;
    END $$;
    CREATE TRIGGER lose_result BEFORE UPDATE ON idempotency_records FOR EACH ROW EXECUTE FUNCTION lose_result();
    ALTER TABLE idempotency_records DISABLE TRIGGER lose_result;`);
});
afterAll(() => scene.server.close());

type Call = (name: string, given: object, id?: string) => Promise<Called>;

const mcpOf = async (handle: string, thread?: string): Promise<Call> => {
  const client = plainMcp(scene.server, scene.tokenOf(handle), thread);
  await client.open();
  return async (name, given, id) => {
    const _meta = id === undefined ? {} : { 'threadpad/toolCallId': id };
    const { result, error } = await client.request('tools/call', { name, arguments: given, _meta });
    const [content] = (result?.content ?? []) as { text: string }[];
    return { text: content?.text ?? error?.message ?? '', isError: result?.isError !== false };
  };
};

const EXECUTE = `mutation ($input: ExecuteToolInput!) { executeTool(input: $input) { output isError } }`;

/** Where an agent works in one conversation; `plain` where it is that of the message in hand. */
const doors: Record<string, (handle: string, thread: string) => Promise<Call>> = {
  plain: (handle) => mcpOf(handle),
  thread: (handle, thread) => mcpOf(handle, thread),
  executeTool: async (handle, threadId) => async (name, given, toolCallId) => {
    const input = { threadId, name, arguments: given, toolCallId };
    const { data, errors } = await scene.server.graphql<{
      executeTool: { output: string; isError: boolean };
    }>(scene.tokenOf(handle), EXECUTE, { input });
    const { output, isError } = data?.executeTool ?? { output: errors?.[0]?.message ?? '', isError: true };
    return { text: output, isError };
  },
  rest: async (handle, thread) => async (name, given, id) => {
    const { body } = await restAt(new URL(scene.server.url).origin)(
      { 'x-api-key': scene.tokenOf(handle) },
      'POST',
      '/v1/tools/execute',
      { body: { thread_id: thread, name, arguments: given, tool_call_id: id } },
    );
    const { output, is_error } = body as { output?: string; is_error?: boolean };
    return { text: output ?? JSON.stringify(body), isError: is_error !== false };
  },
};

/** The next call does what it is to do, and what it answered is lost. */
const losing = async <T>(work: () => Promise<T>): Promise<T> => {
  const { database } = scene.server.services;
  await database.script('ALTER TABLE idempotency_records ENABLE TRIGGER lose_result');
  try {
    return await work();
  } finally {
    await database.script('ALTER TABLE idempotency_records DISABLE TRIGGER lose_result');
  }
};

let count = 0;
/** Two new conversations of an agent that has nothing else waiting: one with ada, one with bo. */
const twoThreads = async (): Promise<{ agent: string; one: string; other: string }> => {
  count += 1;
  const agent = await scene.newAgent(`agent-${count}`);
  const [one, other] = [await scene.open('ada', agent), await scene.open('bo', agent)];
  await scene.post(one, 'ada', 'from ada');
  await scene.post(other, 'bo', 'from bo');
  return { agent, one, other };
};

const inHand = async (agent: string): Promise<(string | null)[]> =>
  (
    await scene.server.services.database.prisma.inboxThread.findMany({
      where: { participantId: scene.idOf(agent), deliveryId: { not: null } },
      orderBy: { takenAt: 'asc' },
    })
  ).map(({ threadId }) => threadId);

const ackedIn = async (agent: string, threadId: string): Promise<number> =>
  (
    await scene.server.services.database.prisma.threadMember.findFirstOrThrow({
      where: { participantId: scene.idOf(agent), threadId },
    })
  ).ackSeq;

describe('on the plain path', () => {
  test('an answer that is repeated goes nowhere else, with another message in hand or none', async () => {
    const { agent, one, other } = await twoThreads();
    const call = await mcpOf(agent);
    expect((await call('next_message', {})).text).toContain('from ada');
    const answer = { content: 'for ada', acknowledge: true };
    const first = await call('send_message', answer, 'X');
    expect(first).toMatchObject({ isError: false });
    // Nothing is in hand, and the answer got lost.
    expect(await call('send_message', answer, 'X')).toEqual(first);
    expect((await call('next_message', {})).text).toContain('from bo');
    const unread = await ackedIn(agent, other);
    expect(await call('send_message', answer, 'X')).toEqual(first);
    expect(await scene.messagesOf(one)).toEqual(['from ada', 'for ada']);
    expect(await scene.messagesOf(other)).toEqual(['from bo']);
    expect(await inHand(agent)).toEqual([other]);
    expect(await ackedIn(agent, other)).toBe(unread);
    expect(await call('send_message', { ...answer, content: 'else' }, 'X')).toMatchObject({ isError: true });
    expect(await scene.messagesOf(other)).toEqual(['from bo']);
  });

  test('while two messages are in hand it is the first one’s, also where its conversation is deleted', async () => {
    const { agent, one, other } = await twoThreads();
    const call = await mcpOf(agent);
    await call('next_message', {});
    await call('next_message', {});
    const answer = { content: 'for bo', acknowledge: true };
    const first = await call('send_message', answer, 'X');
    expect(await call('send_message', answer, 'X')).toEqual(first);
    expect(await scene.messagesOf(one)).toEqual(['from ada']);
    expect(await inHand(agent)).toEqual([one]);
    await scene.ask('mutation ($t: ID!) { deleteThread(input: { threadId: $t }) { __typename } }', {
      t: other,
    });
    const { prisma } = scene.server.services.database;
    await until(async () => (await prisma.idempotencyRecord.count({ where: { threadId: other } })) === 0);
    expect(await call('send_message', answer, 'X')).toMatchObject({ isError: true });
    expect(await scene.messagesOf(one)).toEqual(['from ada']);
    expect(await inHand(agent)).toEqual([one]);
  });

  test('what was refused for want of a message stays refused', async () => {
    const { agent, one } = await twoThreads();
    const call = await mcpOf(agent);
    const refused = await call('append_scratchpad', { note: 'x' }, 'early');
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('You hold no message') });
    await call('next_message', {});
    expect(await call('append_scratchpad', { note: 'x' }, 'early')).toEqual(refused);
    expect((await call('append_scratchpad', { note: 'x' }, 'late')).isError).toBe(false);
    expect(await inHand(agent)).toEqual([one]);
  });

  test('next_message takes one message for one id, however often and at once', async () => {
    const { agent, one } = await twoThreads();
    const call = await mcpOf(agent);
    const wait = { wait_seconds: 1 };
    const calls = await Promise.all([1, 2, 3].map(() => call('next_message', wait, 'N')));
    for (const answer of calls) expect(answer).toEqual(calls[0]);
    expect(calls[0]?.text).toContain('from ada');
    expect(await inHand(agent)).toEqual([one]);
    await call('acknowledge_message', {}, 'A');
    expect(await call('next_message', wait, 'N')).toEqual(calls[0]);
    expect(await inHand(agent)).toEqual([]);
    expect((await call('next_message', {}, 'M')).text).toContain('from bo');
    // Done once: the message that is in hand now is another.
    expect((await call('acknowledge_message', {}, 'A')).isError).toBe(false);
    expect(await inHand(agent)).toHaveLength(1);
    await call('acknowledge_message', {}, 'B');
    const nothing = await call('next_message', {}, 'E');
    expect(nothing.text).toContain('Nothing waits');
    await scene.post(one, 'ada', 'later');
    expect(await call('next_message', {}, 'E')).toEqual(nothing);
    expect(await inHand(agent)).toEqual([]);
  });

  test('next_message whose answer is lost shows the message that it took', async () => {
    const { agent, one } = await twoThreads();
    const call = await mcpOf(agent);
    expect((await losing(() => call('next_message', {}, 'N'))).isError).toBe(true);
    expect(await inHand(agent)).toEqual([one]);
    const again = await call('next_message', {}, 'N');
    expect(again).toMatchObject({ isError: false, text: expect.stringContaining('from ada') });
    expect(await call('next_message', {}, 'N')).toEqual(again);
    expect(await inHand(agent)).toEqual([one]);
  });
});

describe.each(Object.keys(doors))('where the result of a call is lost (%s)', (door) => {
  /** With a message in hand. */
  const begin = async () => {
    const { agent, one, other } = await twoThreads();
    const call = (await doors[door]?.(agent, one)) as Call;
    expect((await call('next_message', {})).text).toContain('from ada');
    return { agent, one, other, call };
  };
  /** As before, but that by the time it is repeated another message is in hand. */
  const lose = async (
    at: Awaited<ReturnType<typeof begin>>,
    name: string,
    given: object,
  ): Promise<Called> => {
    expect((await losing(() => at.call(name, given, 'X'))).isError).toBe(true);
    await scene.post(at.one, 'ada', 'more');
    if (door === 'plain') await at.call('next_message', {});
    const next = await at.call('next_message', {});
    expect(next.isError).toBe(false);
    const held = await inHand(at.agent);
    const answers = [await at.call(name, given, 'X'), await at.call(name, given, 'X')];
    expect(answers[1]).toEqual(answers[0]);
    expect(await inHand(at.agent)).toEqual(held);
    return answers[0] as Called;
  };

  test('an answer is posted once, and finishes its own message', async () => {
    const at = await begin();
    const sent = await lose(at, 'send_message', { content: 'the answer', acknowledge: true });
    expect(sent).toMatchObject({
      isError: false,
      text: expect.stringMatching(/^Message sent: event_\w+\. The message that you held is finished\.$/),
    });
    expect(await scene.messagesOf(at.one)).toEqual(['from ada', 'the answer', 'more']);
    expect(await scene.messagesOf(at.other)).toEqual(['from bo']);
  });

  test('an acknowledgement finishes no other message', async () => {
    const at = await begin();
    const done = await lose(at, 'acknowledge_message', {});
    expect(done).toEqual({ text: 'Done with that message.', isError: false });
  });

  test('what is taken back stays so, and everything else is done once', async () => {
    const at = await begin();
    const sent = await at.call('send_message', { content: 'to be taken back' });
    const id = /event_\w+/.exec(sent.text)?.[0];
    expect(await lose(at, 'message_retract', { message_id: id })).toEqual({
      text: 'Message taken back.',
      isError: false,
    });
    expect(await at.call('message_retract', { message_id: id }, 'another')).toMatchObject({ isError: true });
    for (const [name, given] of [
      ['append_scratchpad', { note: 'once' }],
      ['update_scratchpad', { content: 'the plan' }],
      ['store', { memory: 'kept' }],
    ] as const) {
      expect((await losing(() => at.call(name, given, name))).isError).toBe(true);
      const again = await at.call(name, given, name);
      expect([name, again.isError, await at.call(name, given, name)]).toEqual([name, false, again]);
    }
    expect((await at.call('read_scratchpad', {})).text.match(/once/g)).toHaveLength(1);
    expect((await at.call('recall', { query: '' })).text.match(/kept/g)).toHaveLength(1);
  });

  test('so is what is made at once', async () => {
    const at = await begin();
    const sent = await at.call('send_message', { content: 'to be taken back' });
    const id = /event_\w+/.exec(sent.text)?.[0];
    for (const [name, given] of [
      ['message_retract', { message_id: id }],
      ['send_message', { content: 'the answer', acknowledge: true }],
    ] as const) {
      const answers = await Promise.all([1, 2, 3].map(() => at.call(name, given, name)));
      for (const answer of answers) expect(answer).toEqual({ ...answers[0], isError: false });
    }
    expect(await scene.messagesOf(at.one)).toEqual(['from ada', 'to be taken back', 'the answer']);
    expect(await inHand(at.agent)).toEqual([]);
  });
});
