import { type Exchange, type Route, send, sendJson } from './exchange.ts';
import type { Metrics } from './metrics.ts';

/** What the process needs, each by name: `'ready'`, or in a few words what is wrong. Answers within two seconds. */
export type Readiness = () => Promise<Readonly<Record<string, string>>>;

/** Liveness says that the process answers; readiness that it can serve: every store reachable, migrations applied. */
export const healthRoutes = (readiness: Readiness, metrics: Metrics, isDraining: () => boolean): Route[] => [
  route('/healthz', (exchange) => sendJson(exchange, 200, { status: 'alive' }, NO_STORE)),
  route('/readyz', async (exchange) => {
    const needs = { ...(await readiness()), ...(isDraining() ? { server: 'is shutting down' } : {}) };
    const isReady = Object.values(needs).every((state) => state === 'ready');
    sendJson(exchange, isReady ? 200 : 503, { status: isReady ? 'ready' : 'not ready', needs }, NO_STORE);
  }),
  route('/metrics', async (exchange) =>
    send(exchange, 200, { 'content-type': metrics.contentType, ...NO_STORE }, await metrics.text()),
  ),
];

const NO_STORE = { 'cache-control': 'no-store' } as const;

const route = (path: string, serve: (exchange: Exchange) => Promise<void> | void): Route => ({
  matches: (candidate) => candidate === path,
  serve(exchange) {
    if (exchange.method === 'GET' || exchange.method === 'HEAD') return serve(exchange);
    return sendJson(exchange, 405, { detail: 'Method Not Allowed' }, { allow: 'GET, HEAD' });
  },
});
