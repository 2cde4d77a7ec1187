import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { GraphQLSchema } from 'graphql';
import type { Authentication } from '../auth/session.ts';
import {
  CONNECTION_CAPS,
  type ConnectionCaps,
  type Connections,
  createConnections,
} from '../http/connections.ts';
import type { Exchange, Route } from '../http/exchange.ts';
import { healthRoutes, type Readiness } from '../http/health.ts';
import { createListener } from '../http/listener.ts';
import type { Metrics } from '../http/metrics.ts';
import type { OutgoingLimits } from '../http/outgoing.ts';
import type { Logger } from '../shared/log.ts';
import { createAccounts } from './accounts.ts';
import type { CreateContext } from './caller.ts';
import { createDoor } from './door.ts';
import { OPERATION_LIMITS, type OperationLimits } from './limits.ts';
import { createGraphQLServer } from './server.ts';
import { createSseDoor } from './sse.ts';
import { createWebSocketDoor, WEBSOCKET_LIMITS, type WebSocketLimits } from './websocket.ts';

export interface DoorsOptions {
  readonly schema: GraphQLSchema;
  readonly createContext: CreateContext;
  readonly authentication: Authentication;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** `ALLOWED_ORIGINS`; `*` for any. A page's own origin always works. */
  readonly allowedOrigins: readonly string[];
  /** Whether the schema may be read without a credential. */
  readonly isSchemaOpen: boolean;
  /** Whether "Did you mean …?" may tell of names in the schema. */
  readonly suggestions: boolean;
  /** How many proxies in front add to `X-Forwarded-For`: the client's address is the one that the outermost saw. */
  readonly trustedProxies: number;
  /** What a browser that opens `/graphql` gets; null where there is no page. */
  readonly page: ((exchange: Exchange) => Promise<void> | void) | null;
  /** What else is served; it is told whether new work is to be refused, and where long-lived connections are counted. */
  readonly routes?: (isDraining: () => boolean, connections: Connections) => readonly Route[];
  readonly limits?: Partial<DoorLimits>;
}

export interface DoorLimits {
  readonly operation: OperationLimits;
  readonly webSocket: WebSocketLimits;
  readonly connections: ConnectionCaps;
  /** Bytes of a request's body. */
  readonly body: number;
  readonly drain: DrainTimes;
  readonly outgoing: OutgoingLimits;
}

/** Milliseconds. */
export interface DrainTimes {
  /** Over which readers are told, so that they do not all come back at once. */
  readonly over: number;
  /** After which a socket is closed whatever runs on it. */
  readonly sockets: number;
  /** After which nothing is waited for. */
  readonly all: number;
}

/** How a shutdown of `ms` is divided: the last fifth is left to the stores. */
export const drainTimesWithin = (ms: number): DrainTimes => ({
  // Longer than this helps nobody who has to come back.
  over: Math.min(ms * 0.3, 10_000),
  sockets: ms * 0.6,
  all: ms * 0.8,
});

/** Every way in: HTTP, event streams and WebSocket on one port. */
export interface Doors {
  /** Resolves with the port once connections are accepted. */
  listen(port: number, host?: string): Promise<number>;
  /**
   * Refuses new work, has `tellReaders` end the streams over the milliseconds it is given, lets operations in flight
   * finish and sockets close with 1012. Resolves when everything is closed: after `all` of
   * the drain times at the latest.
   */
  drain(tellReaders: (overMs: number) => Promise<void>): Promise<void>;
  /** Ends whatever is left at once. */
  close(): Promise<void>;
}

export const createDoors = (options: DoorsOptions): Doors => {
  const { authentication, metrics, log, limits = {} } = options;
  const { webSocket = WEBSOCKET_LIMITS, drain: times = drainTimesWithin(10_000) } = limits;
  let draining = false;
  const isDraining = (): boolean => draining;

  const server = createGraphQLServer({ ...options, limits: limits.operation ?? OPERATION_LIMITS });
  const { operations, mask } = server;
  const accounts = createAccounts(metrics);
  const connections = createConnections(limits.connections ?? CONNECTION_CAPS);
  const shared = { operations, mask, accounts, authentication, connections, metrics, log, isDraining };
  const sse = createSseDoor({ ...shared, limits: webSocket });
  const sockets = createWebSocketDoor({
    ...shared,
    limits: webSocket,
    addressOf: addressOf(options.trustedProxies),
  });
  const door = createDoor({
    ...options,
    server,
    sse,
    accounts,
    isDraining,
    ...(limits.body === undefined ? {} : { bodyLimit: limits.body }),
  });
  const listener = createListener({
    routes: [
      door,
      ...healthRoutes(options.readiness, metrics, isDraining),
      ...(options.routes?.(isDraining, connections) ?? []),
    ],
    upgrades: [sockets],
    allowedOrigins: options.allowedOrigins,
    log,
    outgoing: limits.outgoing,
  });

  const closed = (): Promise<void> =>
    new Promise((resolve) => {
      listener.close(() => resolve());
    });

  return {
    listen: (port, host) => listening(listener, port, host),
    async drain(tellReaders) {
      draining = true;
      const end = closed();
      const timer = setTimeout(() => {
        sockets.close();
        listener.closeAllConnections();
      }, times.all);
      await Promise.all([tellReaders(times.over), sockets.drain(times.over, times.sockets)]);
      sockets.close();
      await end;
      clearTimeout(timer);
    },
    async close() {
      draining = true;
      const end = closed();
      sockets.close();
      listener.closeAllConnections();
      await end;
    },
  };
};

const listening = (listener: Server, port: number, host?: string): Promise<number> =>
  new Promise((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(port, host, () => {
      listener.off('error', reject);
      resolve((listener.address() as AddressInfo).port);
    });
  });

/** What stands further left in the header than the trusted proxies wrote is the client's own word. */
const addressOf =
  (trustedProxies: number) =>
  ({ headers, socket }: IncomingMessage): string => {
    const forwarded = headers['x-forwarded-for'];
    const addresses = typeof forwarded === 'string' ? forwarded.split(',') : [];
    const address =
      trustedProxies === 0 ? undefined : addresses.at(-Math.min(trustedProxies, addresses.length))?.trim();
    return address ?? socket.remoteAddress ?? 'unknown';
  };
