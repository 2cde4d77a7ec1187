import type { IncomingMessage, ServerResponse } from 'node:http';

/** One HTTP request and the response to it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** The URL's path, as it was sent. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly requestId: string;
}

export interface Route {
  /** Whether the path is this route's; then `serve` answers, whatever the method. */
  matches(path: string): boolean;
  serve(exchange: Exchange): Promise<void> | void;
}

export type Headers = Readonly<Record<string, string>>;

/** Answers once; does nothing where an answer has begun or nobody is left to read it. */
export const send = (
  { request, response, method }: Exchange,
  status: number,
  headers: Headers,
  body: string | Buffer,
): void => {
  if (response.headersSent || response.destroyed) return;
  // A body that nobody will read is not waited for.
  const rest: Headers =
    request.complete || method === 'GET' || method === 'HEAD' ? {} : { connection: 'close' };
  const length: Headers = status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  response.writeHead(status, { ...headers, ...rest, ...length });
  response.end(method === 'HEAD' || status === 204 ? undefined : body);
};

const JSON_TYPE = 'application/json; charset=utf-8';

export const sendJson = (exchange: Exchange, status: number, body: unknown, headers: Headers = {}): void =>
  send(exchange, status, { 'content-type': JSON_TYPE, ...headers }, JSON.stringify(body));

/** What routes outside GraphQL answer for a failure; the stable code travels beside it. */
export const sendProblem = (
  exchange: Exchange,
  status: number,
  code: string,
  detail: string,
  headers: Headers = {},
): void => sendJson(exchange, status, { detail }, { 'x-error-code': code, ...headers });
