import { readdirSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createFileCache, sendFile } from './files.ts';

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
}

export interface GraphiqlPage {
  /** Null, or the one line that says why there is no page. */
  readonly missing: string | null;
  /** Answers with the page itself. */
  servePage(exchange: Pick<Exchange, 'request' | 'response'>): Promise<void>;
  /** Whether the path is the page's, one of its files', or `/`, which leads to the page. */
  matches(path: string): boolean;
  serve(exchange: Exchange): Promise<void>;
}

const PREFIX = '/graphiql/';
const BUILT = fileURLToPath(new URL('../../dist/pages/graphiql/', import.meta.url));

/**
 * Serves the GraphiQL page as it was built, from this server alone. Only the files that were there at the start
 * are known, by their exact names: a path cannot lead anywhere else.
 */
export const createGraphiqlPage = (directory: string = BUILT): GraphiqlPage => {
  const names = namesIn(directory);
  const missing = names.has('index.html') ? null : 'GraphiQL is not built: run `npm run build:pages`.';
  const file = createFileCache((name) => `${directory}/${name}`);

  const send = async ({ request, response }: Pick<Exchange, 'request' | 'response'>, name: string) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return answer(response, 405, 'Method Not Allowed');
    if (missing !== null) return answer(response, 503, missing);
    if (!names.has(name)) return answer(response, 404, 'Not Found');
    const isPage = name === 'index.html';
    sendFile({ request, response }, name, await file(name), {
      vary: isPage ? 'Accept, Accept-Encoding' : 'Accept-Encoding',
      // The names of the files carry a hash of what is in them; only the page itself changes under its name.
      'cache-control': isPage ? 'no-cache' : 'public, max-age=31536000, immutable',
      policy: isPage ? policy(request.headers.host) : WORKER_POLICY,
    });
  };

  return {
    missing,
    servePage: (exchange) => send(exchange, 'index.html'),
    matches: (path) => path === '/' || path === '/graphiql' || path.startsWith(PREFIX),
    async serve(exchange) {
      if (exchange.path === '/') return toPage(exchange);
      return send(exchange, exchange.path.slice(PREFIX.length) || 'index.html');
    },
  };
};

const namesIn = (directory: string): ReadonlySet<string> => {
  try {
    const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
    const paths = entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
    return new Set(paths.map((path) => relative(directory, path).replaceAll('\\', '/')));
  } catch {
    return new Set();
  }
};

/** For whoever types the address alone; the fragment with a key in it goes along in the browser. */
const toPage = ({ request, response }: Pick<Exchange, 'request' | 'response'>): void => {
  if (request.method !== 'GET' && request.method !== 'HEAD') answer(response, 405, 'Method Not Allowed');
  else response.writeHead(302, { location: '/graphql', 'cache-control': 'no-store' }).end();
};

const answer = (response: ServerResponse, status: number, text: string): void => {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
  response.end(`${text}\n`);
};

/** A worker's rights are those of its own response, not of the page that starts it. */
const WORKER_POLICY = "default-src 'none'; script-src 'self'";

/**
 * Scripts, workers and connections of this server alone; the editor writes its styles itself. Not every browser
 * counts a WebSocket to the same host as `'self'`, so that is named.
 */
const policy = (host: string | undefined): string => {
  const sockets = host !== undefined && /^[\w.:[\]-]+$/.test(host) ? ` ws://${host} wss://${host}` : '';
  return [
    "default-src 'none'",
    "script-src 'self'",
    "worker-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    `connect-src 'self'${sockets}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
};
