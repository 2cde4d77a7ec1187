import { EventEmitter, once } from 'node:events';
import { buildSchema, type GraphQLFieldResolver, type GraphQLSchema } from 'graphql';
import type { KnownCaller } from '../../src/graphql/caller.ts';
import { conflict, LogGone, notFound, unavailable } from '../../src/shared/errors.ts';

const TYPES = /* GraphQL */ `
  scalar Cursor
  type Query {
    ping: String!
    me: String
    echo(text: String!): String!
    number(value: Int!): Int
    fail(how: String!): String
    must(how: String!): String!
    items(first: Int, last: Int): ItemConnection
    nodes(ids: [ID!]!): [Item]!
    root: Item
    wait(name: String!): String
  }
  type Item { id: ID! name: String! children(first: Int): [Item!]! items(first: Int): ItemConnection tags: [Item!]! }
  type ItemConnection { edges: [ItemEdge!]! nodes: [Item!]! }
  type ItemEdge { node: Item! }
  type Mutation { bump: Int! renew(token: String!): String! }
  type Subscription {
    count(from: Int = 0, to: Int!, after: Cursor): Count!
    live(from: Int = 0): Count!
    blob(bytes: Int!): Count!
    never: Count!
    refused: Count!
    broken(how: String!): Count!
    setUp(name: String!): Count!
  }
  type Count {
    cursor: Cursor! value: Int context: Int! text: String who: String ended: String fail: String
    "Fails the first times that it is asked."
    shaky(times: Int!, how: String!): String
  }
`;

export interface TestContext {
  readonly caller: KnownCaller;
  /** Contexts are counted: each has its own number. */
  readonly number: number;
}

type Resolver = GraphQLFieldResolver<unknown, TestContext>;

/** A log of numbers that grows when told, and how many follow it. */
export const createTestLog = () => {
  const events = new EventEmitter().setMaxListeners(0);
  const log = {
    events,
    open: 0,
    pulled: 0,
    value: 0,
    grow(by = 1): void {
      log.value += by;
      events.emit('change');
    },
    end(reason: string): void {
      events.emit('end', reason);
    },
  };
  return log;
};

type TestLog = ReturnType<typeof createTestLog>;

/** The thread that the streams follow. */
const OWN = 'its own';

async function* follow(log: TestLog, from: number, { session, signal }: KnownCaller) {
  const change = new EventEmitter();
  let at = from;
  let ending: string | null = null;
  const onChange = (): boolean => change.emit('change');
  const onEnd = (reason: string): void => {
    ending = reason;
    onChange();
  };
  const onEnded = (): void => onEnd('CREDENTIAL_ENDED');
  log.open += 1;
  log.events.on('change', onChange).on('end', onEnd);
  session?.ended.addEventListener('abort', onEnded);
  signal?.addEventListener('abort', onChange);
  try {
    yield { cursor: `c${at}`, value: null, threadId: OWN };
    while (signal?.aborted !== true) {
      if (ending !== null) {
        yield { cursor: `c${at}`, value: null, ended: ending };
        return;
      }
      if (at === log.value) {
        await once(change, 'change');
        continue;
      }
      at += 1;
      log.pulled += 1;
      yield { cursor: `c${at}`, value: at, threadId: OWN };
    }
  } finally {
    log.events.off('change', onChange).off('end', onEnd);
    session?.ended.removeEventListener('abort', onEnded);
    signal?.removeEventListener('abort', onChange);
    log.open -= 1;
  }
}

const failWith = (how: string): never => {
  if (how === 'conflict') throw conflict('It is there already.', { existingId: 'item_1' });
  if (how === 'missing') throw notFound('Item');
  if (how === 'away') throw unavailable('The store is away. Try again.', { retryAfterMs: 1_500 });
  if (how === 'gone') throw new LogGone('Thread', 'another');
  if (how === 'pad gone') throw new LogGone('Scratchpad', OWN);
  if (how === 'own gone') throw new LogGone('Thread', OWN);
  throw new TypeError('secret detail: hunter2');
};

/** Emits `waiting NAME`, then waits for `NAME`, or for the client to go, which it tells as `gone NAME`. */
const hold = async (gates: EventEmitter, name: string, signal: AbortSignal | null): Promise<void> => {
  const gone = new AbortController();
  signal?.addEventListener('abort', () => gone.abort(), { once: true });
  gates.emit(`waiting ${name}`);
  try {
    await once(gates, name, { signal: gone.signal });
  } catch {
    gates.emit(`gone ${name}`);
  }
};

export const createTestSchema = (log: TestLog, gates: EventEmitter): GraphQLSchema => {
  let bumps = 0;
  let asked = 0;
  const item = (id: string) => ({ id, name: id, children: [], tags: [], items: { edges: [], nodes: [] } });
  const resolvers: Record<string, Record<string, Resolver>> = {
    Query: {
      ping: () => 'pong',
      me: (_, __, { caller }) => caller.actor.kind,
      echo: (_, { text }) => text,
      number: (_, { value }) => value,
      fail: (_, { how }) => failWith(how),
      must: (_, { how }) => failWith(how),
      items: () => ({ edges: [], nodes: [] }),
      nodes: (_, { ids }) => ids.map(item),
      root: () => item('root'),
      wait: async (_, { name }, { caller }) => {
        await hold(gates, name, caller.signal);
        return name;
      },
    },
    Mutation: {
      bump: () => {
        bumps += 1;
        return bumps;
      },
      renew: async (_, { token }, { caller }) =>
        (await caller.session?.renew(token))?.credentialId ?? 'no session',
    },
    Count: {
      context: (_, __, context) => context.number,
      who: (_, __, { caller }) => (caller.actor.kind === 'ADMIN' ? 'admin' : caller.actor.credentialId),
      fail: () => failWith('unexpectedly'),
      shaky: (_, { times, how }) => {
        asked += 1;
        return asked > times ? `at the ${asked}.` : failWith(how);
      },
    },
  };
  const sources: Record<string, Resolver> = {
    count: async function* (_, { from, to, after }, { caller }) {
      const resumed: unknown = caller.lastEventId ?? after;
      const start = typeof resumed === 'string' ? Number(resumed.slice(1)) : from;
      for (let value = start + 1; value <= to; value += 1)
        yield { cursor: `c${value}`, value, threadId: OWN };
    },
    live: (_, { from }, { caller }) => follow(log, from, caller),
    blob: async function* (_, { bytes }) {
      for (let value = 1; ; value += 1) {
        log.pulled += 1;
        yield { cursor: `c${value}`, value, text: 'x'.repeat(bytes) };
      }
    },
    never: async function* (_, __, { caller }) {
      log.open += 1;
      try {
        await hold(gates, 'never', caller.signal);
        yield* [];
      } finally {
        log.open -= 1;
      }
    },
    refused: () => failWith('missing'),
    broken: async function* (_, { how }) {
      yield { cursor: 'c1', value: 1 };
      failWith(how);
    },
    setUp: async (_, { name }, { caller }) => {
      await hold(gates, name, caller.signal);
      return follow(log, 0, caller);
    },
  };

  const schema = buildSchema(TYPES);
  for (const [type, fields] of Object.entries(resolvers)) {
    const known = schema.getType(type);
    if (known && 'getFields' in known)
      for (const [name, resolve] of Object.entries(fields))
        Object.assign(known.getFields()[name] ?? {}, { resolve });
  }
  for (const [name, subscribe] of Object.entries(sources)) {
    const field = schema.getSubscriptionType()?.getFields()[name] ?? {};
    Object.assign(field, { subscribe, resolve: (event: unknown) => event });
  }
  return schema;
};
