import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Which web pages may talk to this server from another origin. No cookies and no credentials of the browser's are
 * ever used, so a page has what its own script holds and nothing else; its own origin always works.
 */
export interface Origins {
  /** `Access-Control-Allow-Origin` for this request's origin; null where it has none, or one that is not allowed. */
  allowedFor(request: IncomingMessage): string | null;
  /** False for an origin that may not open a WebSocket here. True without one: that is no browser. */
  mayConnect(request: IncomingMessage): boolean;
}

export const createOrigins = (allowed: readonly string[]): Origins => {
  const isAny = allowed.includes('*');
  const listed = new Set(allowed.map(normal));
  const isSame = (origin: string, host: string | undefined): boolean => {
    const at = URL.canParse(origin) ? new URL(origin) : null;
    return at !== null && host !== undefined && at.host !== '' && at.host === host.toLowerCase();
  };
  const isAllowed = (request: IncomingMessage, origin: string): boolean =>
    isAny || listed.has(normal(origin)) || isSame(origin, request.headers.host);
  return {
    allowedFor(request) {
      const { origin } = request.headers;
      if (origin === undefined || !isAllowed(request, origin)) return null;
      return isAny ? '*' : origin;
    },
    mayConnect(request) {
      const { origin } = request.headers;
      return origin === undefined || isAllowed(request, origin);
    },
  };
};

const normal = (origin: string): string => origin.toLowerCase().replace(/\/$/, '');

const ALLOWED_HEADERS = [
  'authorization',
  'content-type',
  'idempotency-key',
  'if-match',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'x-act-as',
  'x-api-key',
  'x-request-id',
].join(', ');
const EXPOSED_HEADERS = [
  'etag',
  'link',
  'mcp-session-id',
  'retry-after',
  'www-authenticate',
  'x-cursor',
  'x-entry-seq',
  'x-error-code',
  'x-expires-at',
  'x-request-id',
].join(', ');

/** Sets the headers that let an allowed origin's page read the answer. */
export const allowOrigin = (origins: Origins, request: IncomingMessage, response: ServerResponse): void => {
  response.setHeader('vary', 'Origin');
  const origin = origins.allowedFor(request);
  if (origin === null) return;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-expose-headers', EXPOSED_HEADERS);
};

export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' &&
  headers.origin !== undefined &&
  headers['access-control-request-method'] !== undefined;

export const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers': ALLOWED_HEADERS,
  'access-control-max-age': '600',
} as const;
