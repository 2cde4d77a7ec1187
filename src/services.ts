import { ownParticipant, requireTenant } from './auth/acting.ts';
import type { Actor } from './auth/actor.ts';
import type { ClosableAuthentication } from './auth/authenticate.ts';
import { createCredentials } from './auth/credentials.ts';
import { visibleParticipants } from './auth/visibility.ts';
import type { Bus } from './live/bus.ts';
import type { Hub } from './live/hub.ts';
import { createLoaders, createSharedLoaders } from './loaders.ts';
import { createParticipants } from './participants/participants.ts';
import { createUsers } from './participants/users.ts';
import { createAccess } from './scratchpads/access.ts';
import { createMemberChanges } from './scratchpads/fencing.ts';
import { createFollowScratchpad } from './scratchpads/follow.ts';
import { padSource } from './scratchpads/log.ts';
import { makingSource } from './scratchpads/making.ts';
import { padNoticesOn } from './scratchpads/notices.ts';
import { createReading } from './scratchpads/reading.ts';
import { createPadRows } from './scratchpads/rows.ts';
import { createScratchpads } from './scratchpads/scratchpads.ts';
import { createRequireVisibleSources, createVisibleEntries } from './scratchpads/sources.ts';
import type { PadUpkeep } from './scratchpads/upkeep.ts';
import { createScratchpadWriting } from './scratchpads/writing.ts';
import { notFound } from './shared/errors.ts';
import { createLanes } from './shared/lanes.ts';
import { log } from './shared/log.ts';
import type { Database } from './storage/database.ts';
import type { Emptying } from './threads/emptying.ts';
import { createEngagements } from './threads/engagements.ts';
import { createFollowThreads } from './threads/follow.ts';
import { createThreadLists } from './threads/lists.ts';
import { createOwnThreads } from './threads/ownThreads.ts';
import { createThreads } from './threads/threads.ts';
import { announceOn } from './timeline/announce.ts';
import { createFollowTimeline } from './timeline/follow.ts';
import { timelineSource } from './timeline/live.ts';
import { createLooks } from './timeline/looks.ts';
import { createTimeline } from './timeline/timeline.ts';

export interface ServiceOptions {
  readonly database: Database;
  readonly bus: Bus;
  readonly hub: Hub;
  readonly authentication: ClosableAuthentication;
  readonly emptying: Emptying;
  readonly padUpkeep: Pick<PadUpkeep, 'plane' | 'outbox'>;
  /** 0: no limit. */
  readonly maxAgentHops: number;
  /** Of scratchpads that have none of their own. */
  readonly scratchpadTtlSeconds: number;
  /** Of one answer, at most. */
  readonly answerBytes: number;
}

/** Writers of one thread at once: enough to keep its lock busy, too few to take all connections. */
const WRITERS = { width: 4, patienceMs: 5_000 };

export type Services = ReturnType<typeof createServices>;

/** What every door calls: GraphQL, REST, tools and MCP alike. */
export const createServices = ({
  database,
  bus,
  hub,
  authentication,
  emptying,
  padUpkeep: { plane, outbox: padOutbox },
  maxAgentHops,
  scratchpadTtlSeconds,
  answerBytes,
}: ServiceOptions) => {
  const announce = announceOn(bus, emptying);
  const padRows = createPadRows({ database, ttlSeconds: scratchpadTtlSeconds });
  const padNotices = padNoticesOn(bus, announce);
  const padAccess = createAccess({ database, ttlSeconds: scratchpadTtlSeconds });
  const padReading = createReading({ plane, access: padAccess });
  // Not all that is read is answered with.
  const loading = { database, padRows, padReading, portionBytes: 2 * answerBytes };
  const visibleEntries = createVisibleEntries({ database, reading: padReading, rows: padRows });
  const changeMember = createMemberChanges({ database, plane, outbox: padOutbox, log });
  const looks = createLooks(database);
  const timelines = hub.logs(timelineSource(database));
  const draining = new AbortController();
  const threadLists = createThreadLists({ database });
  const announceEnded = authentication.announceEnded;
  const requireVisibleParticipants = async (actor: Actor, ids: readonly string[]): Promise<void> => {
    const tenant = requireTenant(actor);
    // The owner sees all of its own; that they exist is checked where they are used.
    if (ownParticipant(tenant) === null) return;
    const count = await database.prisma.participant.count({
      where: { AND: [visibleParticipants(tenant), { id: { in: [...ids] } }] },
    });
    if (count < new Set(ids).size) throw notFound('Participant');
  };
  const participants = createParticipants({ database });
  const threads = createThreads({
    database,
    announce,
    changeMember,
    padDeleted: (scratchpadId) => {
      padOutbox.wake();
      padNotices.deletedWithThread(scratchpadId);
    },
    requireVisibleParticipants,
  });
  return {
    database,
    createLoaders: (actor: Actor) => createLoaders(loading, actor.kind === 'ADMIN' ? '' : actor.userId),
    loadersOf: createSharedLoaders(loading),
    authentication,
    credentials: createCredentials({ database, announceEnded }),
    users: createUsers({ database, announceEnded, announceDeleted: emptying.wake }),
    participants,
    threads,
    ownThreads: createOwnThreads({ participants, threads }),
    engagements: createEngagements({ database }),
    threadLists,
    scratchpads: createScratchpads({
      database,
      rows: padRows,
      plane,
      notices: padNotices,
      outbox: padOutbox,
      log,
    }),
    padAccess,
    padReading,
    scratchpadWriting: createScratchpadWriting({
      access: padAccess,
      plane,
      requireVisibleSources: createRequireVisibleSources(database, visibleEntries),
    }),
    timeline: createTimeline({
      database,
      announce,
      maxAgentHops,
      lanes: createLanes(WRITERS),
      visibleEntries,
    }),
    followThreads: createFollowThreads({
      bus,
      looks,
      changedSince: threadLists.changedSince,
      draining: draining.signal,
    }),
    /** Tells those who follow lists that this process is about to stop; the hub tells those who follow logs. */
    drain: (overMs: number) => draining.abort(overMs),
    followTimeline: createFollowTimeline({ looks, logs: timelines }),
    followScratchpad: createFollowScratchpad({
      access: padAccess,
      looks,
      reading: padReading,
      threads: timelines,
      pads: hub.logs(padSource(plane)),
      making: hub.logs(makingSource(database)),
    }),
  };
};
