import type { GraphiQLProps } from 'graphiql';
import { type ExecutionResult, getOperationAST, OperationTypeNode, parse } from 'graphql';
import { createClient } from 'graphql-ws';
import { type Resumable, resumable, type StreamRequest, steady } from '../../client/index.ts';
import { iterate } from '../../client/iterate.ts';
import { asError } from '../../client/problems.ts';
import { createLiveView } from './live.ts';
import { status } from './status.ts';

type Headers = Readonly<Record<string, string>>;

const ENDPOINT = new URL('/graphql', location.href);

/**
 * Queries and mutations by POST; subscriptions over a WebSocket, where they go on by themselves after it broke.
 * GraphiQL asks for the schema before it has read its header editor: then `opened` stands in.
 */
export const createFetcher =
  (opened: Headers): GraphiQLProps['fetcher'] =>
  (parameters, options) => {
    const written = textsOf(options?.headers ?? {});
    const headers = parameters.operationName === 'IntrospectionQuery' && !hasKey(written) ? opened : written;
    const operation = operationIn(parameters.query, parameters.operationName);
    const request: StreamRequest = {
      query: parameters.query,
      ...(operation?.name ? { operationName: operation.name.value } : {}),
      ...(parameters.variables ? { variables: parameters.variables as Record<string, unknown> } : {}),
    };
    const isSubscription = operation?.operation === OperationTypeNode.SUBSCRIPTION;
    return isSubscription ? follow(request, headers) : post(request, headers);
  };

export const post = async (request: StreamRequest, headers: Headers): Promise<ExecutionResult> => {
  const unsendable = Object.keys(headers).find((name) => !isSendable(name, headers[name] ?? ''));
  if (unsendable !== undefined) {
    status.set({ kind: 'unsendable' });
    throw [{ message: `The header ${unsendable} holds what no header may hold. Is the key whole?` }];
  }
  const response = await fetch(ENDPOINT, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify(request),
  }).catch((problem: unknown) => {
    status.set({ kind: 'unreachable' });
    throw [{ message: asError(problem).message }];
  });
  const result = (await response.json()) as ExecutionResult;
  const isRefused = response.status === 401 || isUnauthenticated(result.errors);
  status.set({ kind: isRefused ? (hasKey(headers) ? 'refused' : 'keyless') : 'quiet' });
  return result;
};

/** A key that was copied with a "…" in it, say, is refused by the browser, before anybody is asked. */
const isSendable = (name: string, value: string): boolean => {
  try {
    return new Headers([[name, value]]).has(name);
  } catch {
    return false;
  }
};

/** One socket for each set of headers: a socket has one credential and acts as one participant. */
const clients = new Map<string, Resumable>();
let received = 0;

const clientFor = (headers: Headers): Resumable => {
  const name = JSON.stringify(headers);
  const known = clients.get(name);
  if (known) return known;
  const url = new URL(ENDPOINT);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const client = resumable(createClient({ url: url.href, connectionParams: headers, ...steady }), {
    longestWaitMs: 3_000,
    onRetry: (_problem, waitMs) => status.set({ kind: 'reconnecting', waitMs, received }),
    // The headers are what the user wrote: there is no other key to come back with.
    freshCredential: () => {
      status.set({ kind: hasKey(headers) ? 'refused' : 'keyless' });
      return false;
    },
  });
  clients.set(name, client);
  return client;
};

const follow = (request: StreamRequest, headers: Headers): AsyncIterableIterator<ExecutionResult> => {
  const ended = () => {
    const { kind } = status.get();
    if (kind === 'live' || kind === 'reconnecting') status.set({ kind: 'quiet' });
  };
  return iterate<ExecutionResult>((sink) => {
    const view = createLiveView((result, count) => {
      received = count;
      status.set({ kind: 'live', received });
      sink.next(result as ExecutionResult);
    });
    received = 0;
    return clientFor(headers).subscribe(request, {
      next: (result) => view.add(result),
      error(problem) {
        view.flush();
        ended();
        sink.error(Array.isArray(problem) ? problem : [{ message: reasonOf(problem, headers) }]);
      },
      complete() {
        view.flush();
        ended();
        sink.complete();
      },
    });
  });
};

/** GraphiQL shows an `Error` with its stack, and a list of errors as they are. */
const reasonOf = (problem: unknown, headers: Headers): string => {
  if (!(problem instanceof CloseEvent) || problem.code !== 4403) return asError(problem).message;
  return hasKey(headers) ? 'The server refused this key.' : 'There is no key in the Headers of this tab.';
};

/**
 * The operation that is meant; null where the text cannot be read, which the server then explains. Shortly after a
 * change of tabs GraphiQL still names the operation of the former one.
 */
const operationIn = (query: string, name: string | null | undefined) => {
  try {
    const document = parse(query);
    return getOperationAST(document, name) ?? getOperationAST(document);
  } catch {
    return null;
  }
};

const isUnauthenticated = (errors: ExecutionResult['errors']): boolean =>
  errors?.some(({ extensions }) => extensions?.code === 'UNAUTHENTICATED') ?? false;

const hasKey = (headers: Headers): boolean =>
  Object.entries(headers).some(
    ([name, value]) =>
      /^(authorization|x-api-key)$/i.test(name) && value.replace(/^bearer/i, '').trim() !== '',
  );

export const textsOf = (headers: Readonly<Record<string, unknown>>): Headers =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
