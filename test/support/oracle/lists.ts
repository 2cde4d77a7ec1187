import { expect } from 'vitest';
import { type Ask, answered } from './callers.ts';
import { countPairs, type Pairs } from './pairs.ts';
import {
  engagementsOf,
  isMember,
  lastEvent,
  lastMessage,
  newest,
  type OracleThread,
  threadsOf,
  unreadCount,
  type Viewer,
} from './rules.ts';
import { EVENT, nullable, whole } from './shown.ts';
import type { World } from './world.ts';

interface ThreadsAnswer {
  readonly threads: {
    readonly nodes: readonly { readonly id: string }[];
    readonly pageInfo: {
      readonly hasNextPage: boolean;
      readonly hasPreviousPage: boolean;
      readonly startCursor: string;
      readonly endCursor: string;
    };
  };
}

interface EngagementsAnswer {
  readonly engagements: {
    readonly nodes: readonly { readonly participants: readonly { readonly handle: string }[] }[];
    readonly pageInfo: unknown;
  };
}

const THREADS = /* GraphQL */ `
  query ($as: ID, $first: Int, $after: Cursor, $last: Int, $before: Cursor, $participantId: ID) {
    threads(as: $as, first: $first, after: $after, last: $last, before: $before, participantId: $participantId) {
      nodes { id }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }`;
const EVEN_WALKS = [
  [1, true],
  [3, false],
] as const;
const ODD_WALKS = [
  [1, false],
  [3, true],
] as const;
const FULL_THREADS = /* GraphQL */ `
  query ($as: ID) {
    threads(as: $as) { nodes { id unreadCount updatedAt lastEvent { ...Event } lastMessage { ...Event } } }
  } ${EVENT}`;
const ENGAGEMENTS = /* GraphQL */ `
  query ($as: ID) {
    engagements(as: $as, first: 200) {
      nodes { threads { id } participants { handle } unreadCount lastEvent { ...Event } lastMessage { ...Event } }
      pageInfo { hasNextPage hasPreviousPage }
    }
  } ${EVENT}`;
const THREAD_OF = 'query ($ids: [ID!]!, $as: ID) { threadOf(participantIds: $ids, as: $as) { id } }';

const listed = (viewer: Viewer, thread: OracleThread) => ({
  id: thread.id,
  unreadCount: unreadCount(viewer, thread),
  updatedAt: lastEvent(viewer, thread).at,
  lastEvent: whole(viewer, lastEvent(viewer, thread)),
  lastMessage: nullable(lastMessage(viewer, thread), (message) => whole(viewer, message)),
});

export const compareLists = async (world: World, ask: Ask, viewer: Viewer, pairs: Pairs): Promise<void> => {
  const all = threadsOf(viewer, world.threads);
  const expected = all.map(({ id }) => ({ id }));
  expect(await ask(viewer, FULL_THREADS)).toEqual({
    data: { threads: { nodes: all.map((thread) => listed(viewer, thread)) } },
  });
  const pair = world.threads.reduce((sum, { events }) => sum + events.length, 0);

  for (const [size, isForward] of all.length % 2 === 0 ? EVEN_WALKS : ODD_WALKS) {
    const found: unknown[] = [];
    let from: string | undefined;
    for (let more = true; more; ) {
      const variables = isForward ? { first: size, after: from } : { last: size, before: from };
      const { nodes, pageInfo } = answered(await ask<ThreadsAnswer>(viewer, THREADS, variables)).threads;
      found.splice(isForward ? found.length : 0, 0, ...nodes);
      expect(isForward ? pageInfo.hasPreviousPage : pageInfo.hasNextPage).toBe(from !== undefined);
      more = isForward ? pageInfo.hasNextPage : pageInfo.hasPreviousPage;
      from = isForward ? pageInfo.endCursor : pageInfo.startCursor;
      expect(found.length).toBeLessThanOrEqual(expected.length);
    }
    expect(found).toEqual(expected);
  }
  const [other] = world.handles;
  const shared = await ask<ThreadsAnswer>(viewer, THREADS, { participantId: world.idOf(other ?? '') });
  const sharedIds = answered(shared).threads.nodes.map(({ id }) => id);
  expect(sharedIds).toEqual(all.filter(({ members }) => members.includes(other ?? '')).map(({ id }) => id));
  countPairs(pairs, 'threads', pair);

  const engagements = engagementsOf(viewer, world.threads).map((group) => {
    const messages = group.map((thread) => lastMessage(viewer, thread)).filter((message) => message !== null);
    const last = messages.sort((a, b) => (a.at < b.at ? -1 : 1)).at(-1);
    return {
      threads: group.map(({ id }) => ({ id })),
      participants: new Set(group.flatMap(({ members }) => members)),
      unreadCount: group.reduce((sum, thread) => sum + unreadCount(viewer, thread), 0),
      lastEvent: whole(viewer, newest(viewer, group)),
      lastMessage: nullable(last, (message) => whole(viewer, message)),
    };
  });
  const { nodes, pageInfo } = answered(await ask<EngagementsAnswer>(viewer, ENGAGEMENTS)).engagements;
  expect(
    nodes.map((node) => ({ ...node, participants: new Set(node.participants.map(({ handle }) => handle)) })),
  ).toEqual(engagements);
  expect(pageInfo).toEqual({ hasNextPage: false, hasPreviousPage: false });
  countPairs(pairs, 'engagements', pair);

  for (const thread of world.threads) {
    const ids = thread.members.map((member) => world.idOf(member)).reverse();
    const answer = await ask(viewer, THREAD_OF, { ids: [...ids, ids[0]] });
    expect(answer).toEqual({ data: { threadOf: isMember(viewer, thread) ? { id: thread.id } : null } });
  }
};
