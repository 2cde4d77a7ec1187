import { afterAll, beforeAll, expect, test } from 'vitest';
import { ANSWER_BYTES } from '../../src/tools/pieces.ts';
import { plainMcp } from '../support/mcp.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';

/** What a client receives of one answer, to the last byte, whatever the texts are made of. */
let scene: Scene;
beforeAll(async () => {
  scene = await toolScene();
});
afterAll(() => scene.server.close());

/** An agent's client, all answers to which are measured. */
const clientIn = async (threadId: string) => {
  const mcp = plainMcp(scene.server, scene.tokenOf('scout'), threadId);
  await mcp.open();
  const measured = async (method: string, params: object): Promise<unknown> => {
    const { result, bytes } = await mcp.request(method, params);
    expect(bytes).toBeLessThanOrEqual(ANSWER_BYTES);
    return result;
  };
  return {
    call: async (name: string, given: object): Promise<string> => {
      const result = await measured('tools/call', { name, arguments: given });
      return (result as { content: [{ text: string }] }).content[0].text;
    },
    resource: async (uri: string) => {
      const result = await measured('resources/read', { uri });
      return (result as { contents: [{ text: string; _meta?: { 'threadpad/next': string } }] }).contents[0];
    },
  };
};

/** Characters of which each takes more as JSON, and more again as JSON in JSON. */
const HARD = ['"', '\u0001', '😀', '\\', '"\u0001😀\\\n'];
const hard = (index: number, units: number): string => {
  const unit = HARD[index % HARD.length] ?? '';
  return `${index} ${unit.repeat(Math.ceil(units / unit.length))}`;
};

interface Shown {
  readonly id: string;
  readonly content?: string;
  readonly content_rest?: string;
  readonly data?: unknown;
  readonly data_rest?: string;
}
interface Page {
  readonly messages: readonly Shown[];
  readonly next_cursor: string | null;
}
type Client = Awaited<ReturnType<typeof clientIn>>;

/** Text and data of a message, read on to their ends. */
const wholeOf = async ({ call }: Client, shown: Shown): Promise<{ content: string; data: unknown }> => {
  const rest = async (field: 'content' | 'data'): Promise<string> => {
    let text = '';
    for (let cursor = shown[`${field}_rest`]; cursor !== undefined; ) {
      const [next] = (JSON.parse(await call('read_messages', { cursor })) as Page).messages;
      expect(next?.id).toBe(shown.id);
      text += String(next?.[field]);
      cursor = next?.[`${field}_rest`];
    }
    return text;
  };
  const content = `${shown.content ?? ''}${await rest('content')}`;
  if (shown.data_rest === undefined) return { content, data: shown.data ?? null };
  return { content, data: JSON.parse(`${shown.data ?? ''}${await rest('data')}`) };
};

test('messages fit into answers, and are read whole, by whichever tool or resource', async () => {
  const handle = 'h'.repeat(128);
  const { createParticipant: made } = await scene.ask<{ createParticipant: { participant: { id: string } } }>(
    'mutation ($input: CreateParticipantInput!) { createParticipant(input: $input) { participant { id } } }',
    { input: { kind: 'HUMAN', handle, displayName: handle } },
  );
  const { openThread } = await scene.ask<{ openThread: { thread: { id: string } } }>(
    'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
    { ids: [made.participant.id, scene.idOf('scout')] },
  );
  const threadId = openThread.thread.id;
  const said = [
    ...HARD.map((_, index) => ({
      content: hard(index, 20_000),
      data: { text: hard(index + 1, 20_000), n: [1] },
    })),
    ...HARD.map((_, index) => ({ content: hard(index, 700), data: { text: hard(index + 2, 700) } })),
    ...Array.from({ length: 40 }, (_, index) => ({ content: `${index}`, data: null })),
    { content: 'short', data: { text: hard(4, 9_000) } },
  ];
  const inputs = said.map(({ content, data }) => ({
    threadId,
    as: made.participant.id,
    content,
    ...(data === null ? {} : { data }),
  }));
  for (let from = 0; from < inputs.length; from += 10) {
    const some = inputs.slice(from, from + 10);
    const names = some.map((_, index) => `i${index}`);
    await scene.ask(
      `mutation (${names.map((name) => `$${name}: PostMessageInput!`).join(', ')}) {
        ${names.map((name) => `${name}: postMessage(input: $${name}) { cursor }`).join('\n')} }`,
      Object.fromEntries(names.map((name, index) => [name, some[index]])),
    );
  }
  const client = await clientIn(threadId);

  const read: Shown[] = [];
  let pages = 0;
  for (let cursor: string | null | undefined; cursor !== null; pages += 1) {
    const page = JSON.parse(
      await client.call('read_messages', { limit: 50, ...(cursor === undefined ? {} : { cursor }) }),
    ) as Page;
    read.unshift(...page.messages);
    cursor = page.next_cursor;
  }
  expect(pages).toBeLessThan(15);
  expect(await Promise.all(read.map((one) => wholeOf(client, one)))).toEqual(said);

  const seen: Shown[] = [];
  for (let uri: string | undefined = 'threadpad://timeline'; uri !== undefined; ) {
    const page: { text: string; _meta?: { 'threadpad/next': string } } = await client.resource(uri);
    seen.unshift(...(JSON.parse(page.text) as Page).messages);
    uri = page._meta?.['threadpad/next'];
  }
  expect(seen.map(({ id }) => id)).toEqual(read.map(({ id }) => id));

  const waiting: Shown[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = JSON.parse(
      await client.call('peek_pending', cursor === undefined ? {} : { cursor }),
    ) as Page;
    waiting.push(...page.messages);
    cursor = page.next_cursor;
  }
  expect(waiting.map(({ id }) => id)).toEqual(read.map(({ id }) => id));

  for (let time = 0; time < 2; time += 1) {
    const { message } = JSON.parse(await client.call('next_message', {})) as { message: Shown };
    expect(await wholeOf(client, message)).toEqual(said[0]);
  }
});

test('memories fit into answers, and are read whole', async () => {
  const client = await clientIn(await scene.open('ada', 'scout'));
  const memories = Array.from({ length: 16 }, (_, index) =>
    index % 2 === 0 ? hard(index, 2_500) : { note: hard(index, 2_500), more: [hard(index + 1, 100)] },
  );
  for (const memory of memories) await client.call('store', { memory });
  const recalled: unknown[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = JSON.parse(
      await client.call('recall', { query: '', ...(cursor === undefined ? {} : { cursor }) }),
    ) as { memories: { memory: unknown; memory_rest?: string }[]; next_cursor: string | null };
    for (const { memory, memory_rest: rest } of page.memories) {
      expect(rest).toBeUndefined();
      recalled.unshift(memory);
    }
    cursor = page.next_cursor;
  }
  expect(recalled).toEqual(memories);
});

test('a scratchpad fits into answers, and nothing of it is left out', async () => {
  const threadId = await scene.open('bo', 'scout');
  const client = await clientIn(threadId);
  const scratchpadId = await scene.padOf(threadId);
  for (const unit of HARD) {
    const body = `<${unit.repeat(Math.ceil(30_000 / unit.length))}>`;
    const entry = `{${unit.repeat(Math.ceil(14_000 / unit.length))}}`;
    await scene.ask(
      `mutation ($id: ID!, $text: String!, $entries: [String!]!) {
        clearScratchpad(input: { scratchpadId: $id }) { __typename }
        setScratchpadContent(input: { scratchpadId: $id, text: $text }) { cursor }
        appendScratchpadEntries(input: { scratchpadId: $id, contents: $entries }) { cursor } }`,
      { id: scratchpadId, text: body, entries: [entry, entry, 'the newest'] },
    );
    let shown = '';
    for (let uri: string | undefined = 'threadpad://scratchpad'; uri !== undefined; ) {
      const page: { text: string; _meta?: { 'threadpad/next': string } } = await client.resource(uri);
      shown += page.text.replace(/\n\n\(There is more: .*$/s, '');
      uri = page._meta?.['threadpad/next'];
    }
    const [mark = ''] = unit;
    const count = (text: string): number => text.split(mark).length - 1;
    expect(count(shown)).toBe(count(body + entry + entry));
    expect(shown).toContain('the newest');
  }
});
