import { readFileSync } from 'node:fs';
import {
  buildSchema,
  type GraphQLNamedType,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
} from 'graphql';
import { describe, expect, test } from 'vitest';

/**
 * Relay's rules for a server, on the schema as it is committed. Sources: Relay's GraphQL Server Specification,
 * the Cursor Connections Specification, the Global Object Identification Specification, Relay's conventions for mutations.
 * Allowed beyond them, on purpose:
 * - `nodes` beside `edges`: shorter for whoever needs no cursors.
 * - `as` on `node` and `nodes`: whose eyes look. It is optional, so Relay's own queries are the same.
 * - One payload type for several mutations that change the same thing, and one input for a pair of opposites.
 * - `Thread.participants` is a plain list with `first`: a set of at most 256 that nearly always is wanted whole.
 * - `Query.peekPending` shows the head of a queue, which is worked off from there: `first` says how much of it.
 * - No `clientMutationId`: Relay has needed none since its modern runtime; `idempotencyKey` does more.
 */
const schema = buildSchema(readFileSync('schema.graphql', 'utf8'));

const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith('__'));
const composite = types.flatMap((type) => (isObjectType(type) || isInterfaceType(type) ? [type] : []));
const connections = composite.filter((type) => type.name.endsWith('Connection'));
const fieldsOf = (type: GraphQLNamedType | undefined | null) =>
  isObjectType(type) || isInterfaceType(type) ? type.getFields() : {};
const typeOf = (type: GraphQLNamedType | undefined | null, field: string): string =>
  String(fieldsOf(type)[field]?.type);
/** Serialised as text: what a cursor must be. */
const isText = (type: GraphQLOutputType | undefined): boolean =>
  type !== undefined &&
  isScalarType(getNullableType(type)) &&
  ['String', 'Cursor'].includes(getNamedType(type).name);

const reachable = composite.flatMap((type) =>
  Object.values(type.getFields()).map((field) => ({ ...field, name: `${type.name}.${field.name}` })),
);
const paged = reachable.filter(({ type }) => getNamedType(type).name.endsWith('Connection'));

describe('objects', () => {
  test('are identified by Node, with `id: ID!` and nothing else', () => {
    const node = schema.getType('Node');
    expect(isInterfaceType(node)).toBe(true);
    expect(Object.keys(fieldsOf(node))).toEqual(['id']);
    expect(typeOf(node, 'id')).toBe('ID!');
  });

  test('are read again by `node(id: ID!): Node` and `nodes(ids: [ID!]!): [Node]!`', () => {
    const { node, nodes } = fieldsOf(schema.getQueryType());
    expect(String(node?.type)).toBe('Node');
    expect(String(nodes?.type)).toBe('[Node]!');
    const required = [node, nodes].map((field) =>
      field?.args.filter(({ type }) => isNonNullType(type)).map(({ name, type }) => `${name}: ${type}`),
    );
    expect(required).toEqual([['id: ID!'], ['ids: [ID!]!']]);
  });
});

describe('a connection', () => {
  test('is what every type of that name is, and there are some', () => {
    expect(connections.length).toBeGreaterThan(4);
    expect(paged.length).toBeGreaterThanOrEqual(connections.length);
    for (const type of connections) expect(isObjectType(type), type.name).toBe(true);
  });

  test.each(connections.map((type) => [type.name, type] as const))('%s has edges and pageInfo', (_, type) => {
    expect(typeOf(type, 'pageInfo')).toBe('PageInfo!');
    const edges = fieldsOf(type).edges?.type;
    const list = edges && getNullableType(edges);
    expect(isListType(list)).toBe(true);
    const edge = edges && getNamedType(edges);
    expect(isObjectType(edge)).toBe(true);
    expect(edge?.name).toBe(type.name.replace(/Connection$/, 'Edge'));

    const { node, cursor } = fieldsOf(edge);
    expect(node && isListType(getNullableType(node.type))).toBe(false);
    expect(cursor && isNonNullType(cursor.type) && isText(cursor.type)).toBe(true);
    expect(typeOf(type, 'nodes')).toBe(`[${getNamedType(node?.type)?.name}!]!`);
  });

  test.each(paged.map(({ name, args }) => [name, args] as const))('%s is paged both ways', (_, args) => {
    const named = Object.fromEntries(args.map(({ name, type }) => [name, String(type)]));
    expect(named).toMatchObject({ first: 'Int', after: 'Cursor', last: 'Int', before: 'Cursor' });
  });

  test.each(paged.map(({ name, type }) => [name, type] as const))('%s is no list of pages', (_, type) => {
    expect(isListType(getNullableType(type))).toBe(false);
  });

  test('is the only thing that is paged', () => {
    const others = reachable.filter(
      ({ name, args }) =>
        args.some((arg) => ['after', 'before', 'first', 'last'].includes(arg.name)) &&
        // `after` of a subscription is where it begins.
        !name.startsWith('Subscription.') &&
        !paged.some((field) => field.name === name),
    );
    expect(others.map(({ name }) => name)).toEqual(['Query.peekPending', 'Thread.participants']);
  });
});

test('PageInfo tells both directions, with cursors that are null for an empty page', () => {
  const info = schema.getType('PageInfo');
  expect(isObjectType(info)).toBe(true);
  expect(typeOf(info, 'hasNextPage')).toBe('Boolean!');
  expect(typeOf(info, 'hasPreviousPage')).toBe('Boolean!');
  for (const name of ['startCursor', 'endCursor']) {
    const type = fieldsOf(info)[name]?.type;
    expect(type && isText(type) && !isNonNullType(type), name).toBe(true);
  }
});

describe('a mutation', () => {
  const mutations = Object.values(fieldsOf(schema.getMutationType()));

  test.each(mutations.map((field) => [field.name, field] as const))(
    '%s has one input and a payload',
    (_, field) => {
      expect(field.args.map(({ name }) => name)).toEqual(['input']);
      const type = field.args[0]?.type;
      expect(type && isNonNullType(type) && isInputObjectType(type.ofType)).toBe(true);
      expect(getNamedType(type)?.name).toMatch(/Input$/);
      const payload = getNamedType(field.type);
      expect(isObjectType(payload)).toBe(true);
      expect(payload.name).toMatch(/Payload$/);
      expect(isListType(getNullableType(field.type))).toBe(false);
    },
  );
});
