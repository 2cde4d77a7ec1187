import { GraphQLError } from 'graphql';
import { DomainError, ERROR_STATUS, isErrorCode } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';

/** Failures of the request itself, before anything of it runs. */
const REQUEST_STATUS = {
  BAD_REQUEST: 400,
  GRAPHQL_PARSE_FAILED: 400,
  GRAPHQL_VALIDATION_FAILED: 400,
} as const;
const STATUS: Readonly<Record<string, number>> = { ...ERROR_STATUS, ...REQUEST_STATUS };

/**
 * Well-formed requests that GraphQL refuses: 200 where the client asked for `application/json`, which cannot tell
 * a GraphQL server's status from a proxy's, 400 otherwise. Source: GraphQL over HTTP, §6.4.
 */
const WELL_FORMED = new Set<unknown>([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'QUERY_TOO_EXPENSIVE',
]);

export type RequestErrorCode = keyof typeof REQUEST_STATUS;

export const requestError = (code: RequestErrorCode, message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code } });

export const unknownOperation = (operationName: string | null | undefined): GraphQLError =>
  requestError(
    'GRAPHQL_VALIDATION_FAILED',
    operationName === null || operationName === undefined
      ? 'The document must have exactly one operation, or operationName must name one of them.'
      : `The document has no operation named "${operationName.slice(0, 128)}".`,
  );

/** The status of an answer without data, by the code of its gravest error. */
export const statusOf = (errors: readonly GraphQLError[], mediaType: string): number =>
  errors.reduce((status, { extensions }) => {
    if (WELL_FORMED.has(extensions.code) && mediaType === 'application/json') return status;
    return Math.max(status, STATUS[String(extensions.code)] ?? 500);
  }, 200);

export interface PublicResult {
  readonly errors?: readonly GraphQLError[] | undefined;
  readonly data?: unknown;
  readonly extensions?: unknown;
}

/** `OK`, or the code of the first error. */
export const codeOf = ({ errors }: PublicResult): string => {
  if (errors === undefined) return 'OK';
  const code = errors[0]?.extensions.code;
  return typeof code === 'string' ? code : 'INTERNAL';
};

/**
 * What leaves the server instead of an error, the same at every door: an expected failure with its code and facts,
 * a fault of the request with GraphQL's own words, and for all else `INTERNAL` with the request's id, the detail
 * only in the log.
 */
export interface ErrorMask {
  error(error: unknown, requestId: string): GraphQLError;
  result<Result extends PublicResult>(result: Result, requestId: string): Result;
}

export const createErrorMask = ({
  log,
  suggestions,
}: {
  readonly log: Logger;
  /** Whether "Did you mean …?" may tell of names in the schema. */
  readonly suggestions: boolean;
}): ErrorMask => {
  const published = new WeakSet<GraphQLError>();
  const words = (message: string): string =>
    suggestions ? message : message.replace(/ ?Did you mean [^?]*\?/g, '');

  const masked = (error: unknown, requestId: string): GraphQLError => {
    const outer = error instanceof GraphQLError ? error : null;
    const cause = rootOf(error);
    if (cause instanceof DomainError && cause.code !== 'INTERNAL')
      return located(outer, cause.message, { ...cause.facts, code: cause.code });
    if (outer !== null) {
      const code = ownCodeOf(outer, cause);
      if (code !== null) return located(outer, words(outer.message), { ...factsOf(outer), code });
    }
    log.error({ err: cause, requestId, path: outer?.path }, 'unexpected error');
    const message = 'Something went wrong on the server. Report it with its request id.';
    return located(outer, message, { code: 'INTERNAL', requestId });
  };

  const mask: ErrorMask = {
    error(error, requestId) {
      if (error instanceof GraphQLError && published.has(error)) return error;
      const result = masked(error, requestId);
      published.add(result);
      return result;
    },
    result(result, requestId) {
      if (result.errors === undefined) return result;
      return { ...result, errors: result.errors.map((error) => mask.error(error, requestId)) };
    },
  };
  return mask;
};

/** What was thrown, however often GraphQL has wrapped it. */
export const rootOf = (error: unknown): unknown => {
  let cause = error;
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError;
  return cause;
};

/** The code that the mask gives an error; nothing is logged. */
export const publicCodeOf = (error: GraphQLError): string => {
  const cause = rootOf(error);
  return cause instanceof DomainError ? cause.code : (ownCodeOf(error, cause) ?? 'INTERNAL');
};

/** The code of an error that GraphQL itself made of a faulty request, or that already carries one; null for all else. */
const ownCodeOf = (outer: GraphQLError, cause: unknown): string | null => {
  const { code } = outer.extensions;
  if (isErrorCode(code) || (typeof code === 'string' && code in REQUEST_STATUS)) return code;
  if (code === 'OPERATION_RESOLUTION_FAILURE') return 'GRAPHQL_VALIDATION_FAILED';
  if (outer.path !== undefined) {
    const isArgument = cause instanceof GraphQLError && cause.message.startsWith('Argument "');
    return isArgument ? 'GRAPHQL_VALIDATION_FAILED' : null;
  }
  if (outer.message.startsWith('Syntax Error')) return 'GRAPHQL_PARSE_FAILED';
  // What stands in the document but at no path failed before execution: validation, or a variable that does not fit
  // (then the scalar's own error is the cause). An error without nodes did not come from the request.
  return cause instanceof GraphQLError || outer.nodes !== undefined ? 'GRAPHQL_VALIDATION_FAILED' : null;
};

const INTERNALS = new Set(['http', 'unexpected', 'originalError']);

const factsOf = ({ extensions }: GraphQLError): Record<string, unknown> =>
  Object.fromEntries(Object.entries(extensions).filter(([name]) => !INTERNALS.has(name)));

const located = (
  outer: GraphQLError | null,
  message: string,
  extensions: Record<string, unknown>,
): GraphQLError =>
  new GraphQLError(message, {
    nodes: outer?.nodes ?? null,
    source: outer?.source ?? null,
    positions: outer?.positions ?? null,
    path: outer?.path ?? null,
    extensions,
  });
