import {
  type DocumentNode,
  type FieldNode,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  print,
  type SelectionSetNode,
  type VariableDefinitionNode,
  visit,
} from 'graphql';

/** Subscriptions that read a log: they take `after` and say where they are. */
const LOGS = new Set(['timeline', 'scratchpad']);
/** Subscriptions of state: after a reconnect they start afresh. */
const STATES = new Set(['threads', 'inbox', 'run', 'signals']);

/** Under these names the position and the end are asked for where a document does not ask itself. */
const CURSOR_ALIAS = 'resumableCursor';
const ENDED_ALIAS = 'resumableEnded';

/** How to follow one operation: what is sent in its place, and where the answers hold position and end. */
export interface FollowedDocument {
  readonly isSubscription: boolean;
  /** Completion without a reason is an interruption, not an end. */
  readonly resumes: boolean;
  readonly query: string;
  readonly cursorVariable: string | undefined;
  readonly rootKey: string | undefined;
  readonly cursorKey: string | undefined;
  readonly endedKey: string | undefined;
  /** Members that were added to the root field: the caller does not see them. */
  readonly added: readonly string[];
}

/**
 * Reads a document once and adds what resuming needs and it lacks: the variable behind `after`, and the fields
 * `cursor` and `ended`. Text that cannot be read is sent as it is, for the server to say what is wrong with it.
 */
export const followedDocument = (query: string, operationName: string | undefined): FollowedDocument => {
  const document = readable(query);
  const operation = document && operationIn(document, operationName);
  if (!document || !operation) return { ...UNKNOWN, query };
  if (operation.operation !== OperationTypeNode.SUBSCRIPTION)
    return { ...UNKNOWN, isSubscription: false, query };
  const root = rootField(document, operation.selectionSet);
  if (root === undefined) return { ...UNKNOWN, query };
  return LOGS.has(root.name.value) || STATES.has(root.name.value)
    ? ofThreadpad(document, operation, root)
    : { ...UNKNOWN, query, ...ofOthers(root) };
};

/** Nothing is known but the text (a persisted operation, say): `after` goes along, for a document that declares it. */
const UNKNOWN = {
  isSubscription: true,
  resumes: false,
  cursorVariable: 'after',
  rootKey: undefined,
  cursorKey: undefined,
  endedKey: undefined,
  added: [],
} as const;

const ofOthers = (root: FieldNode): Partial<FollowedDocument> => {
  const cursorVariable = variableOfAfter(root);
  return { rootKey: keyOf(root), cursorVariable, resumes: cursorVariable !== undefined };
};

const ofThreadpad = (
  document: DocumentNode,
  operation: OperationDefinitionNode,
  root: FieldNode,
): FollowedDocument => {
  const isLog = LOGS.has(root.name.value);
  const known = variableOfAfter(root);
  const added = isLog && known === undefined ? freeName(operation) : undefined;
  const asked = (name: string) => keyOfSelected(root, name);
  const wanted = [
    ...(isLog && asked('cursor') === undefined ? [{ name: 'cursor', alias: CURSOR_ALIAS }] : []),
    ...(asked('ended') === undefined ? [{ name: 'ended', alias: ENDED_ALIAS }] : []),
  ];
  const edited = visit(document, {
    enter(node) {
      if (node === operation && added !== undefined)
        return {
          ...node,
          variableDefinitions: [...(node.variableDefinitions ?? []), afterVariable(added, root)],
        };
      if (node.kind !== Kind.FIELD || node.loc?.start !== root.loc?.start) return undefined;
      return {
        ...node,
        arguments: added === undefined ? node.arguments : withAfter(node, added),
        selectionSet: node.selectionSet && withFields(node.selectionSet, wanted),
      };
    },
  });
  return {
    isSubscription: true,
    resumes: true,
    query: print(edited),
    cursorVariable: known ?? added,
    rootKey: keyOf(root),
    cursorKey: isLog ? (asked('cursor') ?? CURSOR_ALIAS) : undefined,
    endedKey: asked('ended') ?? ENDED_ALIAS,
    added: wanted.map(({ alias }) => alias),
  };
};

const readable = (query: string): DocumentNode | undefined => {
  try {
    return parse(query);
  } catch {
    return undefined;
  }
};

const operationIn = (document: DocumentNode, name: string | undefined): OperationDefinitionNode | undefined =>
  document.definitions
    .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
    .find((definition) => name === undefined || definition.name?.value === name);

/** A subscription has one root field; it may stand in a fragment. */
const rootField = (
  document: DocumentNode,
  selections: SelectionSetNode,
  depth = 0,
): FieldNode | undefined => {
  for (const selection of selections.selections) {
    if (selection.kind === Kind.FIELD) {
      if (selection.name.value !== '__typename') return selection;
      continue;
    }
    const inner =
      selection.kind === Kind.INLINE_FRAGMENT
        ? selection.selectionSet
        : document.definitions
            .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
            .find((fragment) => fragment.name.value === selection.name.value)?.selectionSet;
    const found = inner && depth < 8 ? rootField(document, inner, depth + 1) : undefined;
    if (found) return found;
  }
  return undefined;
};

const keyOf = (field: FieldNode): string => field.alias?.value ?? field.name.value;

const keyOfSelected = (root: FieldNode, name: string): string | undefined => {
  const selected = root.selectionSet?.selections
    .filter((selection) => selection.kind === Kind.FIELD)
    .find((field) => field.name.value === name && (field.directives ?? []).length === 0);
  return selected && keyOf(selected);
};

const afterOf = (root: FieldNode) =>
  root.arguments?.find((argument) => argument.name.value === 'after')?.value;

const variableOfAfter = (root: FieldNode): string | undefined => {
  const value = afterOf(root);
  return value?.kind === Kind.VARIABLE ? value.name.value : undefined;
};

const freeName = (operation: OperationDefinitionNode): string => {
  const taken = new Set(operation.variableDefinitions?.map((definition) => definition.variable.name.value));
  let name = 'after';
  while (taken.has(name)) name = `_${name}`;
  return name;
};

/** A position written into the document is where the first attempt starts. */
const afterVariable = (name: string, root: FieldNode): VariableDefinitionNode => {
  const written = afterOf(root);
  return {
    kind: Kind.VARIABLE_DEFINITION,
    variable: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } },
    type: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: 'Cursor' } },
    ...(written?.kind === Kind.STRING ? { defaultValue: written } : {}),
  };
};

const withAfter = (field: FieldNode, variable: string): FieldNode['arguments'] => [
  ...(field.arguments ?? []).filter((argument) => argument.name.value !== 'after'),
  {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: 'after' },
    value: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: variable } },
  },
];

const withFields = (
  set: SelectionSetNode,
  fields: readonly { readonly name: string; readonly alias: string }[],
): SelectionSetNode => ({
  ...set,
  selections: [
    ...set.selections,
    ...fields.map(
      ({ name, alias }): FieldNode => ({
        kind: Kind.FIELD,
        name: { kind: Kind.NAME, value: name },
        alias: { kind: Kind.NAME, value: alias },
      }),
    ),
  ],
});
