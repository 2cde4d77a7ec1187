import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql';
import { LIMITS } from '../shared/input.ts';

/** What a list without a size of its own is taken for. */
const UNSIZED_LIST = 10;

/**
 * Lists that take no size, or give everything without one: the most there can be, or where nothing bounds them (the
 * threads that continue each other, the times a viewer came and went) what only few exceed.
 */
const SIZES: Readonly<Record<string, number>> = {
  'Thread.participants': LIMITS.maxParticipants,
  'Engagement.participants': 50,
  'Engagement.threads': 50,
  'Timeline.windows': 50,
};

type Variables = Readonly<Record<string, unknown>> | null | undefined;

/**
 * How many objects an operation may make at most: one per object, times the sizes asked for. A page counts as
 * `first` or `last` objects (the default page where neither is given, never more than the largest page there is),
 * `ids` as many as are named, a list without a size as `SIZES` says, else as 10. Scalars are free, and so is introspection, which has
 * limits of its own. Linear in the document, also where fragments are spread many times.
 */
export const costOf = (
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): number => {
  const root = schema.getRootType(operation.operation);
  if (!root) return 0;
  const known = fixed.get(operation);
  if (known !== undefined) return known;
  const reader = createReader(schema, document, operation, variables);
  const cost = reader.selections(operation.selectionSet, root, UNSIZED_LIST);
  if (!reader.hasReadVariables()) fixed.set(operation, cost);
  return cost;
};

/** Costs of operations whose sizes stand in the document, so that a cached document is weighed once. */
const fixed = new WeakMap<OperationDefinitionNode, number>();

const createReader = (
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
) => {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  /** By fragment and the size of the page around it. */
  const weighed = new Map<string, number>();
  let readsVariables = false;

  const read = (node: ValueNode): unknown => {
    if (node.kind === Kind.INT) return Number(node.value);
    if (node.kind === Kind.LIST) return node.values;
    if (node.kind !== Kind.VARIABLE) return undefined;
    readsVariables = true;
    const name = node.name.value;
    const given = variables?.[name];
    if (given !== undefined) return given;
    const definition = operation.variableDefinitions?.find(({ variable }) => variable.name.value === name);
    return definition?.defaultValue === undefined ? undefined : read(definition.defaultValue);
  };

  /** The number of objects that a field's arguments ask for; null where it has no such argument. */
  const askedFor = (
    node: FieldNode,
    field: GraphQLField<unknown, unknown>,
    parent: GraphQLNamedType,
  ): number | null => {
    const unsized = SIZES[`${parent.name}.${field.name}`];
    const sized = field.args.filter(({ name }) => name === 'first' || name === 'last' || name === 'ids');
    if (sized.length === 0) return unsized ?? null;
    const sizes = sized.map(({ name }) => {
      const argument = node.arguments?.find((candidate) => candidate.name.value === name);
      const value = argument === undefined ? undefined : read(argument.value);
      if (Array.isArray(value)) return value.length;
      return typeof value === 'number' && value >= 0 ? value : null;
    });
    const given = sizes.filter((size) => size !== null);
    if (given.length === 0) return unsized ?? LIMITS.defaultPageSize;
    return Math.min(Math.max(...given), LIMITS.pageSize);
  };

  const costOfField = (node: FieldNode, parent: GraphQLNamedType, page: number): number => {
    if (!isObjectType(parent) && !isInterfaceType(parent)) return 0;
    const field = parent.getFields()[node.name.value];
    if (field === undefined || node.selectionSet === undefined) return 0;
    const type = getNamedType(field.type);
    if (!isCompositeType(type)) return 0;
    const size = askedFor(node, field, parent);
    const isList = isListType(isNonNullType(field.type) ? field.type.ofType : field.type);
    const times = isList ? (size ?? page) : 1;
    return times * (1 + selections(node.selectionSet, type, isList ? UNSIZED_LIST : (size ?? UNSIZED_LIST)));
  };

  /** `page`: how long the lists directly in here are, when a connection's arguments have said so. */
  const selections = (set: SelectionSetNode, parent: GraphQLNamedType, page: number): number =>
    set.selections.reduce((sum, node) => {
      if (node.kind === Kind.FIELD) return sum + costOfField(node, parent, page);
      if (node.kind === Kind.INLINE_FRAGMENT) {
        const type = node.typeCondition ? schema.getType(node.typeCondition.name.value) : parent;
        return sum + (type ? selections(node.selectionSet, type, page) : 0);
      }
      return sum + fragment(node.name.value, page);
    }, 0);

  const fragment = (name: string, page: number): number => {
    const key = `${name} ${page}`;
    const known = weighed.get(key);
    if (known !== undefined) return known;
    const definition = fragments.get(name);
    const type = definition && schema.getType(definition.typeCondition.name.value);
    if (!type) return 0;
    // A cycle, which validation refuses, ends here.
    weighed.set(key, 0);
    const cost = selections(definition.selectionSet, type, page);
    weighed.set(key, cost);
    return cost;
  };

  return { selections, hasReadVariables: () => readsVariables };
};
