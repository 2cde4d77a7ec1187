import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Server, startApp, startProcess } from '../support/app.ts';
import { createPadWorld, FOLLOW, type PadPayload, type PadWorld, told } from '../support/padApi.ts';
import { type Heard, subscribe } from '../support/subscribe.ts';

const WRITERS = 64;
const EACH = 500;

let here: Awaited<ReturnType<typeof startApp>>;
let servers: Server[];
beforeAll(async () => {
  here = await startApp();
  servers = await Promise.all([startProcess(here.stores), startProcess(here.stores)]);
});
afterAll(async () => {
  for (const server of servers) await server.close();
  await here.close();
});

const serverFor = (turn: number): Server => servers[turn % servers.length] ?? here;

const APPEND = `mutation ($input: AppendScratchpadEntryInput!) {
  appendScratchpadEntry(input: $input) { entry { seq } } }`;
const PAGE = `query ($id: ID!, $after: Cursor) { scratchpad(id: $id) {
  content { text } entries(first: 200, after: $after) { nodes { seq content } pageInfo { hasNextPage endCursor } } } }`;

interface Read {
  readonly scratchpad: {
    readonly content: { readonly text: string };
    readonly entries: {
      readonly nodes: readonly { readonly seq: number; readonly content: string }[];
      readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
    };
  };
}

/** Every seq that a follower was told, growing; what is skipped is covered by a clear that it was told of afterwards. */
const seqsOf = (heard: Heard<PadPayload>, name: string): number[] => {
  const seqs: number[] = [];
  let isUncovered = false;
  let wasCleared = false;
  for (const payload of heard.payloads) {
    if (told(payload) === '-entries') {
      isUncovered = false;
      wasCleared = true;
    }
    const seq = payload.scratchpad.change?.entry?.seq;
    if (seq === undefined) continue;
    const last = seqs.at(-1) ?? 0;
    if (seq <= last) throw new Error(`${name} was told ${seq} after ${last}.`);
    if (seq !== last + 1 && !wasCleared) isUncovered = true;
    wasCleared = false;
    seqs.push(seq);
  }
  if (isUncovered) throw new Error(`${name} lacks entries that no clear removed.`);
  return seqs;
};

const readAll = async (world: PadWorld) => {
  const nodes: { seq: number; content: string }[] = [];
  let after: string | null = null;
  for (;;) {
    const { scratchpad }: Read = await world.must<Read>(world.token('ben'), PAGE, {
      id: world.scratchpadId,
      after,
    });
    nodes.push(...scratchpad.entries.nodes);
    if (!scratchpad.entries.pageInfo.hasNextPage) return { nodes, text: scratchpad.content.text };
    after = scratchpad.entries.pageInfo.endCursor;
  }
};

test('64 writers on two processes lose no entry while the body is written and entries are cleared, and every follower has all', {
  timeout: 600_000,
}, async () => {
  const world = await createPadWorld(here);
  const { scratchpadId } = world;
  const readers = [world.apiKey, ...(['ada', 'ben', 'cleo'] as const).map((name) => world.token(name))];
  const followers = readers.map((token, turn) =>
    subscribe<PadPayload>(serverFor(turn), token, FOLLOW, { scratchpadId }),
  );
  for (const heard of followers) await heard.until((payloads) => payloads.length > 0);

  const appended = new Map<number, string>();
  let done = 0;
  let lastText = '';
  const write = async (writer: number): Promise<void> => {
    const token = readers[writer % readers.length] ?? '';
    for (let turn = 0; turn < EACH; turn += 1) {
      const content = `${writer}.${turn}`;
      const { data, errors } = await serverFor(writer).graphql<{
        appendScratchpadEntry: { entry: { seq: number } };
      }>(token, APPEND, { input: { scratchpadId, content } });
      if (errors || !data) throw new Error(JSON.stringify(errors));
      const { seq } = data.appendScratchpadEntry.entry;
      expect(appended.has(seq), `${seq} was given twice`).toBe(false);
      appended.set(seq, content);
      done += 1;
    }
  };
  const disturb = async (): Promise<void> => {
    for (let turn = 1; done < WRITERS * EACH; turn += 1) {
      lastText = `body ${turn}`;
      await world.setContent(readers[turn % readers.length] ?? '', lastText);
      if (turn % 10 === 0 && done < (WRITERS * EACH) / 2) await world.clear(world.token('ada'), 'Entries');
    }
  };
  await Promise.all([...Array.from({ length: WRITERS }, (_, writer) => write(writer)), disturb()]);

  const total = WRITERS * EACH;
  expect([...appended.keys()].sort((one, other) => one - other)).toEqual(
    Array.from({ length: total }, (_, index) => index + 1),
  );
  const { nodes, text } = await readAll(world);
  const [{ seq: first } = { seq: 1 }] = nodes;
  expect(nodes.length).toBe(total - first + 1);
  for (const [index, { seq, content }] of nodes.entries()) {
    expect(seq).toBe(first + index);
    expect(content).toBe(appended.get(seq));
  }
  expect(text).toBe(lastText);
  for (const [index, heard] of followers.entries()) {
    await heard.until((payloads) => {
      const words = payloads.slice(-400).map(told);
      return (
        words.includes(`=${lastText}`) &&
        payloads.some(({ scratchpad }) => scratchpad.change?.entry?.seq === total)
      );
    });
    const seqs = seqsOf(heard, `follower ${index}`);
    expect(seqs.slice(-nodes.length)).toEqual(nodes.map(({ seq }) => seq));
    for (const { scratchpad } of heard.payloads) {
      const entry = scratchpad.change?.entry;
      if (entry) expect(entry.content).toBe(appended.get(entry.seq));
    }
    await heard[Symbol.asyncDispose]();
  }
});
