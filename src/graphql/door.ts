import type { GraphQLError } from 'graphql';
import type { Actor } from '../auth/actor.ts';
import { noCredential } from '../auth/presented.ts';
import type { Authentication, Presented } from '../auth/session.ts';
import { names, negotiate } from '../http/accept.ts';
import { discardBody, isJson, RequestGone, readBody, utf8 } from '../http/body.ts';
import { isPresented, keyInUrl, presentedIn } from '../http/credential.ts';
import { type Exchange, type Headers, type Route, send } from '../http/exchange.ts';
import { unavailable } from '../shared/errors.ts';
import { type Accounts, clock } from './accounts.ts';
import type { Caller } from './caller.ts';
import { type PublicResult, requestError, statusOf } from './errors.ts';
import { isRefused, isStream, type OperationParams, type Outline } from './operations.ts';
import { parseJson, readParams, readQueryParams } from './params.ts';
import type { GraphQLServer, HttpRequest } from './server.ts';
import type { SseDoor } from './sse.ts';

export interface DoorDeps {
  readonly server: GraphQLServer;
  readonly sse: SseDoor;
  readonly accounts: Accounts;
  readonly authentication: Authentication;
  readonly isDraining: () => boolean;
  /** Whether the schema may be read without a credential. */
  readonly isSchemaOpen: boolean;
  /** Serves the page to a browser that opens the address; null where there is none. */
  readonly page: ((exchange: Exchange) => Promise<void> | void) | null;
  /** Bytes of a request's body. */
  readonly bodyLimit?: number;
}

export const BODY_LIMIT = 8 * 1024 * 1024;
const JSON_TYPES = ['application/json', 'application/graphql-response+json'] as const;
const ANSWER_TYPES = [...JSON_TYPES, 'text/event-stream'] as const;
type JsonType = (typeof JSON_TYPES)[number];

/**
 * `/graphql` over HTTP. A plain JSON POST is answered here, over the same plugins as Yoga's own handling and with
 * the same answers at a quarter of its cost; GET goes to Yoga; what asks for an event stream, to the SSE door.
 */
export const createDoor = (deps: DoorDeps): Route => {
  const { server, sse, authentication, isDraining, isSchemaOpen, page, bodyLimit = BODY_LIMIT } = deps;
  const { mask, operations } = server;

  /** Null: nobody, who may read the schema where that is open. */
  const identify = async (presented: Presented): Promise<Actor | null> => {
    if (isPresented(presented)) return authentication.authenticate(presented);
    if (isSchemaOpen) return null;
    throw noCredential();
  };

  const readRequest = async (exchange: Exchange): Promise<OperationParams> => {
    if (exchange.method === 'GET') return readQueryParams(exchange.query);
    const text = utf8(await readBody(exchange.request, bodyLimit));
    if (text === null) throw requestError('BAD_REQUEST', 'The body is not valid UTF-8.');
    return readParams(parseJson(text, 'The body'));
  };

  const serveOnce = async (
    exchange: Exchange,
    params: OperationParams,
    actor: Actor | null,
    type: JsonType,
    byYoga: Outline | null,
  ): Promise<void> => {
    const { response, requestId } = exchange;
    const controller = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) controller.abort();
    });
    const { signal } = controller;
    const caller: Caller = { actor, session: null, requestId, transport: 'http', signal, lastEventId: null };
    if (byYoga !== null) await answerWithYoga(deps, exchange, byYoga, caller, type);
    else await answerFast(deps, exchange, params, caller, type);
  };

  const serve = async (exchange: Exchange): Promise<void> => {
    const { method, request, query } = exchange;
    const { accept } = request.headers;
    if (method !== 'GET' && method !== 'POST') throw notBy('GET, POST');
    if (isDraining()) throw unavailable('The server is shutting down. Try again.');
    if (method === 'GET' && page !== null && names(accept, 'text/html') && !query.has('ticket'))
      return page(exchange);
    const key = keyInUrl(query);
    if (key !== undefined)
      throw requestError(
        'BAD_REQUEST',
        `A key never goes into a URL ("${key}"): send it as a header, or use a ticket.`,
      );
    const type = negotiate(accept, ANSWER_TYPES);
    if (type === null) throw new Refusal(406, NOT_ACCEPTABLE);
    if (method === 'POST' && !isJson(request)) throw new Refusal(415, NOT_JSON);
    const presented = presentedIn(request.headers);
    const ticket = type === EVENT_STREAM ? query.get('ticket') : null;
    if (ticket === null) await identify(presented);
    const params = await readRequest(exchange);
    const takesStream = names(accept, EVENT_STREAM);
    const outline = method === 'GET' || takesStream ? operations.outline(params) : null;
    if (outline?.kind === 'mutation' && method === 'GET') throw notBy('POST');
    if (type === EVENT_STREAM || (outline?.kind === 'subscription' && takesStream))
      return sse.serve(exchange, params, presented, ticket);
    // Once more: the body may have been long in coming, and the credential has ended meanwhile.
    const actor = await identify(presented);
    // Yoga does not say which operation it could not find.
    return serveOnce(exchange, params, actor, type, method === 'GET' ? outline : null);
  };

  return {
    matches: (path) => path === '/graphql',
    async serve(exchange) {
      try {
        await serve(exchange);
      } catch (error) {
        if (error instanceof RequestGone || exchange.response.headersSent) throw error;
        // A client that is still sending would not read the answer.
        if (exchange.method === 'POST') await discardBody(exchange.request, 4 * bodyLimit);
        if (error instanceof Refusal) return sendFailure(exchange, error.status, error.answer, error.headers);
        const failure = mask.error(error, exchange.requestId);
        sendFailure(exchange, statusOf([failure], ''), failure);
      }
    },
  };
};

const EVENT_STREAM = 'text/event-stream';
const NOT_JSON = requestError(
  'BAD_REQUEST',
  'A POST carries "Content-Type: application/json", in UTF-8 and uncompressed.',
);
const NOT_ACCEPTABLE = requestError('BAD_REQUEST', `An answer is one of ${ANSWER_TYPES.join(', ')}.`);

const answerFast = async (
  { server, accounts }: DoorDeps,
  exchange: Exchange,
  params: OperationParams,
  caller: Caller,
  type: JsonType,
): Promise<void> => {
  const operation = server.operations.begin(params, caller);
  if (isRefused(operation)) {
    accounts.refused(caller, operation);
    sendResult(exchange, operation, type);
    return;
  }
  const result = await accounts.run(operation, caller);
  if (isStream(result)) throw new Error('A stream where one answer was awaited.');
  sendResult(exchange, result, type);
};

/** Yoga's own handling, given the one media type that was agreed on. */
const answerWithYoga = async (
  { server, accounts }: DoorDeps,
  exchange: Exchange,
  outline: Outline,
  caller: Caller,
  type: JsonType,
): Promise<void> => {
  const request: HttpRequest = {
    method: 'GET',
    url: `http://localhost/graphql?${exchange.query.toString()}`,
    headers: { accept: type },
  };
  const started = clock();
  const { status, code, headers, body } = await server.answer(request, caller);
  accounts.answered(outline, caller, code, started);
  send(exchange, status, { ...headers, ...challenge(status) }, body);
};

const sendResult = (exchange: Exchange, result: PublicResult, type: string): void => {
  const status =
    result.errors === undefined || result.data !== undefined ? 200 : statusOf(result.errors, type);
  const headers: Headers = { 'content-type': `${type}; charset=utf-8`, ...challenge(status) };
  send(exchange, status, headers, JSON.stringify(result));
};

const sendFailure = (
  exchange: Exchange,
  status: number,
  error: GraphQLError,
  headers: Headers = {},
): void => {
  const type = negotiate(exchange.request.headers.accept, JSON_TYPES) ?? 'application/json';
  const all = { 'content-type': `${type}; charset=utf-8`, ...challenge(status), ...retry(error), ...headers };
  send(exchange, status, all, JSON.stringify({ errors: [error] }));
};

/** An answer with a status that its code alone does not tell. */
class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(
    readonly status: number,
    readonly answer: GraphQLError,
    readonly headers: Headers = {},
  ) {
    super(answer.message);
  }
}

const notBy = (allow: string): Refusal =>
  new Refusal(405, requestError('BAD_REQUEST', `This is done with ${allow.replace(', ', ' or ')}.`), {
    allow,
  });

/** Source: RFC 9110 §11.6.1. */
const challenge = (status: number): Headers =>
  status === 401 ? { 'www-authenticate': 'Bearer, APIKey' } : {};

const retry = ({ extensions }: GraphQLError): Headers => {
  const { retryAfterMs, code } = extensions;
  if (typeof retryAfterMs === 'number') return { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) };
  return code === 'UNAVAILABLE' ? { 'retry-after': '1' } : {};
};
