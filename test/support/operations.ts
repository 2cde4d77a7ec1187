import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
} from 'graphql';

export type Root = 'query' | 'mutation' | 'subscription';
export type Variables = Readonly<Record<string, unknown>>;

/** A value that an operation takes: an argument, or a field of an input object, down to scalars and enums. */
export interface Leaf {
  /** `PostMessageInput.threadId`, `Query.thread.id`: what a table of samples is looked up with. */
  readonly coordinate: string;
  readonly name: string;
  readonly path: readonly string[];
  readonly type: GraphQLNamedType;
  readonly isList: boolean;
  readonly isRequired: boolean;
}

export interface RootField {
  readonly root: Root;
  readonly name: string;
  readonly field: GraphQLField<unknown, unknown>;
  readonly leaves: readonly Leaf[];
  /** The operation with one variable for each argument, and everything selected that needs no argument. */
  readonly document: string;
}

/** Every root field of the schema, so that a new one cannot be forgotten. */
export const rootFields = (schema: GraphQLSchema, depth = 3): RootField[] =>
  (['query', 'mutation', 'subscription'] as const).flatMap((root) => {
    const type = {
      query: schema.getQueryType(),
      mutation: schema.getMutationType(),
      subscription: schema.getSubscriptionType(),
    }[root];
    return Object.values(type?.getFields() ?? {}).map((field) => ({
      root,
      name: field.name,
      field,
      leaves: leavesOf(field, type?.name ?? ''),
      document: documentOf(schema, root, field, depth),
    }));
  });

export const leavesOf = (field: GraphQLField<unknown, unknown>, parent: string): Leaf[] =>
  field.args.flatMap((argument) => leaves(argument, `${parent}.${field.name}`, []));

const leaves = (
  input: GraphQLArgument | GraphQLInputField,
  owner: string,
  above: readonly string[],
): Leaf[] => {
  const path = [...above, input.name];
  const type = getNamedType(input.type);
  if (isInputObjectType(type))
    return Object.values(type.getFields()).flatMap((field) => leaves(field, type.name, path));
  return [
    {
      coordinate: `${owner}.${input.name}`,
      name: input.name,
      path,
      type,
      isList: isListType(nullable(input.type)),
      isRequired: isRequiredArgument(input as GraphQLArgument) && above.length <= 1,
    },
  ];
};

const nullable = (type: GraphQLInputType): GraphQLInputType => (isNonNullType(type) ? type.ofType : type);

const documentOf = (
  schema: GraphQLSchema,
  root: Root,
  field: GraphQLField<unknown, unknown>,
  depth = 3,
): string => {
  const { declared, passed } = argumentsOf(field);
  return `${root}${declared} { ${field.name}${passed}${selectionOf(schema, getNamedType(field.type), depth)} }`;
};

export const argumentsOf = ({
  args,
}: GraphQLField<unknown, unknown>): { declared: string; passed: string } => ({
  declared:
    args.length === 0 ? '' : `(${args.map(({ name, type }) => `$${name}: ${String(type)}`).join(', ')})`,
  passed: args.length === 0 ? '' : `(${args.map(({ name }) => `${name}: $${name}`).join(', ')})`,
});

/** Everything below a type that needs no argument, `depth` levels of objects down; no type within itself. */
export const selectionOf = (
  schema: GraphQLSchema,
  type: GraphQLNamedType,
  depth: number,
  above: readonly string[] = [],
): string => {
  if (!isCompositeType(type)) return '';
  if (depth === 0) return ' { __typename }';
  const objects = (isAbstractType(type) ? schema.getPossibleTypes(type) : [type]).filter(isObjectType);
  const parts = objects.map((object) => {
    const fields = Object.values(object.getFields()).flatMap((field) => {
      const named = getNamedType(field.type);
      if (field.args.some(isRequiredArgument) || above.includes(named.name)) return [];
      // Two types of one interface may give the same name to fields of different types.
      const isClear =
        new Set(objects.map((other) => String(other.getFields()[field.name]?.type ?? field.type))).size === 1;
      const alias = isClear ? '' : `${object.name}_${field.name}: `;
      return [`${alias}${field.name}${selectionOf(schema, named, depth - 1, [...above, object.name])}`];
    });
    return isAbstractType(type) ? `... on ${object.name} { ${fields.join(' ')} }` : fields.join(' ');
  });
  return ` { __typename ${parts.join(' ')} }`;
};

/** Variables with these values at these paths. */
export const variablesOf = (
  values: readonly (readonly [path: readonly string[], value: unknown])[],
): Variables => {
  const variables: Record<string, unknown> = {};
  for (const [path, value] of values) {
    let object = variables;
    for (const name of path.slice(0, -1)) {
      object[name] ??= {};
      object = object[name] as Record<string, unknown>;
    }
    object[path.at(-1) ?? ''] = value;
  }
  return variables;
};
