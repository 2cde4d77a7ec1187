import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Outgoing } from './outgoing.ts';

/** One HTTP request and the response to it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** The URL's path, as it was sent. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly requestId: string;
  readonly outgoing: Outgoing;
}

export interface Route {
  /** Whether the path is this route's; then `serve` answers, whatever the method. */
  matches(path: string): boolean;
  serve(exchange: Exchange): Promise<void> | void;
}

export type Headers = Readonly<Record<string, string>>;

/**
 * Answers once; does nothing where an answer has begun or nobody is left to read it. Who does not read is let go. Throws
 * `RATE_LIMITED` or `UNAVAILABLE`, with nothing said yet, where a large answer would have to wait beside too much else.
 */
export const send = (
  { request, response, method, outgoing }: Exchange,
  status: number,
  headers: Headers,
  body: string | Buffer,
): void => {
  if (response.headersSent || response.destroyed) return;
  // A body that nobody will read is not waited for.
  const rest: Headers =
    request.complete || method === 'GET' || method === 'HEAD' ? {} : { connection: 'close' };
  const bytes = Buffer.byteLength(body);
  outgoing.begin(request, response, bytes);
  const length: Headers = status === 204 ? {} : { 'content-length': String(bytes) };
  response.writeHead(status, { ...headers, ...rest, ...length });
  response.end(method === 'HEAD' || status === 204 ? undefined : body);
};

const JSON_TYPE = 'application/json; charset=utf-8';

/** As `send`; throws `QUERY_TOO_EXPENSIVE` for what is larger than an answer may be, before it is made a text. */
export const sendJson = (exchange: Exchange, status: number, body: unknown, headers: Headers = {}): void => {
  exchange.outgoing.requireFitting(body);
  send(exchange, status, { 'content-type': JSON_TYPE, ...headers }, JSON.stringify(body));
};

/** What routes outside GraphQL answer for a failure; the stable code travels beside it. */
export const sendProblem = (
  exchange: Exchange,
  status: number,
  code: string,
  detail: string,
  headers: Headers = {},
): void => sendJson(exchange, status, { detail }, { 'x-error-code': code, ...headers });
