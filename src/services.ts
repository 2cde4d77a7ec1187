import { setMaxListeners } from 'node:events';
import type { Cluster, Redis } from 'ioredis';
import { requireTenant, viewerOf } from './auth/acting.ts';
import type { Actor } from './auth/actor.ts';
import type { ClosableAuthentication } from './auth/authenticate.ts';
import { createCredentials } from './auth/credentials.ts';
import { visibleParticipants } from './auth/visibility.ts';
import { createFollowInbox } from './inbox/follow.ts';
import { createInbox } from './inbox/inbox.ts';
import { createWaking } from './inbox/waking.ts';
import type { Bus } from './live/bus.ts';
import type { Hub } from './live/hub.ts';
import { createLoaders, createSharedLoaders } from './loaders.ts';
import { createMemories } from './memory/memories.ts';
import { createParticipants } from './participants/participants.ts';
import { createReadParticipants } from './participants/reads.ts';
import { createUsers } from './participants/users.ts';
import { createFollowRun } from './runs/follow.ts';
import { runNoticesOn } from './runs/notices.ts';
import { createRuns } from './runs/runs.ts';
import { createAccess } from './scratchpads/access.ts';
import { createMemberChanges } from './scratchpads/fencing.ts';
import { createFollowScratchpad } from './scratchpads/follow.ts';
import { padSource } from './scratchpads/log.ts';
import { makingSource } from './scratchpads/making.ts';
import { padNoticesOn } from './scratchpads/notices.ts';
import { createReading } from './scratchpads/reading.ts';
import { createPadRows } from './scratchpads/rows.ts';
import { createScratchpads } from './scratchpads/scratchpads.ts';
import { createRequireVisibleSources, createVisibleEntries, visibleMemories } from './scratchpads/sources.ts';
import type { PadUpkeep } from './scratchpads/upkeep.ts';
import { createScratchpadWriting } from './scratchpads/writing.ts';
import { notFound } from './shared/errors.ts';
import { createLanes } from './shared/lanes.ts';
import { log } from './shared/log.ts';
import { createFollowSignals } from './signals/follow.ts';
import { createPresence } from './signals/presence.ts';
import { createSignals } from './signals/signals.ts';
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
import { createSearch } from './timeline/search.ts';
import { createTimeline } from './timeline/timeline.ts';
import { createToolCalls } from './tools/calls.ts';
import { createHands } from './tools/hands.ts';
import { createMcpSessions } from './tools/mcp/sessions.ts';

export interface ServiceOptions {
  readonly database: Database;
  readonly redis: Redis | Cluster;
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
  readonly inboxLeaseSeconds: number;
  readonly inboxDigestSeconds: number;
}

/** Writers of one thread at once: enough to keep its lock busy, too few to take all connections. */
const WRITERS = { width: 4, patienceMs: 5_000 };

export type Services = ReturnType<typeof createServices>;

/** What every door calls: GraphQL, REST, tools and MCP alike. */
export const createServices = ({
  database,
  redis,
  bus,
  hub,
  authentication,
  emptying,
  padUpkeep: { plane, outbox: padOutbox },
  maxAgentHops,
  scratchpadTtlSeconds,
  answerBytes,
  inboxLeaseSeconds,
  inboxDigestSeconds,
}: ServiceOptions) => {
  const announce = announceOn(bus, emptying);
  const padRows = createPadRows({ database, ttlSeconds: scratchpadTtlSeconds });
  const padNotices = padNoticesOn(bus, announce);
  const padAccess = createAccess({ database, ttlSeconds: scratchpadTtlSeconds });
  const padReading = createReading({ plane, access: padAccess });
  // Not all that is read is answered with.
  const presence = createPresence({ redis, database });
  const readParticipants = createReadParticipants(database);
  const loading = {
    database,
    readParticipants,
    padRows,
    padReading,
    presence,
    portionBytes: 2 * answerBytes,
  };
  const visibleEntries = createVisibleEntries({ database, reading: padReading, rows: padRows });
  const requireVisibleSources = createRequireVisibleSources(database, visibleEntries, padRows);
  const lanes = createLanes(WRITERS);
  const changeMember = createMemberChanges({ database, plane, outbox: padOutbox, log });
  const looks = createLooks(database);
  const timelines = hub.logs(timelineSource(database));
  const draining = new AbortController();
  setMaxListeners(0, draining.signal);
  const threadLists = createThreadLists({ database });
  const announceEnded = authentication.announceEnded;
  const requireVisibleParticipants = async (
    actor: Actor,
    ids: readonly string[],
    as: string | null = null,
  ): Promise<void> => {
    const tenant = requireTenant(actor);
    // The owner sees all of its own; that they exist is checked where they are used.
    if (viewerOf(tenant, as) === null) return;
    const count = await database.prisma.participant.count({
      where: { AND: [visibleParticipants(tenant, as), { id: { in: [...ids] } }] },
    });
    if (count < new Set(ids).size) throw notFound('Participant');
  };
  const waking = createWaking({ database, bus, log, leaseSeconds: inboxLeaseSeconds });
  const pulling = {
    database,
    waking,
    watch: authentication.watch,
    announce,
    leaseSeconds: inboxLeaseSeconds,
    answerBytes,
    draining: draining.signal,
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
  const followScratchpad = createFollowScratchpad({
    access: padAccess,
    looks,
    reading: padReading,
    threads: timelines,
    pads: hub.logs(padSource(plane)),
    making: hub.logs(makingSource(database)),
  });
  const scratchpads = createScratchpads({
    database,
    rows: padRows,
    plane,
    notices: padNotices,
    outbox: padOutbox,
    log,
  });
  const runNotices = runNoticesOn(bus);
  const hands = createHands({ database, bus, log });
  return {
    database,
    createLoaders: (actor: Actor) => createLoaders(loading, actor),
    loadersOf: createSharedLoaders(loading),
    authentication,
    credentials: createCredentials({ database, announceEnded }),
    users: createUsers({ database, announceEnded, announceDeleted: emptying.wake }),
    participants,
    threads,
    ownThreads: createOwnThreads({ participants, threads }),
    engagements: createEngagements({ database }),
    threadLists,
    scratchpads,
    runs: createRuns({
      database,
      announce,
      notices: runNotices,
      announceEndings: authentication.announceEndings,
      requireVisibleParticipants,
      ensurePad: scratchpads.ensure,
    }),
    followRun: createFollowRun({ database, bus, draining: draining.signal }),
    /** Told of runs that ended by their deadline, after the commit, and whose inboxes that woke. */
    runsExpired: (runIds: readonly string[], woken: readonly string[]): void => {
      for (const id of runIds) runNotices.changed(id);
      announce.woken(woken);
      authentication.announceEndings();
    },
    padAccess,
    padReading,
    scratchpadWriting: createScratchpadWriting({
      access: padAccess,
      plane,
      requireVisibleSources,
    }),
    timeline: createTimeline({
      database,
      announce,
      maxAgentHops,
      lanes,
      visibleElsewhere: async (ownerId, viewerId, ids, threadId, run) => {
        const found = await Promise.all([
          visibleEntries(ownerId, viewerId, ids, run),
          visibleMemories(database, ownerId, viewerId, ids, threadId, run),
        ]);
        return found.flat();
      },
    }),
    presence,
    signals: createSignals({
      bus,
      looks,
      onSignal: ({ ownerId, threadId }, { kind, participantId }) => {
        if (kind === 'working') presence.works(ownerId, threadId, participantId);
      },
    }),
    followSignals: createFollowSignals({ bus, looks, logs: timelines }),
    search: createSearch({ database }),
    memories: createMemories({ database, lanes, requireVisibleSources }),
    toolCalls: createToolCalls({ database, announce }),
    runNotices,
    redis,
    mcpSessions: createMcpSessions({ redis, bus }),
    hands,
    /** Aborted, with the milliseconds over which readers are told, when this process is about to stop. */
    draining: draining.signal,
    followThreads: createFollowThreads({
      bus,
      looks,
      changedSince: threadLists.changedSince,
      draining: draining.signal,
    }),
    inbox: createInbox(pulling),
    followInbox: createFollowInbox({ ...pulling, bus, followScratchpad, digestSeconds: inboxDigestSeconds }),
    /** Nobody is left who waits for an inbox, or writes; the bus is still there. */
    close: () => {
      announce.close();
      hands.close();
      presence.close();
      return waking.close();
    },
    /** Tells those who follow lists and inboxes that this process is about to stop; the hub tells those who follow logs. */
    drain: (overMs: number) => draining.abort(overMs),
    followTimeline: createFollowTimeline({ looks, logs: timelines }),
    followScratchpad,
  };
};
