import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  type GraphQLError,
  GraphQLError as GraphQLFailure,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  OperationTypeNode,
  type SelectionSetNode,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { noCredential } from '../auth/presented.ts';
import { bounded } from './answers.ts';
import { type Caller, type CreateContext, isKnown, type KnownCaller } from './caller.ts';
import { costOf } from './cost.ts';
import { type ErrorMask, requestError, unknownOperation } from './errors.ts';
import { type OperationLimits, tooExpensive } from './limits.ts';
import { createSharing } from './sharing.ts';
import { PayloadStream } from './stream.ts';

export interface ExecutionDeps {
  readonly createContext: CreateContext;
  readonly limits: OperationLimits;
  readonly mask: ErrorMask;
}

export interface OperationArgs {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
}

/** The envelop context of an operation: what the door says of it. */
export interface DoorContext {
  readonly caller: Caller;
  /** `refusal` has been asked already. */
  readonly isChecked?: boolean;
}

/**
 * Why a valid document may not run for this caller, or null: it names no operation, has no credential, would make
 * too many objects, or would stream where one answer is awaited.
 */
export const refusal = (
  args: OperationArgs,
  caller: Caller,
  limits: OperationLimits,
): GraphQLError | null => {
  const { schema, document, operationName, variableValues } = args;
  const operation = getOperationAST(document, operationName);
  if (!operation) return unknownOperation(operationName);
  if (!isKnown(caller) && !readsOnlySchema(document, operation.selectionSet)) {
    const { message, code } = noCredential();
    return new GraphQLFailure(message, { extensions: { code } });
  }
  if (operation.operation === OperationTypeNode.SUBSCRIPTION && caller.transport === 'http')
    return requestError(
      'BAD_REQUEST',
      'A subscription is a stream: ask for it with "Accept: text/event-stream", or over WebSocket.',
    );
  const cost = costOf(schema, document, operation, variableValues);
  return cost <= limits.cost
    ? null
    : tooExpensive(
        `The operation may make ${cost} objects; at most ${limits.cost} are allowed. Ask for smaller pages.`,
        {
          cost,
          limit: limits.cost,
        },
      );
};

/** Executes with graphql-js and a context of our own, made for the operation or, in a subscription, for each event. */
export const useExecution = (options: ExecutionDeps): Plugin => {
  const { createContext, limits } = options;
  const deps = { ...options, sharing: createSharing() };
  const prepared = (args: ExecutionArgs): { caller: Caller } | { refused: ExecutionResult } => {
    const { caller, isChecked } = args.contextValue as DoorContext;
    const refused = isChecked === true ? null : refusal(args, caller, limits);
    return refused === null ? { caller } : { refused: { errors: [refused] } };
  };

  const run = (args: ExecutionArgs): ReturnType<typeof execute> => {
    const known = prepared(args);
    if ('refused' in known) return known.refused;
    const result = execute({
      ...args,
      contextValue: isKnown(known.caller) ? createContext(known.caller) : {},
    });
    return isPromise(result)
      ? result.then((settled) => bounded(settled, limits.answer))
      : bounded(result, limits.answer);
  };

  const open = async (args: ExecutionArgs): Promise<ExecutionResult | PayloadStream> => {
    const known = prepared(args);
    if ('refused' in known) return known.refused;
    const caller = known.caller;
    if (!isKnown(caller)) return run(args);
    return follow(args, caller);
  };

  const follow = async (
    args: ExecutionArgs,
    caller: KnownCaller,
  ): Promise<ExecutionResult | PayloadStream> => {
    const source = await createSourceEventStream({ ...args, contextValue: createContext(caller) });
    if (!(Symbol.asyncIterator in source)) return source;
    const { schema, document, operationName, variableValues } = args;
    // What lives as long as the stream holds nothing of the request but this.
    const kept = {
      schema,
      document,
      operationName: operationName ?? null,
      variableValues: variableValues ?? null,
    };
    const stream = new PayloadStream(source, kept, caller, deps);
    // Gone while it was being set up.
    if (caller.signal?.aborted === true) await stream.return();
    return stream;
  };

  return {
    onExecute({ setExecuteFn }) {
      setExecuteFn(run);
    },
    onSubscribe({ setSubscribeFn }) {
      setSubscribeFn(open);
    },
  };
};

const isPromise = (result: ReturnType<typeof execute>): result is Promise<ExecutionResult> =>
  'then' in result && typeof result.then === 'function';

const readsOnlySchema = (document: DocumentNode, root: SelectionSetNode, seen = new Set<string>()): boolean =>
  root.selections.every((node) => {
    if (node.kind === Kind.FIELD) return node.name.value.startsWith('__');
    if (node.kind === Kind.INLINE_FRAGMENT) return readsOnlySchema(document, node.selectionSet, seen);
    const name = node.name.value;
    if (seen.has(name)) return true;
    seen.add(name);
    const fragment = document.definitions.find(
      (definition) => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === name,
    );
    return (
      fragment?.kind === Kind.FRAGMENT_DEFINITION && readsOnlySchema(document, fragment.selectionSet, seen)
    );
  });
