import type { Authentication } from '../auth/session.ts';
import { discardBody, isJson, RequestGone, readBody, utf8 } from '../http/body.ts';
import { keyInUrl, presentedIn } from '../http/credential.ts';
import { type Exchange, type Route, sendJson } from '../http/exchange.ts';
import type { Metrics } from '../http/metrics.ts';
import type { Services } from '../services.ts';
import { unavailable } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import { checkRequest } from './input.ts';
import { InvalidRequest, issueOf } from './issues.ts';
import { type Problem, problemOf, Refusal } from './problems.ts';
import type { Answered, Method, RestRoute } from './route.ts';
import { createRouter } from './router.ts';
import { sendStreamed } from './streamed.ts';

export interface RestDeps {
  readonly routes: readonly RestRoute[];
  readonly services: Services;
  readonly authentication: Pick<Authentication, 'authenticate'>;
  readonly isDraining: () => boolean;
  readonly metrics: Pick<Metrics, 'operationDone'>;
  readonly log: Logger;
}

/** Bytes of a body: a legal megabyte of text can be three when it is escaped. */
export const REST_LIMITS = { content: 8 * 1024 * 1024, other: 1024 * 1024 } as const;

/** Answers are one's own, and of this moment. */
const NO_STORE = { 'cache-control': 'no-store' } as const;

/** The routes of the table over HTTP. Everything about a request that no service has to know is settled here. */
export const createRestDoor = ({
  routes,
  services,
  authentication,
  isDraining,
  metrics,
  log,
}: RestDeps): Route => {
  const router = createRouter(routes);

  /** What has been found out about a request when it fails. */
  interface Progress {
    route: RestRoute | null;
    isServed: boolean;
  }

  const find = (exchange: Exchange): { route: RestRoute; params: Readonly<Record<string, string>> } => {
    const match = router.find(exchange.path);
    if (match === null) throw new Refusal(404, 'NOT_FOUND', 'Not Found');
    const { methods, params } = match;
    const method = exchange.method === 'HEAD' ? 'GET' : exchange.method;
    const route = methods.get(method as Method);
    if (route === undefined)
      throw new Refusal(405, 'BAD_REQUEST', 'Method Not Allowed', { allow: allowed([...methods.keys()]) });
    return { route, params };
  };

  const answer = async (exchange: Exchange, progress: Progress): Promise<Answered<unknown>> => {
    const { route, params } = find(exchange);
    progress.route = route;
    if (isDraining()) throw unavailable('The server is shutting down. Try again.');
    refuseKeyInUrl(exchange.query);
    const presented = presentedIn(exchange.request.headers);
    const first = await authentication.authenticate(presented);
    const isAwaited = hasBody(exchange);
    const body = isAwaited ? await bodyOf(exchange, route) : null;
    const checked = checkRequest(route, {
      params,
      query: exchange.query,
      headers: exchange.request.headers,
      body,
    });
    // Once more: a body, also one that is only read away, may have been long in coming, and the credential has ended meanwhile.
    const actor = isAwaited ? await authentication.authenticate(presented) : first;
    progress.isServed = true;
    return route.serve({ actor, services, signal: goneSignal(exchange), params, ...checked });
  };

  const tell = (exchange: Exchange, error: unknown, { route, isServed }: Progress): Problem => {
    const problem = problemOf(error, isServed ? route : null);
    if (problem !== null) return problem;
    log.error({ err: error, requestId: exchange.requestId, path: route?.path }, 'unexpected error');
    return { status: 500, code: 'INTERNAL', detail: 'Internal server error', headers: {} };
  };

  return {
    matches: (path) => PREFIXES.some((prefix) => path.startsWith(prefix)),
    async serve(exchange) {
      const started = performance.now();
      const progress: Progress = { route: null, isServed: false };
      const count = (code: string): void =>
        metrics.operationDone({
          transport: 'rest',
          kind: progress.route?.method ?? 'refused',
          field: progress.route?.path ?? 'none',
          code,
          seconds: (performance.now() - started) / 1_000,
        });
      try {
        const answered = await answer(exchange, progress);
        const headers = { ...NO_STORE, ...answered.headers };
        if ('pages' in answered) await sendStreamed(exchange, answered.pages, headers);
        else sendJson(exchange, 200, answered.body, headers);
        count('OK');
      } catch (error) {
        if (error instanceof RequestGone) throw error;
        const { status, code, detail, headers } = tell(exchange, error, progress);
        count(code);
        if (exchange.response.headersSent) {
          // What had begun cannot be ended as if it were whole.
          exchange.response.destroy();
          return;
        }
        // A client that is still sending would not read the answer.
        if (exchange.method !== 'GET' && exchange.method !== 'HEAD')
          await discardBody(exchange.request, 4 * REST_LIMITS.content);
        sendJson(exchange, status, { detail }, { ...NO_STORE, 'x-error-code': code, ...headers });
      }
    },
  };
};

/** Aborted when the response is over before it was answered. */
const goneSignal = ({ response }: Exchange): AbortSignal => {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  response.once('close', () => gone.abort());
  return gone.signal;
};

const PREFIXES = ['/v1/', '/api/v1/', '/tools/'] as const;

const allowed = (methods: readonly Method[]): string =>
  methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');

const refuseKeyInUrl = (query: URLSearchParams): void => {
  const name = keyInUrl(query);
  if (name === undefined) return;
  const message = 'A key never goes into a URL: send it as a header.';
  throw new InvalidRequest([issueOf('value_error', message, ['query', name], null)]);
};

const hasBody = ({ request: { headers } }: Exchange): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;

/** The body's text where the route takes one, else null: what such a route is sent is read away. */
const bodyOf = async ({ request }: Exchange, route: RestRoute): Promise<string | null> => {
  if (route.body !== undefined && !isJson(request))
    throw new Refusal(
      415,
      'BAD_REQUEST',
      'A body is JSON: send "Content-Type: application/json", in UTF-8 and uncompressed.',
    );
  const bytes = await readBody(request, route.isContent === true ? REST_LIMITS.content : REST_LIMITS.other);
  if (route.body === undefined) return null;
  const text = utf8(bytes);
  if (text === null)
    throw new InvalidRequest([issueOf('json_invalid', 'The body is not valid UTF-8', ['body'], {})]);
  return text;
};
