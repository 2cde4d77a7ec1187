import {
  type ExecutionResult,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { Caller } from './caller.ts';
import { type ErrorMask, unknownOperation } from './errors.ts';
import { type OperationArgs, refusal } from './execution.ts';
import type { OperationLimits } from './limits.ts';
import { PayloadStream } from './stream.ts';

/** A GraphQL request, whatever it came in. */
export interface OperationParams {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly operationName?: string | null | undefined;
}

export type OperationKind = 'query' | 'mutation' | 'subscription';

export interface Outline {
  readonly kind: OperationKind;
  /** The first root field: what the operation is counted under. */
  readonly field: string;
}

export interface Operation extends Outline {
  readonly args: OperationArgs;
  /** Errors are masked already. Never rejects. */
  run(): Promise<ExecutionResult | PayloadStream>;
}

export interface Refused {
  readonly errors: readonly GraphQLError[];
}

/** Parses, validates and weighs an operation; nothing runs before `run`. Every door begins its operations here. */
export interface Operations {
  begin(params: OperationParams, caller: Caller): Operation | Refused;
  /** What its document alone says of an operation; null where that does not parse or name one. */
  outline(params: OperationParams): Outline | null;
}

/** The functions of `yoga.getEnveloped(context)`, so that every plugin of the server works at every door. */
export interface Enveloped {
  parse(source: string): OperationArgs['document'];
  validate(schema: GraphQLSchema, document: OperationArgs['document']): readonly GraphQLError[];
  contextFactory(): unknown;
  execute(args: OperationArgs & { contextValue: unknown }): Promise<ExecutionResult> | ExecutionResult;
  subscribe(args: OperationArgs & { contextValue: unknown }): Promise<ExecutionResult | PayloadStream>;
}

export interface OperationsDeps {
  readonly schema: GraphQLSchema;
  readonly limits: OperationLimits;
  readonly mask: ErrorMask;
  envelop(context: object): Enveloped;
}

export const createOperations = ({ schema, limits, mask, envelop }: OperationsDeps): Operations => {
  const begin = (params: OperationParams, caller: Caller): Operation | Refused => {
    const enveloped = envelop({ caller, params, isChecked: true });
    const document = enveloped.parse(params.query);
    const errors = enveloped.validate(schema, document);
    if (errors.length > 0) return { errors };
    const operation = getOperationAST(document, params.operationName);
    if (!operation) return { errors: [unknownOperation(params.operationName)] };
    const { operationName, variables: variableValues } = params;
    const args: OperationArgs = { schema, document, operationName, variableValues };
    const refused = refusal(args, caller, limits);
    if (refused !== null) return { errors: [refused] };
    const start =
      operation.operation === OperationTypeNode.SUBSCRIPTION ? enveloped.subscribe : enveloped.execute;
    return {
      ...outlineOf(operation),
      args,
      async run() {
        try {
          const result = await start({ ...args, contextValue: await enveloped.contextFactory() });
          return isStream(result) ? result : mask.result(result, caller.requestId);
        } catch (error) {
          return { errors: [mask.error(error, caller.requestId)] };
        }
      },
    };
  };

  return {
    outline({ query, operationName }) {
      try {
        const operation = getOperationAST(envelop({}).parse(query), operationName);
        return operation ? outlineOf(operation) : null;
      } catch {
        return null;
      }
    },
    begin(params, caller) {
      try {
        const begun = begin(params, caller);
        return isRefused(begun) ? mask.result(begun, caller.requestId) : begun;
      } catch (error) {
        return { errors: [mask.error(error, caller.requestId)] };
      }
    },
  };
};

const outlineOf = ({ operation, selectionSet }: OperationDefinitionNode): Outline => {
  const root = selectionSet.selections.find((node) => node.kind === Kind.FIELD);
  return { kind: operation, field: root?.name.value ?? 'fragment' };
};

export const isRefused = (begun: Operation | Refused): begun is Refused => 'errors' in begun;

export const isStream = (result: ExecutionResult | PayloadStream): result is PayloadStream =>
  result instanceof PayloadStream;
