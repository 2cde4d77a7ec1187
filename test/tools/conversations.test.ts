import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ANSWER_BYTES } from '../../src/tools/pieces.ts';
import { plainMcp } from '../support/mcp.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';

/** A client that knows tools and nothing else, with a participant’s token. */
let scene: Scene;
beforeAll(async () => {
  scene = await toolScene();
});
afterAll(() => scene.server.close());

const said = (text: string): { content: string; from: string } | null =>
  (JSON.parse(text) as { message: { content: string; from: string } | null }).message;

describe('a client without resources', () => {
  test('holds a conversation in two threads, each in its own', async () => {
    const { server, tokenOf, open, post, messagesOf } = scene;
    const [one, other] = [await open('ada', 'scout'), await open('bo', 'scout')];
    const scout = plainMcp(server, tokenOf('scout'));
    await scout.open();
    expect(await scout.call('send_message', { content: 'to nobody' })).toEqual({
      text: 'Error: You hold no message, so there is no conversation to act in. Take one with next_message first.',
      isError: true,
    });
    expect(said((await scout.call('next_message')).text)).toBe(null);
    await post(one, 'ada', 'What is the plan?');
    await post(other, 'bo', 'And the figures?');

    const first = said((await scout.call('next_message', { wait_seconds: 5 })).text);
    expect(first).toMatchObject({ content: 'What is the plan?', from: 'ada' });
    const read = await scout.call('read_messages');
    expect(read.text).toContain('What is the plan?');
    expect(read.text).not.toContain('figures');
    expect((await scout.call('append_scratchpad', { note: 'a note on the plan' })).isError).toBe(false);
    // Another is taken while the first is in hand: from now on it is the one.
    const second = said((await scout.call('next_message')).text);
    expect(second).toMatchObject({ content: 'And the figures?', from: 'bo' });
    expect((await scout.call('read_scratchpad')).text).toContain('is empty');
    expect(
      (await scout.call('send_message', { content: 'They are of 2024.', acknowledge: true })).isError,
    ).toBe(false);
    // Back in the first one.
    expect((await scout.call('read_scratchpad')).text).toContain('[1] a note on the plan');
    expect(
      (await scout.call('send_message', { content: 'We begin on Monday.', mentions: ['ada'] })).isError,
    ).toBe(false);
    expect((await scout.call('acknowledge_message')).text).toBe('Done with that message.');
    expect((await scout.call('acknowledge_message')).text).toMatch(/^Error: You hold no message/);
    expect(said((await scout.call('next_message')).text)).toBe(null);

    expect(await messagesOf(one)).toEqual(['What is the plan?', 'We begin on Monday.']);
    expect(await messagesOf(other)).toEqual(['And the figures?', 'They are of 2024.']);
  });

  test('is told at once of what concerns it, also while it has a message in hand', async () => {
    const { server, tokenOf, open, post, ask, idOf } = scene;
    const thread = await open('ada', 'bo', 'scout');
    const scout = plainMcp(server, tokenOf('scout'), thread);
    await scout.open();
    await post(thread, 'ada', 'first');
    const { postMessage } = await ask<{ postMessage: { message: { id: string } } }>(
      'mutation ($input: PostMessageInput!) { postMessage(input: $input) { message { id } } }',
      { input: { threadId: thread, as: idOf('bo'), content: 'second' } },
    );
    expect(said((await scout.call('next_message')).text)).toMatchObject({ content: 'first' });
    await ask('mutation ($input: RetractMessageInput!) { retractMessage(input: $input) { cursor } }', {
      input: { messageId: postMessage.message.id, as: idOf('bo') },
    });
    expect(JSON.parse((await scout.call('next_message')).text)).toMatchObject({
      message: { content: 'first' },
      notices: ['MESSAGE_RETRACTED'],
    });
    // Once it came it is told no more, and nothing else was taken.
    const again = JSON.parse((await scout.call('next_message')).text) as object;
    expect(again).toMatchObject({ message: { content: 'first' } });
    expect(again).not.toHaveProperty('notices');
    expect((await scout.call('acknowledge_message')).text).toBe('Done with that message.');
    expect(said((await scout.call('next_message')).text)).toBe(null);
  });

  test('is given again what it did not finish, and what it retracts stays readable', async () => {
    const { server, tokenOf, open, post } = scene;
    const thread = await open('ada', 'bo', 'scout');
    const scout = plainMcp(server, tokenOf('scout'), thread);
    await scout.open();
    await post(thread, 'ada', 'first');
    await post(thread, 'bo', 'second');
    expect(JSON.parse((await scout.call('peek_pending')).text)).toMatchObject({
      count: 2,
      messages: [{ content: 'first' }, { content: 'second' }],
    });
    expect(said((await scout.call('next_message')).text)).toMatchObject({ content: 'first' });
    expect(said((await scout.call('next_message')).text)).toMatchObject({ content: 'first' });
    const { text } = await scout.call('send_message', { content: 'wrong', acknowledge: true });
    const id = /event_\w+/.exec(text)?.[0];
    expect(await scout.call('message_retract', { message_id: id, reason: 'a slip' })).toEqual({
      text: 'Message taken back.',
      isError: false,
    });
    const page = JSON.parse((await scout.call('read_messages', { limit: 1 })).text);
    expect(page).toMatchObject({ messages: [{ content: 'wrong', retracted: true }] });
    expect(page.next_cursor).not.toBe(null);
    const { messages } = JSON.parse((await scout.call('peek_pending')).text) as {
      messages: { id: string }[];
    };
    expect((await scout.call('acknowledge_message', { message_id: messages[0]?.id })).isError).toBe(false);
    expect(JSON.parse((await scout.call('peek_pending')).text)).toEqual({
      count: 0,
      messages: [],
      next_cursor: null,
    });
    // What is in another conversation is not there.
    const elsewhere = await open('ada', 'scout');
    const there = plainMcp(server, tokenOf('scout'), elsewhere);
    await there.open();
    expect((await there.call('message_retract', { message_id: id })).text).toBe('Error: Message not found.');
    expect((await there.call('acknowledge_message', { message_id: id })).text).toBe(
      'Error: Message not found.',
    );
    expect((await there.call('send_message', { content: 'x', mentions: ['bo'] })).text).toMatch(
      /^Error: Nobody here has the handle "bo"/,
    );
  });
});

describe('what is long', () => {
  test('is read from a scratchpad as bounded pages, all of it once: 40 entries of 4 KB', async () => {
    const { server, tokenOf, open, ask } = scene;
    const thread = await open('ada', 'bo', 'scout', 'rex');
    const { createScratchpad } = await ask<{ createScratchpad: { scratchpad: { id: string } } }>(
      'mutation ($t: ID!) { createScratchpad(input: { threadId: $t }) { scratchpad { id } } }',
      { t: thread },
    );
    const notes = Array.from({ length: 40 }, (_, index) => `entry ${index + 1} ${'x'.repeat(4_080)}`);
    await ask(
      'mutation ($p: ID!, $c: [String!]!) { appendScratchpadEntries(input: { scratchpadId: $p, contents: $c }) { cursor } }',
      { p: createScratchpad.scratchpad.id, c: notes },
    );
    const scout = plainMcp(server, tokenOf('scout'), thread);
    await scout.open();
    const view = await scout.call('read_scratchpad');
    expect(Buffer.byteLength(view.text)).toBeLessThan(25_000);
    expect(view.text).toContain('are left out)');
    expect(view.text).toContain('[40] entry 40 ');
    const seen: string[] = [];
    let pages = 0;
    for (let uri: string | undefined = 'threadpad://scratchpad'; uri !== undefined; pages += 1) {
      const { result } = await scout.request('resources/read', { uri });
      const { contents } = result as { contents: [{ text: string; _meta?: { 'threadpad/next': string } }] };
      const [page] = contents;
      expect(Buffer.byteLength(JSON.stringify(page.text))).toBeLessThan(ANSWER_BYTES);
      seen.unshift(
        ...[...page.text.matchAll(/\[(\d+)\] entry (\d+) x{4080}/g)].map(([, no, of]) => `${no} ${of}`),
      );
      uri = page._meta?.['threadpad/next'];
    }
    expect(seen).toEqual(notes.map((_, index) => `${index + 1} ${index + 1}`));
    expect(pages).toBeGreaterThan(4);
  });

  test('is read from a conversation as bounded pages, all of it once', async () => {
    const { server, tokenOf, open, post } = scene;
    const thread = await open('ada', 'rex', 'scout');
    for (let index = 0; index < 12; index += 1)
      await post(thread, 'ada', `message ${index} ${'é'.repeat(2_040)}`);
    await post(thread, 'rex', 'y'.repeat(100_000));
    const scout = plainMcp(server, tokenOf('scout'), thread);
    await scout.open();
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const { text } = await scout.call('read_messages', { limit: 50, ...(cursor ? { cursor } : {}) });
      expect(Buffer.byteLength(JSON.stringify(text))).toBeLessThan(ANSWER_BYTES);
      const page = JSON.parse(text) as { messages: { content: string }[]; next_cursor: string | null };
      seen.unshift(...page.messages.map(({ content }) => content.slice(0, 10).trim()));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen).toEqual([...Array.from({ length: 12 }, (_, index) => `message ${index}`), 'y'.repeat(10)]);
    expect((await scout.call('read_messages', { cursor: 'nonsense' })).text).toMatch(/^Error: This cursor/);
  });
});
