import type { Server, Tenant } from '../app.ts';
import { createTenant } from '../app.ts';
import { askAs, WAYS } from './callers.ts';
import { type Command, PARTICIPANTS } from './commands.ts';
import {
  compareFollowings,
  createFollowing,
  Following,
  type Place,
  TRANSPORTS,
  type Transport,
} from './live.ts';
import { lacks, type Pairs } from './pairs.ts';
import { endWithEverybody, play } from './play.ts';
import { compareReads } from './reads.ts';
import { isMember, lastEvent, type OracleEventType, type OracleThread, type Viewer } from './rules.ts';
import { World } from './world.ts';

const KINDS = ['HUMAN', 'AGENT', 'UNIT'] as const;
const HANDLES = Object.fromEntries(
  Array.from({ length: PARTICIPANTS }, (_, index) => [`p${index}`, KINDS[index % 3] ?? 'HUMAN'] as const),
);
const agents: ReadonlySet<string> = new Set(
  Object.keys(HANDLES).filter((handle) => HANDLES[handle] !== 'HUMAN'),
);

export interface CheckOptions {
  /** Asked for each operation: which server. */
  readonly server: () => Server;
  /** Asked for each connection of a follower. */
  readonly place: () => Place;
  /** Called between commands: cuts whom it likes. */
  readonly disturb: (round: number) => void;
  readonly pairs: Pairs;
  /** Of each surface. */
  readonly wanted: number;
  readonly round: number;
}

/** Plays one history with everybody listening, and compares every surface for every viewer with the oracle. */
export const checkHistory = async (commands: readonly Command[], options: CheckOptions): Promise<void> => {
  const { server, disturb, pairs, wanted, round } = options;
  const tenant = await createTenant(server(), HANDLES);
  const ids = Object.fromEntries(Object.entries(tenant.participants).map(([handle, { id }]) => [handle, id]));
  let turn = round;
  const ask = askAs(server, tenant, () => WAYS[turn++ % WAYS.length] ?? 'TOKEN');
  const listeners = createListeners(tenant, options, ids);
  const world = new World({ ids, agents, ask, onThread: (thread) => listeners.join(world, thread) });
  try {
    await play(world, commands, () => disturb(turn++));
    await Promise.all(
      world.viewers.map((viewer, index) =>
        compareReads(world, ask, viewer, { pairs, wanted, round: round + index }),
      ),
    );
    if (lacks(pairs, 'resume', wanted)) await listeners.resumeEverywhere(world);
    await endWithEverybody(world);
    await listeners.compare();
  } finally {
    await listeners.dispose();
  }
};

const createListeners = (
  tenant: Tenant,
  { place, round, pairs, wanted }: CheckOptions,
  ids: Readonly<Record<string, string>>,
) => {
  const clients = new Map<string, ReturnType<typeof createFollowing>>();
  const clientOf = (transport: Transport, holder: Viewer) => {
    const name = `${transport} ${holder ?? ''}`;
    const token = holder === null ? tenant.apiKey : (tenant.participants[holder]?.token ?? '');
    const client = clients.get(name) ?? createFollowing(transport, { place, token: () => token });
    clients.set(name, client);
    return client;
  };
  const live = { ws: [] as Following[], sse: [] as Following[] };
  const resumed: Following[] = [];
  let turn = round;

  /** By the viewer's own token, or by the owner's key that looks as the viewer. */
  const follow = (
    transport: Transport,
    viewer: Viewer,
    thread: OracleThread,
    after: { seq: number; cursor: string } | null,
    { types, isBrief = false }: { types?: readonly OracleEventType[] | undefined; isBrief?: boolean } = {},
  ): Following => {
    const byOwner = viewer !== null && turn++ % 3 === 0;
    return new Following(clientOf(transport, byOwner ? null : viewer), {
      viewer,
      thread,
      after,
      types,
      isBrief,
      as: byOwner ? ids[viewer] : undefined,
    });
  };

  return {
    /**
     * Everybody follows a new thread over both transports, while either lacks pairs: from its start, from the present, or
     * some types of it.
     */
    async join(world: World, thread: OracleThread): Promise<void> {
      const start = { seq: 0, cursor: world.cursorAt(thread, 0) };
      const joined = world.viewers.filter((viewer) => isMember(viewer, thread));
      const lacking = TRANSPORTS.filter((transport) => lacks(pairs, `live ${transport}`, wanted));
      const begun: Promise<void>[] = [];
      for (const viewer of joined)
        for (const transport of lacking) {
          const types: OracleEventType[] | undefined = turn % 5 === 0 ? ['MESSAGE', 'RETRACTION'] : undefined;
          // One of three asks for every field of what it is given: which events those are, every one shows.
          const isBrief = turn % 3 !== 0;
          const following = follow(transport, viewer, thread, turn % 2 === 0 ? start : null, {
            types,
            isBrief,
          });
          live[transport].push(following);
          begun.push(following.begun());
        }
      await Promise.all(begun);
    },

    /** From every position of a short thread, from some of a long one; beyond a viewer's end from none. */
    async resumeEverywhere(world: World): Promise<void> {
      const settled: Promise<void>[] = [];
      for (const thread of world.threads)
        for (const viewer of world.viewers) {
          if (!isMember(viewer, thread)) continue;
          const end = lastEvent(viewer, thread).seq;
          const count = end <= 3 ? end + 1 : 2;
          for (let index = 0; index < count; index++) {
            const seq = end <= 3 ? index : (turn * 11 + index * Math.ceil(end / 2)) % (end + 1);
            const after = { seq, cursor: world.cursorAt(thread, seq) };
            const following = follow(TRANSPORTS[turn % 2] ?? 'ws', viewer, thread, after, { isBrief: true });
            resumed.push(following);
            settled.push(following.begun());
          }
          if (end === thread.events.length) continue;
          const beyond = { seq: end + 1, cursor: world.cursorAt(thread, end + 1) };
          settled.push(
            follow(TRANSPORTS[turn % 2] ?? 'ws', viewer, thread, beyond).refused('INVALID_CURSOR'),
          );
        }
      await Promise.all(settled);
    },

    async compare(): Promise<void> {
      for (const transport of TRANSPORTS)
        await compareFollowings(live[transport], `live ${transport}`, pairs);
      await compareFollowings(resumed, 'resume', pairs);
    },

    async dispose(): Promise<void> {
      await Promise.all([...clients.values()].map((client) => client.dispose()));
    },
  };
};
