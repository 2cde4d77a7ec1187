import DataLoader from 'dataloader';
import type { Actor, RunScope } from './auth/actor.ts';
import { atMemory, atPad, atThread, runOf } from './auth/sight.ts';
import {
  bytesOfMemories,
  type MemoryEntry,
  type MemoryQuestion,
  memoryKey,
  readVisibleMemories,
} from './memory/entries.ts';
import type { ReadParticipants } from './participants/reads.ts';
import { type Run, readRunsById } from './runs/rows.ts';
import type { PadAddress } from './scratchpads/keys.ts';
import { createPadLoader, type PadQuestion, type PadReply } from './scratchpads/loading.ts';
import type { Reading } from './scratchpads/reading.ts';
import type { PadRows, Scratchpad } from './scratchpads/rows.ts';
import { createPortions, type Portions } from './shared/portions.ts';
import type { Activity, Presence } from './signals/presence.ts';
import type { Database } from './storage/database.ts';
import type { Participant } from './storage/generated/prisma/client.ts';
import { type Member, readMemberCounts, readMembers } from './threads/members.ts';
import { bytesOfEvents, type TimelineEvent } from './timeline/events.ts';
import { type Look, type LookKey, lookKey, readLooks } from './timeline/look.ts';
import { type Position, readEventsAt, readEventsById, readLastMessages } from './timeline/reads.ts';

/**
 * Batches and remembers for one operation (one mutation field, one event of a subscription) and never longer:
 * what is remembered here includes rights.
 */
export interface Loaders {
  readonly look: DataLoader<LookKey, Look | null, string>;
  /** A look at a scratchpad's thread, for the scratchpad alone; null where the viewer may not know of it. */
  padLook(pad: PadAddress, viewerId: string | null): Promise<Look | null>;
  readonly participant: DataLoader<string, Participant | null>;
  readonly event: DataLoader<string, TimelineEvent | null>;
  readonly eventAt: DataLoader<Position, TimelineEvent | null, string>;
  readonly lastMessage: DataLoader<Look, TimelineEvent | null>;
  readonly members: DataLoader<Look, Member[]>;
  readonly memberCount: DataLoader<string, number>;
  /** By id, whoever may see them: the caller asks `seesRun`. */
  readonly run: DataLoader<string, Run | null>;
  /** By id and by thread, whoever may see them: the caller asks a look. */
  readonly scratchpad: DataLoader<string, Scratchpad | null>;
  readonly scratchpadOf: DataLoader<string, Scratchpad | null>;
  /** Content and entries, through the viewer's windows. */
  readonly padState: DataLoader<PadQuestion, PadReply, string>;
  readonly memory: DataLoader<MemoryQuestion, MemoryEntry | null, string>;
  readonly activity: DataLoader<
    { readonly threadId: string; readonly participantId: string },
    Activity,
    string
  >;
  /** What pages and events are read through. */
  readonly portions: Portions;
}

export interface LoaderOptions {
  readonly database: Database;
  readonly readParticipants: ReadParticipants;
  readonly padRows: PadRows;
  readonly padReading: Reading;
  readonly presence: Pick<Presence, 'activities'>;
  /** Bytes of events that one operation may read. */
  readonly portionBytes: number;
}

/** As many as an answer names at most of one kind: more are read one portion after the other. */
const BATCH = { maxBatchSize: 200 } as const;

export const createLoaders = (options: LoaderOptions, actor: Actor): Loaders => {
  const ownerId = actor.kind === 'ADMIN' ? '' : actor.userId;
  const looks = createLookLoader(options.database, ownerId);
  const others = createOthers(options, ownerId);
  return { ...others, ...createSights(options, { ...others, look: looks }, runOf(actor)) };
};

/** What depends on what confines the caller. */
type Sights = Pick<Loaders, 'look' | 'padLook' | 'padState' | 'memory'>;

const createSights = (
  options: LoaderOptions,
  { look: looks, allMemory }: Pick<Loaders, 'look'> & Pick<Others, 'allMemory'>,
  run: RunScope | null,
): Sights => {
  const padLook: Loaders['padLook'] = async (pad, viewerId) => {
    const sight = atPad(run, pad, viewerId);
    return sight && looks.load(sight);
  };
  return {
    look: run === null ? looks : confined(run, looks),
    padLook,
    padState: createPadLoader(options.padReading, padLook),
    memory: run === null ? allMemory : confinedMemory(run, allMemory),
  };
};

const confinedMemory = (run: RunScope, memories: Loaders['memory']): Loaders['memory'] =>
  new DataLoader(
    (questions) => Promise.all(questions.map((question) => memories.load(atMemory(run, question)))),
    { cacheKeyFn: memoryKey },
  );

const confined = (run: RunScope, looks: Loaders['look']): Loaders['look'] =>
  new DataLoader(
    (keys) =>
      Promise.all(
        keys.map(async (key) => {
          const sight = atThread(run, key);
          return sight && looks.load(sight);
        }),
      ),
    { cacheKeyFn: lookKey },
  );

const createLookLoader = (database: Database, ownerId: string): Loaders['look'] =>
  new DataLoader(
    async (keys) => {
      const answers = await readLooks(
        database,
        keys.map((key) => ({ ...key, ownerId })),
      );
      return answers.map((answer) => answer?.look ?? null);
    },
    { cacheKeyFn: lookKey },
  );

/** `allMemory`: as whoever asks says, whom nothing confines. */
type Others = Omit<Loaders, keyof Sights> & { readonly allMemory: Loaders['memory'] };

const createOthers = (
  { database, padRows, portionBytes, presence, readParticipants }: LoaderOptions,
  ownerId: string,
): Others => {
  const portions = createPortions(portionBytes);
  const events = (read: () => Promise<(TimelineEvent | null)[]>): Promise<(TimelineEvent | null)[]> =>
    portions.take(read, bytesOfEvents);
  return {
    portions,
    participant: new DataLoader((ids) => readParticipants(ownerId, ids)),
    event: new DataLoader((ids) => events(() => readEventsById(database, ownerId, ids)), BATCH),
    eventAt: new DataLoader((positions) => events(() => readEventsAt(database, ownerId, positions)), {
      ...BATCH,
      cacheKeyFn: ({ threadId, seq }) => `${threadId} ${seq}`,
    }),
    lastMessage: new DataLoader((looks) => events(() => readLastMessages(database, looks)), BATCH),
    members: new DataLoader((looks) => readMembers(database, looks)),
    memberCount: new DataLoader((threadIds) => readMemberCounts(database, ownerId, threadIds)),
    run: new DataLoader((ids) => readRunsById(database, ownerId, ids), BATCH),
    activity: new DataLoader((members) => presence.activities(ownerId, members), {
      cacheKeyFn: ({ threadId, participantId }) => `${threadId} ${participantId}`,
    }),
    allMemory: new DataLoader(
      (questions) => portions.take(() => readVisibleMemories(database, ownerId, questions), bytesOfMemories),
      { ...BATCH, cacheKeyFn: memoryKey },
    ),
    scratchpad: new DataLoader(async (ids) => {
      const byId = new Map((await padRows.byId(ownerId, ids, null)).map((pad) => [pad.scratchpadId, pad]));
      return ids.map((id) => byId.get(id) ?? null);
    }),
    scratchpadOf: new DataLoader(async (threadIds) => {
      const pads = await padRows.ofThreads(ownerId, threadIds, null);
      const byThread = new Map(pads.map((pad) => [pad.threadId, pad]));
      return threadIds.map((id) => byThread.get(id) ?? null);
    }),
  };
};

const MOMENT_MS = 50;

interface Moment {
  readonly others: Others;
  readonly looks: Loaders['look'];
  /** Of everybody whom nothing confines. */
  readonly sights: Sights;
  readonly until: number;
}

/**
 * One event (or one change of a scratchpad) is delivered to many followers in the same moment, and most ask the same of
 * it: their executions share what they read, which is all of one tenant. Who asks, and so what confines it, is looked at
 * only where something is asked that depends on it. Whoever comes later reads afresh: nothing here outlives the moment.
 */
export const createSharedLoaders = (
  options: LoaderOptions,
): ((delivered: object, ownerId: string, actor: () => Actor) => Loaders) => {
  const shared = new WeakMap<object, Moment>();
  const momentOf = (delivered: object, ownerId: string): Moment => {
    const now = performance.now();
    const known = shared.get(delivered);
    if (known !== undefined && now < known.until) return known;
    const looks = createLookLoader(options.database, ownerId);
    const others = createOthers(options, ownerId);
    const moment = {
      others,
      looks,
      sights: createSights(options, { ...others, look: looks }, null),
      until: now + MOMENT_MS,
    };
    shared.set(delivered, moment);
    return moment;
  };
  return (delivered, ownerId, actor) => {
    const { others, looks, sights } = momentOf(delivered, ownerId);
    let own: Sights | undefined;
    const ownSights = (): Sights => {
      const run = runOf(actor());
      own ??= run === null ? sights : createSights(options, { ...others, look: looks }, run);
      return own;
    };
    return {
      ...others,
      get look() {
        return ownSights().look;
      },
      get padState() {
        return ownSights().padState;
      },
      get memory() {
        return ownSights().memory;
      },
      padLook: (pad, viewerId) => ownSights().padLook(pad, viewerId),
    };
  };
};
