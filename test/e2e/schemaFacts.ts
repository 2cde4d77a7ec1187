import {
  getIntrospectionQuery,
  graphqlSync,
  type IntrospectionQuery,
  isAbstractType,
  isObjectType,
} from 'graphql';
import { createSchema } from '../../src/graphql/schema.ts';

// What caches want to know of a schema.

const schema = createSchema();
const types = Object.values(schema.getTypeMap());

/** Which types each interface and union may be: to match fragments. */
export const possibleTypes: Record<string, string[]> = Object.fromEntries(
  types
    .filter(isAbstractType)
    .map((type) => [type.name, schema.getPossibleTypes(type).map(({ name }) => name)]),
);

/** What has no identity of its own: it is stored inside its parent. */
export const typesWithoutId: string[] = types
  .filter(isObjectType)
  .filter((type) => !type.name.startsWith('__') && type.getFields().id === undefined)
  .map(({ name }) => name);

export const introspection = graphqlSync({ schema, source: getIntrospectionQuery() })
  .data as unknown as IntrospectionQuery;
