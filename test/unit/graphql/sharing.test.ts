import { buildSchema, type GraphQLFieldResolver, GraphQLScalarType, parse } from 'graphql';
import { describe, expect, test } from 'vitest';
import type { KnownCaller } from '../../../src/graphql/caller.ts';
import { createErrorMask } from '../../../src/graphql/errors.ts';
import { createSharing, type Sharing, textOf } from '../../../src/graphql/sharing.ts';
import { type Payload, PayloadStream } from '../../../src/graphql/stream.ts';
import { notFound } from '../../../src/shared/errors.ts';
import { log } from '../../../src/shared/log.ts';

interface Delivery {
  readonly cursor: string;
  readonly viewerId: string | null;
  readonly subject: object | null;
}

interface Context {
  readonly caller: KnownCaller;
}

/** How often each field was resolved. */
const asked = new Map<string, number>();
const counted =
  (name: string, resolve: GraphQLFieldResolver<Delivery, Context>): typeof resolve =>
  (...args) => {
    asked.set(name, (asked.get(name) ?? 0) + 1);
    return resolve(...args);
  };

const schema = buildSchema(/* GraphQL */ `
  type Query { nothing: String }
  type Subscription { told(by: ID, as: ID): Told! }
  type Told {
    cursor: String!
    plain(times: Int): String!
    late: String!
    actor: String!
    request: String!
    viewer: String
    large: String!
    fails: String
  }
`);
const resolvers: Record<string, GraphQLFieldResolver<Delivery, Context>> = {
  plain: (_told, { times }) => 'x'.repeat(Number(times ?? 1)),
  late: async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return 'late';
  },
  actor: (_told, _args, { caller }) =>
    caller.actor.kind === 'PARTICIPANT_TOKEN' ? caller.actor.participantId : '',
  request: (_told, _args, { caller }) => caller.requestId,
  viewer: ({ viewerId }) => viewerId,
  large: () => 'x'.repeat(2_000),
  fails: () => {
    throw notFound('Thread');
  },
};
const told = schema.getType('Told');
if (told === undefined || told instanceof GraphQLScalarType || !('getFields' in told))
  throw new Error('No type.');
for (const [name, resolve] of Object.entries(resolvers)) {
  const field = told.getFields()[name];
  if (field !== undefined && 'resolve' in field) field.resolve = counted(name, resolve);
}
const root = schema.getSubscriptionType()?.getFields().told;
if (root !== undefined) root.resolve = (delivery: Delivery) => delivery;

const mask = createErrorMask({ log, suggestions: false });

interface Reader {
  readonly sharing: Sharing;
  readonly document: ReturnType<typeof parse>;
  readonly variables?: Record<string, unknown>;
  readonly viewerId?: string | null;
  readonly deliveries: readonly Omit<Delivery, 'viewerId'>[];
}

let readers = 0;

const read = async ({
  sharing,
  document,
  variables,
  viewerId = null,
  deliveries,
}: Reader): Promise<Payload[]> => {
  readers += 1;
  const number = readers;
  const caller: KnownCaller = {
    actor: {
      kind: 'PARTICIPANT_TOKEN',
      userId: 'u',
      credentialId: `c${number}`,
      participantId: `p${number}`,
    },
    session: null,
    requestId: `r${number}`,
    transport: 'ws',
    signal: null,
    lastEventId: null,
  };
  const source = async function* () {
    for (const delivery of deliveries) yield { ...delivery, viewerId };
  };
  const args = { schema, document, operationName: null, variableValues: variables ?? null };
  const deps = {
    sharing,
    createContext: (of: KnownCaller) => ({ caller: of }),
    mask,
    limits: { answer: 1_000 },
  };
  const payloads: Payload[] = [];
  for await (const payload of new PayloadStream(source(), args, caller, deps)) payloads.push(payload);
  return payloads;
};

const FOLLOWERS = 50;

/** Follows one event with a document as many readers; what each was told, and how often each field was resolved. */
const followAll = async (fields: string, of: (index: number) => Partial<Reader> = () => ({})) => {
  asked.clear();
  const sharing = createSharing();
  const document = parse(
    `subscription Told($by: ID, $as: ID, $times: Int) { told(by: $by, as: $as) { cursor ${fields} } }`,
  );
  const deliveries = [{ cursor: 'a', subject: {} }];
  const all = await Promise.all(
    Array.from({ length: FOLLOWERS }, (_, index) => read({ sharing, document, deliveries, ...of(index) })),
  );
  return all.map(([payload]) => {
    if (payload === undefined) throw new Error('Nothing was told.');
    return payload;
  });
};

describe('an event that many are told', () => {
  test('is executed once, and made one text, where nobody is asked who it is for', async () => {
    const payloads = await followAll('plain late');
    expect(asked).toEqual(
      new Map([
        ['plain', 1],
        ['late', 1],
      ]),
    );
    expect(new Set(payloads).size).toBe(1);
    expect(payloads.map(textOf)).toEqual(
      payloads.map(
        () => '{"data":{"told":{"cursor":"a","plain":"x","late":"late"}},"extensions":{"cursor":"a"}}',
      ),
    );
  });

  test('is executed once for all who differ in what they follow and as whom, and for each who asks otherwise', async () => {
    await followAll('plain(times: $times)', (index) => ({
      variables: { by: `by${index}`, as: `as${index}`, times: index % 2 },
      viewerId: `v${index}`,
    }));
    expect(asked.get('plain')).toBe(2);
  });

  test.each(['actor', 'request'])('is each reader’s own where its caller is asked: %s', async (field) => {
    const payloads = await followAll(`late ${field}`);
    expect(new Set(payloads.map(textOf)).size).toBe(FOLLOWERS);
    expect(asked.get(field)).toBe(FOLLOWERS);
  });

  test('is each reader’s own where its viewer is asked', async () => {
    const payloads = await followAll('late viewer', (index) => ({ viewerId: `v${index}` }));
    expect(payloads.map(({ data }) => data?.told)).toEqual(
      payloads.map((_, index) => ({ cursor: 'a', late: 'late', viewer: `v${index}` })),
    );
    expect(asked.get('viewer')).toBe(FOLLOWERS);
  });

  test('fails for each in its own name', async () => {
    const payloads = await followAll('fails');
    expect(payloads.every(({ errors }) => errors?.[0]?.extensions.code === 'NOT_FOUND')).toBe(true);
    expect(new Set(payloads).size).toBe(FOLLOWERS);
  });

  test('is refused to each where it is too large', async () => {
    const payloads = await followAll('large');
    expect(payloads.every(({ data, errors }) => data === null && errors?.length === 1)).toBe(true);
  });

  test('is not shared with who stands elsewhere, nor where there is no one thing that is told', async () => {
    await followAll('plain', (index) => ({ deliveries: [{ cursor: `c${index}`, subject: {} }] }));
    expect(asked.get('plain')).toBe(FOLLOWERS);
    await followAll('plain', () => ({ deliveries: [{ cursor: 'a', subject: null }] }));
    expect(asked.get('plain')).toBe(FOLLOWERS);
  });

  test('is made again for who comes later', async () => {
    const sharing = createSharing();
    const reader = {
      sharing,
      document: parse('subscription { told { plain } }'),
      deliveries: [{ cursor: 'a', subject: {} }],
    };
    asked.clear();
    await read(reader);
    const until = performance.now() + 60;
    while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
    await read(reader);
    expect(asked.get('plain')).toBe(2);
  });
});
