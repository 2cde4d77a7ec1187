import {
  buildSchema,
  getIntrospectionQuery,
  getOperationAST,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { costOf } from '../../../src/graphql/cost.ts';
import { createDocumentCache } from '../../../src/graphql/documents.ts';
import { documentLimits, OPERATION_LIMITS } from '../../../src/graphql/limits.ts';

const schema = buildSchema(/* GraphQL */ `
  interface Node { id: ID! }
  type Query { node(id: ID!): Node nodes(ids: [ID!]!): [Node]! threads(first: Int, last: Int): ThreadConnection me: Person }
  type Person implements Node { id: ID! name: String threads(first: Int): ThreadConnection friends(first: Int): [Person!]! mentions: [Person!]! }
  type Thread implements Node { id: ID! people(first: Int): [Person!]! events(first: Int, last: Int): EventConnection }
  type ThreadConnection { edges: [ThreadEdge!]! nodes: [Thread!]! pageInfo: PageInfo! }
  type ThreadEdge { cursor: String! node: Thread! }
  type EventConnection { nodes: [Event!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! }
  union Event = Message | Change
  type Message { id: ID! sender: Person! }
  type Change { id: ID! person: Person! actor: Person }
  type Mutation { touch(id: ID!): Thread }
`);

const cost = (query: string, variables?: Record<string, unknown>): number => {
  const document = parse(query);
  const operation = getOperationAST(document);
  if (!operation) throw new Error('no operation');
  return costOf(schema, document, operation, variables);
};

describe('the cost of an operation', () => {
  test.for([
    ['scalars and introspection are free', '{ __typename __schema { types { name } } }', 0],
    ['one object', '{ me { id name } }', 1],
    ['a page with the default size', '{ threads { nodes { id } } }', 1 + 50],
    [
      'a page as long as asked',
      '{ threads(first: 3) { edges { cursor node { id } } pageInfo { hasNextPage } } }',
      1 + 3 * 2 + 1,
    ],
    ['the last ones', '{ threads(last: 7) { nodes { id } } }', 1 + 7],
    ['no page is longer than the longest there is', '{ threads(first: 1000000) { nodes { id } } }', 1 + 200],
    ['a negative size is no gain', '{ threads(first: -5) { nodes { id } } }', 1 + 50],
    ['ids count as they are named', '{ nodes(ids: ["a", "b", "c"]) { id } }', 3],
    ['a list with a size of its own', '{ me { friends(first: 4) { mentions { id } } } }', 1 + 4 * (1 + 10)],
    [
      'sizes multiply',
      '{ threads(first: 10) { nodes { events(first: 20) { nodes { ... on Message { sender { id } } } } } } }',
      1 + 10 * (1 + 1 + 20 * (1 + 1)),
    ],
    [
      'what a union may be adds up',
      '{ threads(first: 1) { nodes { events(first: 1) { nodes { ... on Message { sender { id } } ... on Change { person { id } actor { id } } } } } } }',
      1 + 1 * (1 + 1 + 1 * (1 + 3)),
    ],
    [
      'a fragment counts where it is spread',
      '{ a: me { ...P } b: me { ...P } } fragment P on Person { threads(first: 2) { ...C } } fragment C on ThreadConnection { nodes { id } }',
      2 * (1 + 1 + 2),
    ],
    ["a mutation's payload counts too", 'mutation { touch(id: "t") { people { id } } }', 1 + 50],
  ] as const)('%s', ([, query, expected]) => {
    expect(cost(query)).toBe(expected);
  });

  test('reads sizes from variables, their defaults, and lists of ids', () => {
    const query =
      'query Q($n: Int = 5, $ids: [ID!]!) { threads(first: $n) { nodes { id } } nodes(ids: $ids) { id } }';
    expect(cost(query, { ids: ['a', 'b'] })).toBe(1 + 5 + 2);
    expect(cost(query, { n: 9, ids: [] })).toBe(1 + 9);
    expect(cost(query, { n: 'many', ids: 'x' })).toBe(1 + 50 + 50);
    const document = parse(query);
    const operation = getOperationAST(document);
    if (!operation) throw new Error('no operation');
    for (const n of [1, 2, 3]) expect(costOf(schema, document, operation, { n, ids: [] })).toBe(1 + n);
  });

  test('is linear in the document however far fragments unfold, and finite for cycles', () => {
    const fragments = Array.from(
      { length: 500 },
      (_, level) =>
        `fragment F${level} on Person { friends(first: 200) { ...F${level + 1} ...F${level + 1} } }`,
    );
    const started = performance.now();
    expect(cost(`{ me { ...F0 } } ${fragments.join(' ')} fragment F500 on Person { id }`)).toBeGreaterThan(
      1e300,
    );
    // To expand it would take longer than anybody lives.
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(cost('{ me { ...A } } fragment A on Person { friends(first: 2) { ...A } }')).toBe(3);
    expect(cost('{ me { ...Unknown } unknown { id } }')).toBe(1);
  });
});

describe('the limits of a document', () => {
  const codes = (query: string) =>
    validate(schema, parse(query), [...specifiedRules, documentLimits(OPERATION_LIMITS)]).map(
      ({ extensions }) => extensions,
    );
  const nested = (depth: number): string =>
    `{ me { ${'friends { '.repeat(depth - 2)} id ${'} '.repeat(depth - 2)} } }`;

  test('depth, also through fragments', () => {
    expect(codes(nested(12))).toEqual([]);
    expect(codes(nested(13))).toEqual([{ code: 'QUERY_TOO_EXPENSIVE', depth: 13, limit: 12 }]);
    const query = `{ me { ...F } } fragment F on Person { ${'friends { '.repeat(11)} id ${'} '.repeat(11)} }`;
    expect(codes(query)).toEqual([{ code: 'QUERY_TOO_EXPENSIVE', depth: 13, limit: 12 }]);
  });

  test('the introspection that tools send is within them, a circular one is not valid', () => {
    expect(
      codes(getIntrospectionQuery({ inputValueDeprecation: true, schemaDescription: true, oneOf: true })),
    ).toEqual([]);
    const circular = `{ __schema { types { ${'fields { type { '.repeat(6)} name ${'} } '.repeat(6)} } } }`;
    expect(codes(circular)).not.toEqual([]);
  });

  test('aliases, also multiplied by fragments', () => {
    const aliases = (count: number): string =>
      Array.from({ length: count }, (_, index) => `a${index}: id`).join(' ');
    expect(codes(`{ me { ${aliases(100)} } }`)).toEqual([]);
    expect(codes(`{ me { ${aliases(101)} } }`)).toEqual([
      { code: 'QUERY_TOO_EXPENSIVE', aliases: 101, limit: 100 },
    ]);
    expect(codes(`{ me { ...F } b: me { ...F } } fragment F on Person { ${aliases(50)} }`)).toEqual([
      { code: 'QUERY_TOO_EXPENSIVE', aliases: 101, limit: 100 },
    ]);
  });

  test('directives', () => {
    const fields = (count: number): string => 'id @skip(if: false) '.repeat(count);
    expect(codes(`{ me { ${fields(50)} } }`)).toEqual([]);
    expect(codes(`{ me { ${fields(51)} } }`)).toEqual([
      { code: 'QUERY_TOO_EXPENSIVE', directives: 51, limit: 50 },
    ]);
  });

  test('a bomb of fragments is refused as fast as it is read; cycles and unknown fragments break nothing', () => {
    const bomb = Array.from(
      { length: 300 },
      (_, level) =>
        `fragment F${level} on Person { a: friends { ...F${level + 1} } b: friends { ...F${level + 1} } }`,
    );
    const started = performance.now();
    expect(codes(`{ me { ...F0 } } ${bomb.join(' ')} fragment F300 on Person { id }`).length).toBe(2);
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(codes('{ me { ...A } } fragment A on Person { friends { ...A } }')).toHaveLength(1);
    expect(codes('{ me { ...Unknown } }')).toHaveLength(1);
  });
});

describe('a list that takes no size, or gives everything without one', () => {
  const unsized = buildSchema(/* GraphQL */ `
    type Query { thread: Thread engagement: Engagement }
    type Thread { id: ID! participants(first: Int): [Member!]! timeline: Timeline! }
    type Member { id: ID! }
    type Timeline { windows: [Window!]! }
    type Window { id: ID! }
    type Engagement { threads: [Thread!]! participants: [Member!]! }
  `);
  const cost = (query: string): number => {
    const document = parse(query);
    const operation = getOperationAST(document);
    if (!operation) throw new Error('No operation.');
    return costOf(unsized, document, operation, {});
  };

  test.each([
    ['{ thread { participants { id } } }', 1 + 256],
    ['{ thread { participants(first: 3) { id } } }', 1 + 3],
    ['{ thread { timeline { windows { id } } } }', 1 + 1 + 50],
    ['{ engagement { participants { id } } }', 1 + 50],
    ['{ engagement { threads { participants { id } } } }', 1 + 50 * (1 + 256)],
  ])('%s costs %i', (query, expected) => {
    expect(cost(query)).toBe(expected);
  });
});

describe('the document cache', () => {
  test('is bounded by text, forgets what was not used longest, and keeps nothing long', () => {
    const cache = createDocumentCache(100, 40);
    const document = parse('{ me { id } }');
    const texts = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(30));
    for (const text of texts.slice(0, 3)) cache.set(text, document);
    expect(cache.get(texts[0] ?? '')).toBe(document);
    cache.set(texts[3] ?? '', document);
    expect(texts.map((text) => cache.get(text) !== undefined)).toEqual([true, false, true, true]);
    cache.set('e'.repeat(41), document);
    expect(cache.size).toBe(3);
  });
});
