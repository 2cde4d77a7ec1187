import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { timelineCursor } from '../../src/shared/cursors.ts';
import { newId } from '../../src/shared/ids.ts';
import { ANSWER_BYTES, restCursor } from '../../src/tools/pieces.ts';
import { type Called, plainMcp } from '../support/mcp.ts';
import { restAt } from '../support/rest.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';

/** What is too long for one answer, read whole through the tools, by whatever door. */
let scene: Scene;
let thread = '';
let padId = '';
type Door = (name: string, given: Readonly<Record<string, unknown>>) => Promise<Called>;
let doors: Readonly<Record<'mcp' | 'graphql' | 'rest', Door>>;

beforeAll(async () => {
  scene = await toolScene();
  const { server, tokenOf, ask } = scene;
  thread = await scene.open('ada', 'scout', 'rex');
  padId = await scene.padOf(thread);
  const mcp = plainMcp(server, tokenOf('scout'), thread);
  await mcp.open();
  const rest = restAt(new URL(server.url).origin);
  doors = {
    mcp: mcp.call,
    graphql: async (name, given) => {
      const { executeTool } = await ask<{ executeTool: { output: string; isError: boolean } }>(
        'mutation ($input: ExecuteToolInput!) { executeTool(input: $input) { output isError } }',
        { input: { threadId: thread, name, arguments: given } },
        tokenOf('scout'),
      );
      return { text: executeTool.output, isError: executeTool.isError };
    },
    rest: async (name, given) => {
      const headers = { 'x-api-key': tokenOf('scout') };
      const { body } = await rest(headers, 'POST', '/v1/tools/execute', {
        body: { thread_id: thread, name, arguments: given },
      });
      const { output, is_error: isError } = body as { output: string; is_error: boolean };
      return { text: output, isError };
    },
  };
});
afterAll(() => scene.server.close());

/** `bytes` long, of characters of one to four bytes, also of those that JSON writes in another way; no two stretches alike. */
const longText = (bytes: number): string => {
  const stretches: string[] = [];
  let left = bytes;
  for (let index = 0; left > 80; index += 1) {
    const stretch = `${index}😀é数"\\\u0001 `.repeat(3);
    stretches.push(stretch);
    left -= Buffer.byteLength(stretch);
  }
  return stretches.join('') + 'x'.repeat(left);
};

const MORE =
  /\n\n\(There is more: (?:read_scratchpad with cursor "([\w-]+)".|threadpad:\/\/scratchpad\?cursor=([\w-]+))\)$/;
/** All parts of a scratchpad, each without the note that says how to read on. */
const partsOf = async (read: (cursor: string | undefined) => Promise<string>): Promise<string[]> => {
  const parts: string[] = [];
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const text = await read(cursor);
    expect(text.length).toBeLessThanOrEqual(isFirst ? 24_000 : ANSWER_BYTES);
    expect(Buffer.byteLength(JSON.stringify(text))).toBeLessThan(ANSWER_BYTES);
    expect(text.isWellFormed()).toBe(true);
    const [note = '', ...found] = MORE.exec(text) ?? [];
    parts.push(text.slice(0, text.length - note.length));
    cursor = found.find((one) => one !== undefined);
  }
  return parts;
};
/** Body and entries, put together again. */
const wholeOf = ([view = '', ...parts]: readonly string[]) => {
  const [, shown = '', list = ''] = /WORKING BODY\n(.*?)\n\nAPPENDED ENTRIES\n(.*)$/s.exec(view) ?? [];
  let body = shown.replace(/… \(\d+ more characters are left out\)$/, '');
  const entries = new Map<string, string>();
  const add = (text: string): void => {
    for (const line of text.split(/\n(?=\[\d+\] )/)) {
      const [, number, from, content = ''] = /^\[(\d+)\] (?:from character (\d+): )?(.*)$/s.exec(line) ?? [];
      if (number === undefined) continue;
      const before = entries.get(number) ?? '';
      if (from !== undefined) expect(Number(from)).toBe(before.length + 1);
      entries.set(number, before + content.replace(/… \(\d+ more characters are left out\)$/, ''));
    }
  };
  add(list);
  for (const part of parts) {
    const [, from, piece = ''] = /^WORKING BODY, from character (\d+)\n(.*)$/s.exec(part) ?? [];
    if (from === undefined) add(part);
    else {
      expect(Number(from)).toBe(body.length + 1);
      body += piece;
    }
  }
  return {
    body,
    entries: [...entries].sort(([a], [b]) => Number(a) - Number(b)).map(([, content]) => content),
  };
};

const setContent = (text: string) =>
  scene.ask(
    'mutation ($p: ID!, $t: String!) { setScratchpadContent(input: { scratchpadId: $p, text: $t }) { cursor } }',
    {
      p: padId,
      t: text,
    },
  );
const append = (contents: readonly string[]) =>
  scene.ask(
    'mutation ($p: ID!, $c: [String!]!) { appendScratchpadEntries(input: { scratchpadId: $p, contents: $c }) { cursor } }',
    { p: padId, c: contents },
  );

describe('a scratchpad', () => {
  test('with a megabyte of body and entries of 64 KiB is read whole, as a tool and as a resource', async () => {
    const body = longText(1_048_576);
    const entries = [
      longText(65_536),
      'short',
      ...Array.from({ length: 12 }, () => longText(4_000)),
      longText(65_536),
    ];
    await setContent(body);
    await append(entries);
    const parts = await partsOf(
      async (cursor) => (await doors.mcp('read_scratchpad', cursor === undefined ? {} : { cursor })).text,
    );
    expect(wholeOf(parts)).toEqual({ body, entries });
    const mcp = plainMcp(scene.server, scene.tokenOf('rex'), thread);
    await mcp.open();
    const pages = await partsOf(async (cursor) => {
      const uri = `threadpad://scratchpad${cursor === undefined ? '' : `?cursor=${cursor}`}`;
      const { contents } = (await mcp.request('resources/read', { uri })).result as {
        contents: [{ text: string }];
      };
      return contents[0].text;
    });
    expect(pages).toEqual(parts);
  });

  test('answers the same by every door, in parts too', async () => {
    await setContent(longText(60_000));
    const compatible: Door = async (_name, given) => {
      const { body } = await restAt(new URL(scene.server.url).origin)(
        { 'x-api-key': scene.tokenOf('scout') },
        'POST',
        '/tools/scratchpad/read',
        { body: { thread_id: thread, ...given } },
      );
      return { text: (body as { content: string }).content, isError: false };
    };
    const answers = [];
    for (const door of [...Object.values(doors), compatible])
      answers.push(
        await partsOf(
          async (cursor) => (await door('read_scratchpad', cursor === undefined ? {} : { cursor })).text,
        ),
      );
    for (const parts of answers) expect(parts).toEqual(answers[0]);
  });

  test('that was replaced, cleared or is another is not gone on with', async () => {
    await setContent(longText(60_000));
    const first = await doors.mcp('read_scratchpad', {});
    const cursor = MORE.exec(first.text)?.[1];
    await setContent(longText(60_000));
    for (const door of Object.values(doors))
      expect(await door('read_scratchpad', { cursor })).toEqual({
        text: expect.stringMatching(/^Error: What this cursor goes on with was replaced/),
        isError: true,
      });
    const elsewhere = await scene.open('bo', 'scout');
    const there = plainMcp(scene.server, scene.tokenOf('scout'), elsewhere);
    await there.open();
    for (const wrong of [cursor, 'x', '', 'k'.repeat(600)])
      expect(await there.call('read_scratchpad', { cursor: wrong })).toMatchObject({ isError: true });
  });
});

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
const pageOf = ({ text, isError }: Called): Page => {
  expect([isError, isError ? text : '']).toEqual([false, '']);
  return JSON.parse(text) as Page;
};

describe('a message', () => {
  test('that is too long for one answer is read on, from whichever tool showed it', async () => {
    const content = longText(65_536);
    const data = { text: longText(50_000) };
    const place = await scene.open('ada', 'bo', 'scout');
    await scene.ask('mutation ($input: PostMessageInput!) { postMessage(input: $input) { cursor } }', {
      input: { threadId: place, as: scene.idOf('ada'), content, data },
    });
    const mcp = plainMcp(scene.server, scene.tokenOf('scout'), place);
    await mcp.open();
    const restOf = async (shown: Shown, field: 'content' | 'data'): Promise<string> => {
      let text = String(shown[field] ?? '');
      for (let cursor = shown[`${field}_rest`]; cursor !== undefined; ) {
        const answer = await mcp.call('read_messages', { cursor });
        expect(Buffer.byteLength(JSON.stringify(answer.text))).toBeLessThan(ANSWER_BYTES);
        const [one, ...others] = pageOf(answer).messages;
        expect([one?.id, others]).toEqual([shown.id, []]);
        text += String(one?.[field]);
        cursor = one?.[`${field}_rest`];
      }
      return text;
    };
    const shown = [
      pageOf(await mcp.call('read_messages')).messages[0],
      pageOf(await mcp.call('peek_pending')).messages[0],
      (JSON.parse((await mcp.call('next_message')).text) as { message: Shown }).message,
      (JSON.parse((await mcp.call('next_message')).text) as { message: Shown }).message,
    ];
    for (const one of shown) {
      if (one === undefined) throw new Error('Nothing was shown.');
      expect(await restOf(one, 'content')).toBe(content);
      expect(JSON.parse(await restOf(one, 'data'))).toEqual(data);
    }
    // Nobody reads on who may not read it, and not where it is not.
    for (const [token, where] of [
      [scene.tokenOf('scout'), thread],
      [scene.tokenOf('rex'), thread],
    ] as const) {
      const other = plainMcp(scene.server, token, where);
      await other.open();
      for (const cursor of [shown[0]?.content_rest, shown[0]?.data_rest])
        expect(await other.call('read_messages', { cursor })).toMatchObject({
          isError: true,
          text: expect.stringMatching(/^Error: This cursor/),
        });
    }
  });

  test('waits among others that are seen page by page', async () => {
    const place = await scene.open('bo', 'rex', 'scout');
    const contents = Array.from(
      { length: 26 },
      (_, index) => `${index} ${'é'.repeat(index % 2 === 0 ? 1_000 : 3)}`,
    );
    for (const content of contents) await scene.post(place, 'bo', content);
    const mcp = plainMcp(scene.server, scene.tokenOf('scout'), place);
    await mcp.open();
    const seen: (string | undefined)[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = pageOf(await mcp.call('peek_pending', cursor === undefined ? {} : { cursor }));
      seen.push(...page.messages.map(({ content }) => content));
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(contents);
    const foreign = timelineCursor(place, 3, newId('Event'));
    for (const cursor of ['x', foreign])
      for (const tool of ['peek_pending', 'read_messages'])
        expect(await mcp.call(tool, { cursor })).toMatchObject({
          isError: true,
          text: expect.stringMatching(/^Error: This cursor/),
        });
  });

  test('has no rest of what it has not', async () => {
    const place = await scene.open('rex', 'scout');
    await scene.post(place, 'rex', 'a word');
    const mcp = plainMcp(scene.server, scene.tokenOf('scout'), place);
    await mcp.open();
    const [message] = pageOf(await mcp.call('read_messages')).messages;
    for (const [field, from] of [
      ['data', 0],
      ['data', 1],
      ['content', 7],
    ] as const)
      expect(
        await mcp.call('read_messages', { cursor: restCursor(field, message?.id ?? '', from) }),
      ).toMatchObject({
        isError: true,
        text: expect.stringMatching(/^Error: This cursor/),
      });
  });
});

test('a memory that is too long for one answer is read on, by its agent and where it is recalled', async () => {
  const text = longText(60_000);
  const payload = { note: `needle ${longText(60_000)}` };
  for (const memory of [text, payload]) await doors.mcp('store', { memory });
  interface Recalled {
    readonly memories: readonly {
      readonly id: string;
      readonly memory: unknown;
      readonly memory_rest?: string;
    }[];
    readonly next_cursor: string | null;
  }
  const recall = async (door: Door, query: string, cursor?: string | null): Promise<Recalled> =>
    JSON.parse((await door('recall', { query, ...(cursor ? { cursor } : {}) })).text) as Recalled;
  const first = await recall(doors.mcp, '');
  const second = await recall(doors.graphql, '', first.next_cursor);
  const whole: string[] = [];
  for (const [one] of [first.memories, second.memories]) {
    let so = String(one?.memory);
    for (let cursor = one?.memory_rest; cursor !== undefined; ) {
      const [next] = (await recall(doors.rest, 'anything', cursor)).memories;
      expect(next?.id).toBe(one?.id);
      so += String(next?.memory);
      cursor = next?.memory_rest;
    }
    whole.push(so);
  }
  expect(whole).toEqual([JSON.stringify(payload), text]);
  const cursor = first.memories[0]?.memory_rest;
  const foreign = plainMcp(scene.server, scene.tokenOf('rex'), thread);
  await foreign.open();
  const elsewhere = plainMcp(scene.server, scene.tokenOf('scout'), await scene.open('ada', 'scout'));
  await elsewhere.open();
  for (const other of [foreign, elsewhere])
    expect(await other.call('recall', { query: '', cursor })).toMatchObject({ isError: true });
  const made = Buffer.from(`k1 rest-memory ${newId('MemoryEntry')} 5`).toString('base64url');
  expect(await doors.mcp('recall', { query: '', cursor: made })).toMatchObject({ isError: true });
});
