import { expect } from 'vitest';
import type { Ask } from './callers.ts';
import { countPairs, type Pairs } from './pairs.ts';
import {
  isMember,
  lastEvent,
  lastMessage,
  type OracleThread,
  since,
  stateNow,
  unreadCount,
  type Viewer,
  windows,
} from './rules.ts';
import { connection, EVENT, named, nullable, whole } from './shown.ts';
import type { World } from './world.ts';

const THREAD = /* GraphQL */ `
  query ($id: ID!, $as: ID) {
    thread(id: $id, as: $as) {
      id updatedAt viewerState unreadCount acknowledged participantCount
      participants { participant { handle } state since }
      lastEvent { ...Event }
      lastMessage { ...Event }
      timeline {
        viewer { handle } end windows { from until after end }
        events(first: 200) { edges { cursor node { ...Event } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }
      }
    }
  } ${EVENT}`;

const threadAnswer = (world: World, viewer: Viewer, thread: OracleThread): unknown => {
  if (!isMember(viewer, thread)) return null;
  const last = lastEvent(viewer, thread);
  const read = viewer === null ? 0 : (thread.acknowledged.get(viewer) ?? 0);
  const byId = [...thread.members].sort((a, b) => (world.idOf(a) < world.idOf(b) ? -1 : 1));
  const at = (seq: number): string => thread.events[seq - 1]?.at ?? '';
  return {
    id: thread.id,
    updatedAt: last.at,
    viewerState: viewer === null ? null : stateNow(thread, viewer),
    unreadCount: unreadCount(viewer, thread),
    acknowledged: read === 0 ? null : world.cursorAt(thread, read),
    participantCount: thread.members.length,
    participants: byId.map((member) => ({
      participant: named(member),
      state: stateNow(thread, member),
      since: since(viewer, thread, member),
    })),
    lastEvent: whole(viewer, last),
    lastMessage: nullable(lastMessage(viewer, thread), (message) => whole(viewer, message)),
    timeline: {
      viewer: named(viewer),
      end: last.cursor,
      windows: windows(viewer, thread).map(({ after, end }) => ({
        from: at(Math.max(after, 1)),
        until: nullable(end, at),
        after: world.cursorAt(thread, after),
        end: nullable(end, (seq) => world.cursorAt(thread, seq)),
      })),
      events: connection(viewer, thread, { first: 200 }, whole),
    },
  };
};

export const compareThreads = async (world: World, ask: Ask, viewer: Viewer, pairs: Pairs): Promise<void> => {
  for (const thread of world.threads) {
    const answer = await ask(viewer, THREAD, { id: thread.id });
    expect(answer.errors).toBeUndefined();
    expect(answer).toEqual({ data: { thread: threadAnswer(world, viewer, thread) } });
    countPairs(pairs, 'thread', thread.events.length);
  }
};
