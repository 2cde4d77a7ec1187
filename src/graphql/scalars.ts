import { GraphQLError, Kind, type ValueNode } from 'graphql';
import type { Json } from '../shared/canonical.ts';
import { builder } from './builder.ts';

builder.scalarType('DateTime', {
  description:
    'A moment in RFC 3339, in UTC, as the database holds it: events to the microsecond, all else to the millisecond.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
  serialize: (value) => (value instanceof Date ? value.toISOString() : String(value)),
  parseValue: (value) => {
    if (typeof value !== 'string' || Number.isNaN(Date.parse(value)))
      throw new GraphQLError('A DateTime is text in RFC 3339.');
    return value;
  },
});

builder.scalarType('Cursor', {
  description:
    'An opaque position in one log or list. It can be kept, and used from any process and over any transport.',
  serialize: (value) => String(value),
  parseValue: (value) => {
    if (typeof value !== 'string') throw new GraphQLError('A Cursor is text that this API has given.');
    return value;
  },
});

builder.scalarType('JSON', {
  description:
    'Any JSON value: at most 32 levels deep, sizes as said where it is used; the keys `__proto__`, `constructor` and `prototype` are refused.',
  serialize: (value) => value,
  parseValue: (value) => requireShallow(value as Json),
  parseLiteral: (node, variables) => requireShallow(jsonOf(node, variables ?? {}, 0)),
});

const MAX_DEPTH = 64;

/** Far beyond what any field allows: keeps a hostile value from exhausting the stack before its field refuses it. */
const requireShallow = (value: Json): Json => {
  const levels: Json[][] = [[value]];
  for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
    const level = levels[depth] ?? [];
    if (level.length === 0) return value;
    levels.push(
      level.flatMap((item) =>
        item === null || typeof item !== 'object'
          ? []
          : (Object.values(item) as Json[]).filter((child) => typeof child === 'object' && child !== null),
      ),
    );
  }
  throw new GraphQLError('The JSON value is nested too deeply.');
};

const jsonOf = (node: ValueNode, variables: { readonly [name: string]: unknown }, depth: number): Json => {
  if (depth > MAX_DEPTH) throw new GraphQLError('The JSON value is nested too deeply.');
  switch (node.kind) {
    case Kind.VARIABLE:
      return (variables[node.name.value] ?? null) as Json;
    case Kind.INT:
    case Kind.FLOAT:
      return Number(node.value);
    case Kind.STRING:
    case Kind.ENUM:
      return node.value;
    case Kind.BOOLEAN:
      return node.value;
    case Kind.NULL:
      return null;
    case Kind.LIST:
      return node.values.map((item) => jsonOf(item, variables, depth + 1));
    case Kind.OBJECT: {
      const object: Record<string, Json> = Object.create(null);
      for (const field of node.fields) object[field.name.value] = jsonOf(field.value, variables, depth + 1);
      return object;
    }
    default:
      return node satisfies never;
  }
};
