import { isAbstractType } from 'graphql';
import { createSchema } from '../../src/graphql/schema.ts';

const schema = createSchema();

/** Which types each interface and union may be: what caches need to match fragments. */
export const possibleTypes: Record<string, string[]> = Object.fromEntries(
  Object.values(schema.getTypeMap())
    .filter(isAbstractType)
    .map((type) => [type.name, schema.getPossibleTypes(type).map(({ name }) => name)]),
);
