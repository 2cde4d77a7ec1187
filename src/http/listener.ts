import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { DomainError, ERROR_STATUS } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import { RequestGone } from './body.ts';
import { allowOrigin, createOrigins, isPreflight, type Origins, PREFLIGHT_HEADERS } from './cors.ts';
import { type Exchange, type Route, send, sendProblem } from './exchange.ts';
import { createOutgoing, type Outgoing, type OutgoingLimits } from './outgoing.ts';
import { requestIdOf } from './requestId.ts';

export interface UpgradeRoute {
  matches(path: string): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, origins: Origins): void;
}

export interface ListenerOptions {
  readonly routes: readonly Route[];
  readonly upgrades: readonly UpgradeRoute[];
  /** `ALLOWED_ORIGINS`. */
  readonly allowedOrigins: readonly string[];
  readonly log: Logger;
  readonly outgoing?: OutgoingLimits | undefined;
}

/** Times in milliseconds: a client that dawdles over its request is cut off; idle connections are kept for proxies. */
const TIMES = { headers: 10_000, request: 60_000, keepAlive: 65_000, check: 2_000 } as const;

/** The one HTTP server. It knows routes and origins, nothing of what is served. */
export const createListener = ({
  routes,
  upgrades,
  allowedOrigins,
  log,
  outgoing: limits,
}: ListenerOptions): Server => {
  const outgoing = createOutgoing(limits);
  const origins = createOrigins(allowedOrigins);

  const serve = async (exchange: Exchange): Promise<void> => {
    const route = routes.find((candidate) => candidate.matches(exchange.path));
    if (route === undefined) sendProblem(exchange, 404, 'NOT_FOUND', 'Not Found');
    else await route.serve(exchange);
  };

  const onRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const requestId = requestIdOf(request);
    response.setHeader('x-request-id', requestId);
    response.setHeader('x-content-type-options', 'nosniff');
    allowOrigin(origins, request, response);
    const exchange = exchangeOf(request, response, requestId, outgoing);
    try {
      if (isPreflight(request)) preflight(exchange, origins);
      else await serve(exchange);
    } catch (error) {
      if (error instanceof RequestGone) {
        response.destroy();
        return;
      }
      if (error instanceof DomainError && !response.headersSent) {
        sendProblem(exchange, ERROR_STATUS[error.code], error.code, error.message);
        return;
      }
      log.error({ err: error, requestId, path: exchange.path }, 'unexpected error');
      sendProblem(exchange, 500, 'INTERNAL', 'Internal server error');
      // Whatever had begun cannot be ended as if it were whole.
      if (!response.writableEnded) response.destroy();
    }
  };

  const server = createServer({
    headersTimeout: TIMES.headers,
    requestTimeout: TIMES.request,
    keepAliveTimeout: TIMES.keepAlive,
    connectionsCheckingInterval: TIMES.check,
    // Else a second Authorization would be dropped unseen: joined, the two are no credential.
    joinDuplicateHeaders: true,
  });
  server.on('request', (request, response) => {
    // A server that has stopped listening lets no connection linger for another request.
    response.once('close', () => {
      if (!server.listening) setImmediate(() => server.closeIdleConnections());
    });
    void onRequest(request, response);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const { path } = splitUrl(request.url);
    const route = upgrades.find((candidate) => candidate.matches(path));
    if (route === undefined) refuseUpgrade(socket, 404, 'Not Found');
    else route.upgrade(request, socket, head, origins);
  });
  return server;
};

const exchangeOf = (
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  outgoing: Outgoing,
): Exchange => {
  const { path, search } = splitUrl(request.url);
  let query: URLSearchParams | undefined;
  return {
    request,
    response,
    method: request.method ?? 'GET',
    path,
    get query() {
      query ??= new URLSearchParams(search);
      return query;
    },
    requestId,
    outgoing,
  };
};

const splitUrl = (url = '/'): { path: string; search: string } => {
  const at = url.indexOf('?');
  return at === -1 ? { path: url, search: '' } : { path: url.slice(0, at), search: url.slice(at + 1) };
};

const preflight = (exchange: Exchange, origins: Origins): void => {
  if (origins.allowedFor(exchange.request) === null)
    sendProblem(exchange, 403, 'FORBIDDEN', 'This origin is not allowed: see ALLOWED_ORIGINS.');
  else send(exchange, 204, PREFLIGHT_HEADERS, '');
};

/** Answers a handshake in plain HTTP. */
export const refuseUpgrade = (socket: Duplex, status: number, reason: string, detail = reason): void => {
  const body = JSON.stringify({ detail });
  socket.end(
    [
      `HTTP/1.1 ${status} ${reason}`,
      'Connection: close',
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n'),
  );
};
