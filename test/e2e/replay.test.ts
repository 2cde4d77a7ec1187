import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createApi } from '../../scripts/replay/api.ts';
import { type Following, followThread } from '../../scripts/replay/follow.ts';
import { followPad, type PadFollowing } from '../../scripts/replay/followPad.ts';
import { openThread } from '../../scripts/replay/members.ts';
import { type Operation, readRecording } from '../../scripts/replay/operations.ts';
import { readPad } from '../../scripts/replay/pad.ts';
import { play } from '../../scripts/replay/play.ts';
import { startOf } from '../../scripts/replay/start.ts';
import { readView } from '../../scripts/replay/view.ts';
import { createTenant, startApp } from '../support/app.ts';
import { createRandom } from '../support/random.ts';
import { startTcpProxy } from '../support/tcpProxy.ts';

/** What stands in a thread after the operations: the rule of visibility applied to the file itself. */
interface Expected {
  readonly who: string;
  readonly op: Operation['op'] | 'open';
  readonly text?: string | undefined;
}

/** A thread's whole record, as the file has it: its opening, then every operation, from 1. */
const recordOf = (operations: readonly Operation[]): Expected[] => [
  { who: '', op: 'open' },
  ...operations
    .filter(({ op }) => op === 'message' || op === 'remove' || op === 'readd')
    .map((operation) => ({
      who: operation.who,
      op: operation.op,
      text: operation.op === 'message' ? operation.text : undefined,
    })),
];

/** The positions that one of them may see: while it is there, and its own comings and goings. */
const seenBy = (handle: string, record: readonly Expected[]): number[] => {
  const seen: number[] = [];
  let isThere = true;
  record.forEach(({ who, op }, index) => {
    const isOwn = who === handle && (op === 'remove' || op === 'readd');
    if (isThere || isOwn) seen.push(index + 1);
    if (isOwn) isThere = op === 'readd';
  });
  return seen;
};

/** What one of them may read of the scratchpad: the entries from while it was there, and the body if it is there still. */
const padSeenBy = (handle: string, operations: readonly Operation[]) => {
  const entries: string[] = [];
  let text = '';
  let isThere = true;
  for (const operation of operations) {
    const isOwn = operation.who === handle;
    if (operation.op === 'remove' && isOwn) isThere = false;
    if (operation.op === 'readd' && isOwn) isThere = true;
    if (operation.op === 'entry' && isThere) entries.push(operation.text);
    if (operation.op === 'content') text = operation.text;
  }
  return { entries, text: isThere ? text : null };
};

/** Connections are opened in groups: a server bounds how many may be on their way to telling who they are. */
const GROUP = 50;

const replayWithFollowers = async (file: string, cutEvery: number) => {
  const recording = readRecording(await readFile(file, 'utf8'));
  const record = recordOf(recording.operations);
  const expected = new Map(
    recording.participants.map(({ handle }) => [handle, seenBy(handle, record)] as const),
  );
  await using server = await startApp();
  await using proxy = await startTcpProxy(() => ({
    host: '127.0.0.1',
    port: Number(new URL(server.url).port),
  }));
  const { apiKey } = await createTenant(server, {});
  const api = createApi(server.url);
  const opened = await openThread({ api, apiKey, participants: recording.participants, prefix: '' });
  const after = await startOf(api, apiKey, opened.threadId);
  const following = new Map<string, Following>();
  const followingPad = new Map<string, PadFollowing>();
  const members = [...opened.members.values()];
  for (let from = 0; from < members.length; from += GROUP) {
    const group = members.slice(from, from + GROUP).map((member) => {
      followingPad.set(
        member.handle,
        followPad({
          socketUrl: `ws://127.0.0.1:${proxy.port}/graphql`,
          scratchpadId: opened.scratchpadId,
          member,
          after: opened.padStart,
        }),
      );
      const one = followThread({
        socketUrl: `ws://127.0.0.1:${proxy.port}/graphql`,
        threadId: opened.threadId,
        member,
        after,
      });
      following.set(member.handle, one);
      return one.received(1);
    });
    await Promise.all(group);
  }
  let cuts = 0;
  const random = createRandom('Cuts of followers');
  try {
    await play({
      ...opened,
      api,
      apiKey,
      operations: recording.operations,
      speed: null,
      onDone: (done) => {
        if (done % cutEvery !== 0) return;
        cuts += 1;
        const chosen = random();
        proxy.cut((index, count) => index === Math.floor(chosen * count));
      },
    });
    for (const [handle, one] of following) await one.received(expected.get(handle)?.length ?? 0);

    for (const [handle, one] of following) {
      expect(one.problem(), handle).toBeUndefined();
      expect(one.seqs, `${handle}, live`).toEqual(expected.get(handle));
    }
    for (const { handle, token } of members) {
      const expectedPad = padSeenBy(handle, recording.operations);
      const pad = await readPad(api, token, opened.scratchpadId, 7);
      expect(
        pad.entries.map(({ content }) => content),
        `${handle}, entries`,
      ).toEqual(expectedPad.entries);
      expect(pad.text, `${handle}, body`).toBe(expectedPad.text);
      const live = followingPad.get(handle);
      // The body that whoever is away had last is its own affair.
      await live?.received(expectedPad.entries.length, expectedPad.text ?? live.text());
      expect(live?.problem(), handle).toBeUndefined();
      expect(
        live?.entries.map(({ content }) => content),
        `${handle}, entries live`,
      ).toEqual(expectedPad.entries);
      if (expectedPad.text !== null) expect(live?.text(), `${handle}, body live`).toBe(expectedPad.text);
    }
    for (const { handle, token, id } of members) {
      const { events } = await readView(api, token, opened.threadId, 50);
      expect(
        events.map(({ seq }) => seq),
        `${handle}, from history`,
      ).toEqual(expected.get(handle));
      for (const { seq, content, senderId, type, participantId } of events) {
        const at = record[seq - 1];
        const isOwn = at?.who === handle;
        if (type === 'Message') {
          expect(content).toBe(at?.text);
          expect(senderId === id).toBe(isOwn);
        }
        if (type === 'ParticipantStateChanged') expect(participantId === id).toBe(isOwn);
      }
    }
    const retries = [...following.values(), ...followingPad.values()].reduce(
      (sum, one) => sum + one.retries(),
      0,
    );
    return { record: record.length, followers: following.size, cuts, retries };
  } finally {
    await Promise.all([...following.values(), ...followingPad.values()].map((one) => one.stop()));
  }
};

/** From Who&When (Zhang, Yin et al., 2025), MIT, © 2025 Ming Yin; shortened and changed: some come and go. */
const TEAM = [
  '{"op":"open","participants":[{"handle":"requester","kind":"HUMAN"},{"handle":"orchestrator","kind":"AGENT"},{"handle":"websurfer","kind":"AGENT"}]}',
  '{"op":"message","who":"requester","text":"What word was quoted from two different authors?\\n"}',
  '{"op":"content","who":"orchestrator","text":"Initial plan:\\n\\nWe are working to address the following user request"}',
  ...Array.from({ length: 12 }, (_, index) => [
    `{"op":"entry","who":"orchestrator","text":"Next speaker WebSurfer (${index})"}`,
    `{"op":"${index % 2 === 0 ? 'remove' : 'readd'}","who":"requester"}`,
    `{"op":"entry","who":"websurfer","text":"I clicked ${index} \\u2192 «Fafnir»\\u2028📝"}`,
    `{"op":"content","who":"orchestrator","text":"Ledger ${index}\\n${'fact '.repeat(500 * index)}"}`,
    `{"op":"message","who":"websurfer","text":"Done with ${index}"}`,
  ]).flat(),
].join('\n');

describe('a replayed team', () => {
  test('has its scratchpad live and to read exactly as each was there, text byte for byte', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tp-team-'));
    const file = join(folder, 'team.jsonl');
    await writeFile(file, TEAM);
    const { cuts } = await replayWithFollowers(file, 5);
    expect(cuts).toBeGreaterThan(10);
    await rm(folder, { recursive: true });
  });
});

describe('a replayed channel', () => {
  test('arrives live and stands in history exactly as each was there', { timeout: 300_000 }, async () => {
    const { cuts, retries } = await replayWithFollowers('examples/channel-excerpt.jsonl', 5);
    expect(cuts).toBeGreaterThan(20);
    expect(retries).toBeGreaterThan(0);
  });

  const whole = process.env.REPLAY_FILE;
  if (whole !== undefined && whole !== '')
    test(`arrives live and stands in history: ${whole}`, { timeout: 1_800_000 }, async () => {
      console.log(await replayWithFollowers(whole, 5));
    });
});

describe('a file of operations', () => {
  const open = '{"op":"open","participants":[{"handle":"a","kind":"HUMAN"},{"handle":"b","kind":"AGENT"}]}';
  test.each([
    ['', 'Line 1: the first operation must be "open".'],
    ['{"op":"message","who":"a","text":"x"}', 'Line 1: the first operation must be "open".'],
    [`${open}\n\nnot json`, 'Line 3: this is no JSON.'],
    [`${open}\n[]`, 'Line 2: a JSON object with an "op" is meant.'],
    [
      `${open}\n{"op":"shout","who":"a"}`,
      'Line 2: unknown operation "shout"; known are open, message, remove, readd, content, entry.',
    ],
    [`${open}\n{"op":"remove","who":"c"}`, 'Line 2: "c" is not among the participants.'],
    [`${open}\n${open}`, 'Line 2: "open" comes once, at the beginning.'],
  ])('%j is refused in one line', (content, message) => {
    expect(() => readRecording(content)).toThrow(message);
  });

  test('a line with a missing or wrong part says which', () => {
    expect(() => readRecording(`${open}\n{"op":"message","who":"a"}`)).toThrow(/^Line 2: "text" of message/);
  });
});
