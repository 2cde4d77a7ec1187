import type { GraphQLError, GraphQLSchema } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { Logger } from '../shared/log.ts';
import type { Caller, CreateContext } from './caller.ts';
import { useDocuments } from './documents.ts';
import { codeOf, createErrorMask, type ErrorMask, statusOf } from './errors.ts';
import { useExecution } from './execution.ts';
import { OPERATION_LIMITS, type OperationLimits } from './limits.ts';
import { createOperations, type Enveloped, type Operations } from './operations.ts';

export interface GraphQLServerOptions {
  readonly schema: GraphQLSchema;
  readonly createContext: CreateContext;
  readonly log: Logger;
  /** Whether "Did you mean …?" may tell of names in the schema. */
  readonly suggestions: boolean;
  readonly limits?: OperationLimits;
}

/** An answer to one HTTP request. */
export interface Answer {
  /** `OK`, or the code of its first error. */
  readonly code: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface GraphQLServer {
  readonly operations: Operations;
  readonly mask: ErrorMask;
  /** Yoga's own HTTP handling of a request: for whatever is not a plain JSON POST or a stream. */
  answer(request: HttpRequest, caller: Caller): Promise<Answer>;
}

type ServerContext = { readonly caller: Caller; readonly outcome: { code: string } };

/** Yoga with its plugins, in order. Nothing of it listens; CORS, sizes and credentials are the doors' business. */
export const createGraphQLServer = ({
  schema,
  createContext,
  log,
  suggestions,
  limits = OPERATION_LIMITS,
}: GraphQLServerOptions): GraphQLServer => {
  const mask = createErrorMask({ log, suggestions });
  const yoga = createYoga<ServerContext>({
    schema,
    graphqlEndpoint: '/graphql',
    plugins: [useDocuments(limits), useExecution({ createContext, limits, mask }), usePublicErrors(mask)],
    // Replaced by ours: see the plugins.
    maskedErrors: false,
    parserAndValidationCache: false,
    // Done before a request gets here.
    cors: false,
    maxRequestBodySize: false,
    // Not served.
    batching: false,
    multipart: false,
    graphiql: false,
    landingPage: false,
    logging: false,
  });

  return {
    mask,
    operations: createOperations({
      schema,
      limits,
      mask,
      envelop: (context) => yoga.getEnveloped(context) as Enveloped,
    }),
    async answer({ method, url, headers, body }, caller) {
      const request = new yoga.fetchAPI.Request(url, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
      });
      const outcome = { code: 'OK' };
      const response = await yoga.fetch(request, { caller, outcome });
      return {
        code: outcome.code,
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: await response.text(),
      };
    },
  };
};

/** The last step of Yoga's own handling: what the other doors answer too, with the status that belongs to it. */
const usePublicErrors = (mask: ErrorMask): Plugin<object, ServerContext> => ({
  onResultProcess({ request, result, setResult, serverContext }) {
    if (Array.isArray(result) || Symbol.asyncIterator in result || result.errors === undefined) return;
    const { requestId } = serverContext.caller;
    const given: readonly GraphQLError[] = result.errors;
    const own = given.map((error) => httpOf(error));
    const errors = given.map((error) => mask.error(error, requestId));
    serverContext.outcome.code = codeOf({ errors });
    if (result.data !== undefined) {
      setResult({ ...result, errors });
      return;
    }
    const status = Math.max(
      statusOf(errors, request.headers.get('accept') ?? ''),
      ...own.map((http) => http.status),
    );
    const headers = Object.assign({}, ...own.map((http) => http.headers));
    setResult({ ...result, errors, extensions: { http: { status, headers } } });
  },
});

/** 405 is Yoga's to say, and which methods it takes. */
const httpOf = (error: GraphQLError): { status: number; headers: Record<string, string> } => {
  const http = error.extensions.http as { status?: number; headers?: Record<string, string> } | undefined;
  return http?.status === 405 ? { status: 405, headers: http.headers ?? {} } : { status: 0, headers: {} };
};
