import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Server } from './app.ts';
import { createPadWorld, FOLLOW, type PadPayload, type PadWorld, told } from './padApi.ts';
import { type Heard, subscribe } from './subscribe.ts';

/** Where scratchpads are written to: several servers on the same stores. */
export interface Loaded {
  /** One operation, to another server each time; where things break it is sent again until it is answered. */
  readonly graphql: Server['graphql'];
  /** Another one at each call. */
  readonly server: () => Server;
}

export interface PadLoadOptions {
  readonly writers: number;
  /** Entries of one writer, at least: it goes on while there is trouble. */
  readonly each: number;
  /** Appends and bodies carry an idempotency key: without one an operation must not be sent again. */
  readonly hasKeys: boolean;
}

/** A load while it runs. */
export interface PadLoad {
  /** Resolves when so many more entries were acknowledged. */
  more(count: number): Promise<void>;
  /** The followers drop their streams and go on from the last cursor they had, on whichever server. */
  resume(): Promise<void>;
}

const APPEND = `mutation ($input: AppendScratchpadEntryInput!) {
  appendScratchpadEntry(input: $input) { entry { seq } } }`;
const PAGE = `query ($id: ID!, $after: Cursor) { scratchpad(id: $id) { content { text version }
  entries(first: 200, after: $after) { nodes { seq content } pageInfo { hasNextPage endCursor } } } }`;

interface Read {
  readonly scratchpad: {
    readonly content: { readonly text: string; readonly version: number };
    readonly entries: {
      readonly nodes: readonly { readonly seq: number; readonly content: string }[];
      readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
    };
  };
}

const LAST_TEXT = 'the last body';

/**
 * Writers append to one pad while its body is written and entries are cleared, followers are attached and `trouble`
 * happens. Then: each append has one place, places are contiguous, what was not cleared stands there, each body
 * counted once, and every follower was told all of it, once and in order.
 */
export const loadPad = async (
  loaded: Loaded,
  { writers, each, hasKeys }: PadLoadOptions,
  trouble: (load: PadLoad) => Promise<void> = () => Promise.resolve(),
): Promise<void> => {
  const world = await createPadWorld(loaded);
  const { scratchpadId } = world;
  const members = [world.apiKey, ...(['ada', 'ben', 'cleo'] as const).map((name) => world.token(name))];
  const tokenOf = (turn: number): string => members[turn % members.length] ?? '';
  const followers = members.map((token) => followPad(loaded, token, scratchpadId));
  for (const follower of followers) await follower.begun();

  const least = writers * each;
  const keyed = () => (hasKeys ? { idempotencyKey: randomUUID() } : {});
  const appended = new Map<number, string>();
  const waiting = new Set<() => void>();
  let isTroubled = true;
  let isOver = false;
  const write = async (writer: number): Promise<void> => {
    for (let turn = 0; (turn < each || isTroubled) && !isOver; turn += 1) {
      const content = `${writer}.${turn}`;
      const { data, errors } = await loaded.graphql<{ appendScratchpadEntry: { entry: { seq: number } } }>(
        tokenOf(writer),
        APPEND,
        { input: { scratchpadId, content, ...keyed() } },
      );
      if (errors || !data) throw new Error(JSON.stringify(errors));
      const { seq } = data.appendScratchpadEntry.entry;
      expect(appended.has(seq), `${seq} was given twice`).toBe(false);
      appended.set(seq, content);
      for (const look of [...waiting]) look();
    }
  };
  let bodies = 0;
  const setBody = async (text: string): Promise<void> => {
    bodies += 1;
    await world.setContent(tokenOf(bodies), text, keyed());
  };
  const disturb = async (): Promise<void> => {
    for (let turn = 1; (appended.size < least || isTroubled) && !isOver; turn += 1) {
      await setBody(`body ${turn}`);
      if (turn % 10 === 0 && appended.size < least / 2) await world.clear(world.token('ada'), 'Entries');
    }
  };
  const more = (count: number): Promise<void> => {
    const target = appended.size + count;
    return new Promise((resolve) => {
      const look = (): void => {
        if (appended.size < target) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  };
  const resume = async (): Promise<void> => {
    for (const follower of followers) await follower.resume();
  };
  try {
    const writing = Array.from({ length: writers }, (_, writer) => write(writer));
    const over = trouble({ more, resume }).then(() => {
      isTroubled = false;
    });
    await Promise.all([...writing, disturb(), over]);
    await setBody(LAST_TEXT);
  } finally {
    isOver = true;
  }

  const total = appended.size;
  expect(total).toBeGreaterThanOrEqual(least);
  expect([...appended.keys()].sort((one, other) => one - other)).toEqual(
    Array.from({ length: total }, (_, index) => index + 1),
  );
  expect(new Set(appended.values()).size).toBe(total);
  const { nodes, content: body } = await readAll(world);
  const [{ seq: first } = { seq: 1 }] = nodes;
  expect(nodes).toEqual(
    Array.from({ length: total - first + 1 }, (_, index) => ({
      seq: first + index,
      content: appended.get(first + index),
    })),
  );
  expect(body).toEqual({ text: LAST_TEXT, version: bodies });
  for (const [index, follower] of followers.entries()) {
    const payloads = await follower.until(`=${LAST_TEXT}`);
    expect(payloads.map(told)).not.toContain('reset');
    const seqs = seqsOf(payloads, `follower ${index}`);
    expect(seqs.slice(-nodes.length)).toEqual(nodes.map(({ seq }) => seq));
    for (const { scratchpad } of payloads) {
      const entry = scratchpad.change?.entry;
      if (entry) expect(entry.content).toBe(appended.get(entry.seq));
    }
    await follower.stop();
  }
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
    if (!scratchpad.entries.pageInfo.hasNextPage) return { nodes, content: scratchpad.content };
    after = scratchpad.entries.pageInfo.endCursor;
  }
};

const followPad = ({ server }: Loaded, token: string, scratchpadId: string) => {
  const before: PadPayload[] = [];
  const open = (after?: string): Heard<PadPayload> =>
    subscribe<PadPayload>(server(), token, FOLLOW, { scratchpadId, after });
  let heard = open();
  const begun = () => heard.until((payloads) => payloads.length > 0);
  const stop = () => heard[Symbol.asyncDispose]();
  return {
    begun,
    stop,
    resume: async (): Promise<void> => {
      await stop();
      before.push(...heard.payloads);
      const after = before.at(-1)?.scratchpad.cursor;
      for (;;) {
        heard = open(after);
        if (await begun().then(() => true, isAway)) return;
        await stop();
      }
    },
    /** All payloads, once the last of them is `word`. */
    until: async (word: string): Promise<readonly PadPayload[]> => {
      const rest = await heard.until((payloads) => payloads.slice(-1).map(told).includes(word));
      return [...before, ...rest];
    },
  };
};

/** The server was asked while it had lost its Redis, so false: to be asked again. Throws what is anything else. */
const isAway = (error: unknown): false => {
  if (error instanceof Error && error.message.includes('"UNAVAILABLE"')) return false;
  throw error;
};

/** Every seq that a follower was told, growing; what is skipped is covered by a clear that it was told of. */
const seqsOf = (payloads: readonly PadPayload[], name: string): number[] => {
  const seqs: number[] = [];
  let isUncovered = false;
  let wasCleared = false;
  for (const payload of payloads) {
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
