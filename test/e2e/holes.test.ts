import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createTenant, type Server, startProcess, type Tenant } from '../support/app.ts';
import { isUpkeep, type Proxied, startBehindProxy } from '../support/behindProxy.ts';
import { deferred } from '../support/heard.ts';
import { type Ask, answered, askAs } from '../support/oracle/callers.ts';
import type { Command } from '../support/oracle/commands.ts';
import { createFollowing, Following, TRANSPORTS } from '../support/oracle/live.ts';
import { play } from '../support/oracle/play.ts';
import { lastEvent, lastMessage, stateNow } from '../support/oracle/rules.ts';
import { World } from '../support/oracle/world.ts';

// An operation is several statements. Here one of them is held while, on another server, its viewer is removed or
// brought back and others go on talking: the answer must be that of one moment, before or after, never a mixture.

const VIEWER = 'p1';
const plain = {
  mention: null,
  source: null,
  originating: null,
  acknowledge: null,
  condition: null,
  repeat: false,
  wild: false,
};
const says = (by: number): Command => ({ act: 'post', thread: 0, by, ...plain });
const removes = (member: number): Command => ({ act: 'remove', thread: 0, member, wild: false });
const readds = (member: number): Command => ({ act: 'readd', thread: 0, member, wild: false });

let proxied: Proxied;
let other: Server;
let tenant: Tenant;
let world: World;
/** Through the server whose statements are held. */
let ask: Ask;

beforeAll(async () => {
  proxied = await startBehindProxy({ MAX_QUERY_COST: '1000000' });
  other = await startProcess({ databaseUrl: proxied.testDatabase.url, redisUrl: inject('redisUrl') });
  tenant = await createTenant(other, { p0: 'HUMAN', p1: 'HUMAN', p2: 'AGENT' });
  const ids = Object.fromEntries(Object.entries(tenant.participants).map(([handle, { id }]) => [handle, id]));
  const way = () => 'TOKEN' as const;
  ask = askAs(() => proxied.server, tenant, way);
  world = new World({ ids, agents: new Set(['p2']), ask: askAs(() => other, tenant, way) });
  await play(world, [says(0), says(1), says(2), removes(1), says(0), readds(0), says(0), says(2)]);
});
afterAll(async () => {
  await other.close();
  await proxied[Symbol.asyncDispose]();
});

const thread = () => {
  const [first] = world.threads;
  if (first === undefined) throw new Error('There is no thread.');
  return first;
};

/** Everything of a thread but what is live for members at all times. */
const VIEW = /* GraphQL */ `
  fragment View on Thread {
    updatedAt unreadCount acknowledged viewerState
    lastEvent { ...Said } lastMessage { ...Said }
    timeline {
      end windows { from until after end }
      newest: events(last: 3) { nodes { ...Said } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }
      events(first: 200) { nodes { ...Said } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }
      changes: events(first: 200, types: [PARTICIPANT_STATE_CHANGED, RETRACTION]) { nodes { ...Said } pageInfo { hasNextPage hasPreviousPage } }
    }
  }
  fragment Said on TimelineEvent {
    __typename id seq at cursor
    ... on Message { content sender { handle } isRetracted retraction { id reason } }
    ... on Retraction { reason message { id content } }
    ... on ParticipantStateChanged { participant { handle } to }
  }`;

const OPERATIONS: Readonly<Record<string, { query: string; variables: () => Record<string, unknown> }>> = {
  thread: {
    query: `query ($id: ID!) { thread(id: $id) { ...View } } ${VIEW}`,
    variables: () => ({ id: thread().id }),
  },
  threads: { query: `{ threads(first: 5) { nodes { ...View } } } ${VIEW}`, variables: () => ({}) },
  engagements: {
    query: `{ engagements(first: 5) { nodes { unreadCount lastEvent { ...Said } lastMessage { ...Said } threads { ...View } } } } ${VIEW}`,
    variables: () => ({}),
  },
  nodes: {
    query: `query ($ids: [ID!]!) { nodes(ids: $ids) { ...Said ...View ... on TimelineEvent { thread { ...View } } } } ${VIEW}`,
    variables: () => ({
      ids: [
        thread().id,
        ...thread()
          .events.filter(({ type }) => type === 'MESSAGE')
          .slice(-4)
          .map(({ id }) => id),
      ],
    }),
  },
  event: {
    query: `query ($id: ID!, $event: ID!) { thread(id: $id) { timeline { event(id: $event) { ...Said thread { ...View } } } } } ${VIEW}`,
    variables: () => ({
      id: thread().id,
      event: lastMessage(VIEWER, thread())?.id,
    }),
  },
};

/** Holds the `index`th statement of what begins now; `held` resolves when it has come so far. */
const holdStatement = (index: number) => {
  const held = deferred();
  const released = deferred();
  let count = 0;
  let statement = '';
  proxied.proxy.before = (next) => {
    const isHeld = !isUpkeep(next) && ++count === index;
    if (isHeld) {
      statement = next;
      held.resolve();
    }
    return isHeld ? released.promise : undefined;
  };
  const release = (): void => {
    proxied.proxy.before = null;
    released.resolve();
  };
  return { held: held.promise, release, statement: () => statement };
};

/** p1 goes, and others talk, take back and change behind its back; or it comes back to all that. */
const interfere = async (): Promise<void> => {
  const isAway = stateNow(thread(), VIEWER) === 'REMOVED';
  const last = thread().events.findLast((event) => event.type === 'MESSAGE');
  const retracted = world.events
    .filter(({ type }) => type === 'MESSAGE')
    .indexOf(last ?? (thread().events[0] as never));
  await play(world, [
    says(0),
    isAway ? readds(0) : removes(1),
    says(2),
    { act: 'retract', target: retracted, by: 0, wild: false },
    removes(isAway ? 2 : 1),
    says(0),
    readds(isAway ? 0 : 1),
  ]);
};

describe.each(Object.keys(OPERATIONS))('the answer of %s is that of one moment', (name) => {
  test('whichever of its statements is held', async () => {
    const { query, variables } = OPERATIONS[name] ?? { query: '', variables: () => ({}) };
    let held = 0;
    for (let index = 1; ; index++) {
      const asked = variables();
      const read = async () => answered(await ask(VIEWER, query, asked));
      const before = await read();
      const hold = holdStatement(index);
      const answer = read();
      if (!(await Promise.race([hold.held.then(() => true), answer.then(() => false)]))) {
        hold.release();
        break;
      }
      held++;
      const first = await Promise.race([
        interfere().then(() => 'all that went on'),
        answer.then(() => 'the answer'),
      ]);
      hold.release();
      expect(first, `held before statement ${index}, ${hold.statement()}`).toBe('all that went on');
      const between = await answer;
      const after = await read();
      expect(after).not.toEqual(before);
      const isOneMoment = [before, after].some(
        (moment) => JSON.stringify(moment) === JSON.stringify(between),
      );
      if (!isOneMoment)
        expect(between, `held before statement ${index}, ${hold.statement()}`).toEqual(before);
    }
    expect(held).toBeGreaterThanOrEqual(2);
  });
});

describe.each(TRANSPORTS)('a subscription over %s', (transport) => {
  test.each([1, 2, 3])('leaks and loses nothing when its statement %i is held', async (index) => {
    const client = createFollowing(transport, {
      place: () => ({ url: proxied.server.url, socketUrl: proxied.server.socketUrl }),
      token: () => tenant.participants[VIEWER]?.token ?? '',
    });
    try {
      for (const fromStart of [true, false, true, false]) {
        const end = lastEvent(VIEWER, thread());
        const after = fromStart ? { seq: 0, cursor: world.cursorAt(thread(), 0) } : end;
        const hold = holdStatement(index);
        const following = new Following(client, { viewer: VIEWER, thread: thread(), after });
        // A stream that needs fewer statements begins without being held.
        await Promise.race([hold.held, following.begun()]);
        await interfere();
        hold.release();
        await following.begun();
        await following.compare();
        following.stop();
      }
    } finally {
      await client.dispose();
    }
  });
});
