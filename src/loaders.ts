import DataLoader from 'dataloader';
import { createPadLoader, type PadQuestion, type PadReply } from './scratchpads/loading.ts';
import type { Reading } from './scratchpads/reading.ts';
import type { PadRows, Scratchpad } from './scratchpads/rows.ts';
import { createPortions, type Portions } from './shared/portions.ts';
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
  readonly participant: DataLoader<string, Participant | null>;
  readonly event: DataLoader<string, TimelineEvent | null>;
  readonly eventAt: DataLoader<Position, TimelineEvent | null, string>;
  readonly lastMessage: DataLoader<Look, TimelineEvent | null>;
  readonly members: DataLoader<Look, Member[]>;
  readonly memberCount: DataLoader<string, number>;
  /** By id and by thread, whoever may see them: the caller asks a look. */
  readonly scratchpad: DataLoader<string, Scratchpad | null>;
  readonly scratchpadOf: DataLoader<string, Scratchpad | null>;
  /** Content and entries, through the viewer's windows. */
  readonly padState: DataLoader<PadQuestion, PadReply, string>;
  /** What pages and events are read through. */
  readonly portions: Portions;
}

export interface LoaderOptions {
  readonly database: Database;
  readonly padRows: PadRows;
  readonly padReading: Reading;
  /** Bytes of events that one operation may read. */
  readonly portionBytes: number;
}

/** As many as an answer names at most of one kind: more are read one portion after the other. */
const BATCH = { maxBatchSize: 200 } as const;

export const createLoaders = (options: LoaderOptions, ownerId: string): Loaders => {
  const look = createLookLoader(options.database, ownerId);
  return { ...createOthers(options, ownerId), look, padState: createPadLoader(options.padReading, look) };
};

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

const createOthers = (
  { database, padRows, portionBytes }: LoaderOptions,
  ownerId: string,
): Omit<Loaders, 'look' | 'padState'> => {
  const portions = createPortions(portionBytes);
  const events = (read: () => Promise<(TimelineEvent | null)[]>): Promise<(TimelineEvent | null)[]> =>
    portions.take(read, bytesOfEvents);
  return {
    portions,
    participant: new DataLoader(async (ids) => {
      const rows = await database.prisma.participant.findMany({ where: { ownerId, id: { in: [...ids] } } });
      const byId = new Map(rows.map((row) => [row.id, row]));
      return ids.map((id) => byId.get(id) ?? null);
    }),
    event: new DataLoader((ids) => events(() => readEventsById(database, ownerId, ids)), BATCH),
    eventAt: new DataLoader((positions) => events(() => readEventsAt(database, ownerId, positions)), {
      ...BATCH,
      cacheKeyFn: ({ threadId, seq }) => `${threadId} ${seq}`,
    }),
    lastMessage: new DataLoader((looks) => events(() => readLastMessages(database, looks)), BATCH),
    members: new DataLoader((looks) => readMembers(database, looks)),
    memberCount: new DataLoader((threadIds) => readMemberCounts(database, ownerId, threadIds)),
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

/**
 * One event (or one change of a scratchpad) is delivered to many followers in the same moment, and most ask the same of
 * it: their executions share what they read. Whoever comes later reads afresh: nothing here outlives the moment.
 */
export const createSharedLoaders = (
  options: LoaderOptions,
): ((delivered: object, ownerId: string) => Loaders) => {
  const shared = new WeakMap<object, { readonly loaders: Loaders; readonly until: number }>();
  return (delivered, ownerId) => {
    const now = performance.now();
    const known = shared.get(delivered);
    if (known !== undefined && now < known.until) return known.loaders;
    const loaders = createLoaders(options, ownerId);
    shared.set(delivered, { loaders, until: now + MOMENT_MS });
    return loaders;
  };
};
