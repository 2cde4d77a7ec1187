import { Redis } from 'ioredis';
import { padKeys } from '../../src/scratchpads/keys.ts';
import {
  type Author,
  type Fenced,
  type Grant,
  NOWHERE,
  type Pad,
  type PadPosition,
} from '../../src/scratchpads/pad.ts';
import {
  createPlane,
  type PadRead,
  type PadState,
  type Plane,
  type PlaneOptions,
} from '../../src/scratchpads/plane.ts';
import { newId } from '../../src/shared/ids.ts';
import { openRedis, type RedisConnections } from '../../src/storage/redis.ts';
import { type RedisServer, startRedis } from './redis.ts';

/** The data plane of scratchpads on a Redis of its own, without SQL: the tests say what a grant saw. */
export interface PadWorld extends AsyncDisposable {
  readonly server: RedisServer;
  readonly redis: RedisConnections;
  readonly plane: Plane;
  /** Pads whose row says by now that nothing is left to import. */
  readonly checked: Set<string>;
}

const PATIENCE_MS = 30_000;

export const startPadWorld = async (options: Partial<PlaneOptions> = {}): Promise<PadWorld> => {
  const server = await startRedis();
  const redis = await openRedis(server.url);
  // That a script takes long on a busy machine is no fault of what is tested here.
  if (redis.commands instanceof Redis) redis.commands.options.commandTimeout = PATIENCE_MS;
  const checked = new Set<string>();
  const markLegacyChecked = ({ scratchpadId }: { scratchpadId: string }): Promise<void> => {
    checked.add(scratchpadId);
    return Promise.resolve();
  };
  return {
    server,
    redis,
    plane: createPlane({ redis: redis.commands, markLegacyChecked, ...options }),
    checked,
    [Symbol.asyncDispose]: async () => {
      await redis.close();
      await server.stop();
    },
  };
};

export const newPad = (options: Partial<Pad> = {}): Pad => ({
  ownerId: newId('User'),
  threadId: newId('Thread'),
  scratchpadId: newId('Scratchpad'),
  ttlSeconds: 0,
  ttlVersion: 0,
  legacyPending: false,
  ...options,
});

/** Stands in for a script's journey: `send` is the call, the `call`th of its plane. */
type Tap = (send: () => Promise<unknown>, call: number) => Promise<unknown>;

/** A plane whose driver is tapped: something may happen before or after a script, it may be sent twice or not at all. */
export const tappedPlane = (
  { commands }: Pick<RedisConnections, 'commands'>,
  tap: Tap,
  options: Partial<PlaneOptions> = {},
): Plane => {
  if (!(commands instanceof Redis)) throw new Error('Not a single server.');
  let call = 0;
  const redis = new Proxy(commands, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      if (name !== 'evalsha') return member.bind(target);
      return (...args: unknown[]) => {
        call += 1;
        return tap(async () => Reflect.apply(member, target, args), call);
      };
    },
  });
  return createPlane({ redis, markLegacyChecked: () => Promise.resolve(), ...options });
};

/** By name, as the pad's keys end. */
export const keysOf = (pad: Pad) => {
  const [gone = '', meta = '', content = '', entries = '', idem = '', importing = ''] = padKeys(pad);
  return { gone, meta, content, entries, idem, importing };
};

export const newAuthor = (): Author => ({ authorId: newId('Participant'), runId: null, sourceIds: [] });

export const grantAt = (threadSeq: number, settles: string | null = null): Grant => ({
  threadSeq,
  readAt: performance.now(),
  settles,
});

/** Does as a service does that is asked to authorise again: waits for the thread's row, which nobody holds here. */
export const settled = async <Outcome extends { kind: string }>(
  threadSeq: number,
  write: (grant: Grant) => Promise<Outcome | Fenced>,
): Promise<Outcome> => {
  let outcome = await write(grantAt(threadSeq));
  for (let round = 0; outcome.kind === 'FENCED' && round < 3; round += 1)
    outcome = await write(grantAt(threadSeq, (outcome as Fenced).mark));
  if (outcome.kind === 'FENCED') throw new Error('Fenced three times.');
  return outcome as Outcome;
};

export const done = <Outcome extends { kind: string }>(
  outcome: Outcome,
): Extract<Outcome, { kind: 'DONE' }> => {
  if (outcome.kind !== 'DONE') throw new Error(`Refused: ${JSON.stringify(outcome)}`);
  return outcome as Extract<Outcome, { kind: 'DONE' }>;
};

export const append = async (plane: Plane, pad: Pad, threadSeq: number, ...contents: string[]) =>
  done(await settled(threadSeq, (grant) => plane.append(pad, grant, newAuthor(), { contents, key: null })));

export const setContent = async (plane: Plane, pad: Pad, threadSeq: number, text: string) =>
  done(
    await settled(threadSeq, (grant) =>
      plane.setContent(pad, grant, newAuthor(), { text, expectedEtag: null, key: null }),
    ),
  );

/** Everything there is, as the owner sees it. */
export const look = async (
  plane: Plane,
  pad: Pad,
  wants: PadRead['wants'] = {},
  threadSeq = Number.MAX_SAFE_INTEGER,
): Promise<PadState> => {
  const all = { windows: null, after: null, before: null, limit: 200_000, isBackward: false };
  const [state] = await plane.read([
    { pad, grant: grantAt(threadSeq), wants: { content: true, pages: [all], ...wants } },
  ]);
  if (state?.kind !== 'STATE') throw new Error(`No state: ${JSON.stringify(state)}`);
  return state;
};

export const contentsOf = (state: PadState): string[] =>
  (state.pages[0]?.entries ?? []).map(({ content }) => content);

/** The pad's whole log from a position on, as a reader follows it. */
export const changesAfter = async (plane: Plane, pad: Pad, position: PadPosition = NOWHERE) => {
  const [head] = await plane.heads([pad]);
  if (head === null || head === undefined) return null;
  const changes = [];
  for (let after = position.rev; ; ) {
    const page = await plane.changes(pad, { ...head, rev: after }, 7);
    if (page === null) return null;
    changes.push(...page);
    const last = page.at(-1);
    if (last === undefined) return changes;
    after = last.position;
  }
};
