import fc from 'fast-check';
import { createClient } from 'graphql-ws';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { WebSocket } from 'ws';
import { resumable, steady } from '../../../src/client/index.ts';
import { type Server, startApp, startProcess } from '../../support/app.ts';
import {
  APPEND,
  createPadWorld,
  FOLLOW,
  type PadPayload,
  type PadWorld,
  told,
} from '../../support/padApi.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts';
import { type Act, history } from './history.ts';
import { ClientPad, MEMBERS, PadModel, VIEWERS, type Viewer } from './model.ts';

let here: Awaited<ReturnType<typeof startApp>>;
let there: Server;
let proxies: TcpProxy[];
let redis: Redis;

beforeAll(async () => {
  here = await startApp();
  there = await startProcess(here.stores);
  proxies = await Promise.all(
    [here, there].map(({ url }) =>
      startTcpProxy(() => ({ host: '127.0.0.1', port: Number(new URL(url).port) })),
    ),
  );
  redis = new Redis(inject('redisUrl').replace('unix://', ''));
});
afterAll(async () => {
  redis.disconnect();
  for (const proxy of proxies) await proxy[Symbol.asyncDispose]();
  await there.close();
  await here.close();
});

interface Follower {
  readonly viewer: Viewer;
  readonly words: readonly string[];
  readonly pad: ClientPad;
  until(condition: () => boolean): Promise<void>;
  dispose(): Promise<void>;
}

/** A stock client, taken up again by `resumable` however often its line is cut. */
const follow = (world: PadWorld, viewer: Viewer, port: number, after: string): Follower => {
  const words: string[] = [];
  const pad = new ClientPad();
  const waiting = new Set<() => void>();
  let over: unknown;
  const happened = (): void => {
    for (const look of [...waiting]) look();
  };
  const client = resumable(
    createClient({
      url: `ws://127.0.0.1:${port}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${tokenOf(world, viewer)}` },
      ...steady,
    }),
    { firstWaitMs: 1, longestWaitMs: 20 },
  );
  client.subscribe<PadPayload>(
    { query: FOLLOW, variables: { scratchpadId: world.scratchpadId, after } },
    {
      next({ data, errors }) {
        if (errors) over = errors;
        if (data) {
          const word = told(data);
          words.push(word);
          pad.take(word);
        }
        happened();
      },
      error(reason) {
        over = reason;
        happened();
      },
      complete() {
        over ??= 'complete';
        happened();
      },
    },
  );
  return {
    viewer,
    words,
    pad,
    until: (condition) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (condition()) resolve();
          else if (over !== undefined)
            reject(
              new Error(`${viewer} was told no more: ${JSON.stringify(over)}, after ${words.join(' ')}`),
            );
          else return;
          waiting.delete(look);
        };
        waiting.add(look);
        look();
      }),
    dispose: async () => {
      await client.dispose();
    },
  };
};

const tokenOf = (world: PadWorld, viewer: Viewer): string =>
  viewer === 'owner' ? world.apiKey : world.token(viewer);

const READ =
  'query ($id: ID!) { scratchpad(id: $id) { end content { text } entries(first: 200) { nodes { content } } } }';
interface Read {
  readonly scratchpad: {
    readonly end: string;
    readonly content: { readonly text: string } | null;
    readonly entries: { readonly nodes: readonly { readonly content: string }[] };
  };
}

/** Plays one history, and compares what everybody reads and has been told with the model. */
const play = async (acts: readonly Act[]): Promise<void> => {
  const world = await createPadWorld(here);
  const model = new PadModel();
  const { scratchpad } = await world.must<Read>(world.apiKey, READ, { id: world.scratchpadId });
  const followers = VIEWERS.map((viewer, index) =>
    follow(world, viewer, proxies[index % 2]?.port ?? 0, scratchpad.end),
  );
  let count = 0;
  const next = (): string => {
    count += 1;
    return String(count);
  };

  const append = async (by: Viewer): Promise<string> => {
    const content = next();
    await world.append(tokenOf(world, by), content);
    model.append(content);
    return content;
  };

  const compare = async (): Promise<void> => {
    const marker = await append('owner');
    for (const follower of followers) {
      const { viewer, words, pad } = follower;
      const expected = model.visible(viewer);
      const { scratchpad: read } = await world.must<Read>(tokenOf(world, viewer), READ, {
        id: world.scratchpadId,
      });
      expect(
        read.entries.nodes.map(({ content }) => content),
        `${viewer} reads`,
      ).toEqual(expected);
      expect(read.content?.text ?? null, `${viewer} reads`).toBe(model.isActive(viewer) ? model.text : null);
      if (!model.isActive(viewer)) continue;
      await follower.until(() => words.includes(`+${marker}`));
      // Of the body the newest is told before what came after it.
      const holds = `${viewer} holds, having been told ${words.join(' ')}`;
      expect(pad.entries, holds).toEqual(expected);
      expect(pad.text, holds).toBe(model.text);
    }
  };

  const perform = async (act: Act): Promise<void> => {
    switch (act.kind) {
      case 'append':
      case 'set':
      case 'clear': {
        const token = tokenOf(world, act.by);
        if (!model.isActive(act.by)) {
          const input = { scratchpadId: world.scratchpadId, content: 'refused' };
          const refusal = await world.refused(token, APPEND, { input });
          expect(refusal.code).toBe('PARTICIPANT_NOT_ACTIVE');
        } else if (act.kind === 'append') await append(act.by);
        else if (act.kind === 'set') {
          const text = next();
          await world.setContent(token, text);
          model.set(text);
        } else {
          await world.clear(token, act.what);
          model.clear(act.what);
        }
        break;
      }
      case 'change':
        if (model.isActive(act.who)) {
          await world.setState(act.who, 'REMOVED');
          model.remove(act.who);
        } else {
          await world.setState(act.who, 'ACTIVE');
          model.readd(act.who);
        }
        break;
      case 'post': {
        const as = activeOf(world, model);
        if (as === undefined) break;
        await world.must(
          world.apiKey,
          'mutation ($input: PostMessageInput!) { postMessage(input: $input) { cursor } }',
          { input: { threadId: world.threadId, as, content: 'Meanwhile' } },
        );
        break;
      }
      case 'wipe': {
        const keys = await redis.keys(`scratchpad:${world.tenant.userId}:{${world.scratchpadId}}:*`);
        if (keys.length > 0) await redis.del(...keys);
        model.clear('');
        break;
      }
      case 'cut':
        proxies[act.choice % 2]?.cut((index, open) => index === act.choice % open);
        break;
      case 'compare':
        await compare();
        break;
      default:
        act satisfies never;
    }
  };

  try {
    for (const act of acts) await perform(act);
    for (const member of MEMBERS) if (!model.isActive(member)) await perform({ kind: 'change', who: member });
    await compare();
    await world.must(
      world.apiKey,
      'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedId } }',
      { id: world.scratchpadId },
    );
    for (const { viewer, words, until } of followers) {
      await until(() => words.at(-1) === 'ended SCRATCHPAD_DELETED');
      const entries = words.filter((word) => word.startsWith('+'));
      expect(new Set(entries).size, `${viewer} was told ${entries.join(' ')}`).toBe(entries.length);
      for (const word of words)
        if (/^[+=]./.test(word))
          expect(model.mayHaveRead(viewer, word), `${viewer} was told ${word}`).toBe(true);
    }
  } finally {
    for (const { dispose } of followers) await dispose();
  }
};

const activeOf = (world: PadWorld, model: PadModel): string | undefined => {
  const member = MEMBERS.find((name) => model.isActive(name));
  return member && world.id(member);
};

test('what each reads and is told of a pad is what a plain model says, whatever happens to lines, members and the store', {
  timeout: 300_000,
}, async () => {
  await fc.assert(fc.asyncProperty(history, play), {
    numRuns: Number(process.env.PAD_HISTORIES ?? 25),
    endOnFailure: true,
  });
});
