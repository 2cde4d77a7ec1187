import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant, type Server, startApp } from '../support/app.ts';
import { compareById } from '../support/oracle/byId.ts';
import { type Ask, askAs } from '../support/oracle/callers.ts';
import type { Command } from '../support/oracle/commands.ts';
import { compareLists } from '../support/oracle/lists.ts';
import { createFollowing, Following, type FollowOptions, TRANSPORTS } from '../support/oracle/live.ts';
import { compareHistory } from '../support/oracle/pages.ts';
import { play } from '../support/oracle/play.ts';
import { type OracleEvent, sees } from '../support/oracle/rules.ts';
import { lasting, whole } from '../support/oracle/shown.ts';
import { compareThreads } from '../support/oracle/thread.ts';
import { World } from '../support/oracle/world.ts';

// The oracle is worth what it finds: each surface is made to leak, to lose and to double, and must be caught.

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
/** p1 hears something, misses something, is back, hears more, and is away again. */
const HISTORY: readonly Command[] = [
  { act: 'post', thread: 0, by: 0, ...plain },
  { act: 'post', thread: 0, by: 1, ...plain },
  { act: 'remove', thread: 0, member: 1, wild: false },
  { act: 'post', thread: 0, by: 0, ...plain },
  { act: 'readd', thread: 0, member: 0, wild: false },
  { act: 'post', thread: 0, by: 0, ...plain },
  { act: 'post', thread: 0, by: 2, ...plain },
  { act: 'open', members: 0b011 },
  { act: 'post', thread: 1, by: 0, ...plain },
  { act: 'remove', thread: 0, member: 1, wild: false },
  { act: 'post', thread: 0, by: 0, ...plain },
];

let server: Server;
let ask: Ask;
let world: World;
let hidden: OracleEvent;
let token: string;

beforeAll(async () => {
  server = await startApp();
  const tenant = await createTenant(server, { p0: 'HUMAN', p1: 'HUMAN', p2: 'HUMAN' });
  const ids = Object.fromEntries(Object.entries(tenant.participants).map(([handle, { id }]) => [handle, id]));
  ask = askAs(
    () => server,
    tenant,
    () => 'TOKEN',
  );
  token = tenant.participants[VIEWER]?.token ?? '';
  world = new World({ ids, agents: new Set(), ask });
  await play(world, HISTORY);
  const secret = world.events.find((event) => event.type === 'MESSAGE' && !sees(VIEWER, event));
  if (secret === undefined) throw new Error('Nothing is hidden.');
  hidden = secret;
});
afterAll(() => server.close());

type Fault = (key: string, value: unknown) => unknown;

/** The same answers, with a fault in everything that the reviver meets. */
const spoiled =
  (fault: Fault): Ask =>
  async (viewer, query, variables) =>
    JSON.parse(JSON.stringify(await ask(viewer, query, variables)), (key, value: unknown) =>
      fault(key, value),
    );

const SURFACES = {
  thread: compareThreads,
  history: compareHistory,
  'by id': compareById,
  lists: compareLists,
} as const;

const compare = (surface: keyof typeof SURFACES, through: Ask): Promise<void> =>
  SURFACES[surface](world, through, VIEWER, new Map(), 0);

const inList =
  (change: (items: readonly unknown[]) => readonly unknown[]): Fault =>
  (key, value) =>
    (key === 'edges' || key === 'nodes') && Array.isArray(value) && value.length > 1 ? change(value) : value;

const FAULTS = {
  loss: inList((items) => items.slice(1)),
  'loss at the end': inList((items) => items.slice(0, -1)),
  double: inList((items) => [...items, items.at(-1)]),
  'wrong order': inList((items) => [...items].reverse()),
} satisfies Record<string, Fault>;

describe.each(Object.keys(SURFACES) as (keyof typeof SURFACES)[])('the comparison of %s', (surface) => {
  test('passes what is right', async () => {
    await compare(surface, ask);
  });

  test.each(Object.keys(FAULTS) as (keyof typeof FAULTS)[])('finds a %s', async (fault) => {
    await expect(compare(surface, spoiled(FAULTS[fault]))).rejects.toThrow();
  });
});

test.each<[keyof typeof SURFACES, string, Fault]>([
  ['thread', 'an event of a gap in the page', (key, value) => (key === 'edges' ? withHidden(value) : value)],
  ['history', 'an event of a gap in a page', (key, value) => (key === 'edges' ? withHidden(value) : value)],
  ['by id', 'an event of a gap by its id', (key, value) => (key === 'nodes' ? revealed(value) : value)],
  [
    'thread',
    'a count that moves with what is hidden',
    (key, value) => (key === 'unreadCount' ? Number(value) + 1 : value),
  ],
  [
    'lists',
    'a count that moves with what is hidden',
    (key, value) => (key === 'unreadCount' ? Number(value) + 1 : value),
  ],
  [
    'thread',
    'an end beyond the viewer’s',
    (key, value) => (key === 'end' && value !== null ? hidden.cursor : value),
  ],
  ['thread', 'an activity beyond the viewer’s', (key, value) => (key === 'updatedAt' ? hidden.at : value)],
  ['history', 'a next page that is not there', (key, value) => (key === 'hasNextPage' ? true : value)],
])('the comparison of %s finds %s', async (surface, _, fault) => {
  await expect(compare(surface, spoiled(fault))).rejects.toThrow();
});

const withHidden = (value: unknown): unknown =>
  Array.isArray(value) ? [...value, { cursor: hidden.cursor, node: whole(null, hidden) }] : value;
const revealed = (value: unknown): unknown =>
  Array.isArray(value) ? value.map((item: unknown) => item ?? whole(null, hidden)) : value;

type Through = NonNullable<FollowOptions['through']>;

describe.each(TRANSPORTS)('the comparison of what is live over %s', (transport) => {
  const follow = async (through: Through): Promise<void> => {
    const place = () => ({ url: server.url, socketUrl: server.socketUrl });
    const client = createFollowing(transport, { place, token: () => token });
    const thread = hidden.thread;
    const after = { seq: 0, cursor: world.cursorAt(thread, 0) };
    const following = new Following(client, { viewer: VIEWER, thread, after, through });
    try {
      await following.begun();
      await following.compare();
    } finally {
      await client.dispose();
    }
  };

  test('passes what is right', async () => {
    await follow((deliveries) => deliveries);
  });

  test.each<[string, Through]>([
    [
      'leak',
      (deliveries) => [
        ...deliveries.slice(0, 4),
        { cursor: hidden.cursor, ended: null, event: leaked() },
        ...deliveries.slice(4),
      ],
    ],
    ['loss', (deliveries) => [...deliveries.slice(0, 2), ...deliveries.slice(3)]],
    ['loss at the end', (deliveries) => deliveries.slice(0, -1)],
    ['double', (deliveries) => [...deliveries, ...deliveries.slice(-1)]],
    ['wrong order', (deliveries) => [...deliveries].reverse()],
  ])('finds a %s', async (_, through) => {
    await expect(follow(through)).rejects.toThrow();
  });

  const leaked = () => ({ id: hidden.id, ...lasting(null, hidden) });
});
