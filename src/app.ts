import { createAuthentication } from './auth/authenticate.ts';
import type { Config } from './config.ts';
import { type Example, isWithoutUsers, makeExample } from './firstStart.ts';
import type { KnownCaller } from './graphql/caller.ts';
import type { GraphQLContext } from './graphql/context.ts';
import { createDoors, type DoorLimits, drainTimesWithin } from './graphql/doors.ts';
import { OPERATION_LIMITS } from './graphql/limits.ts';
import { createSchema } from './graphql/schema.ts';
import { WEBSOCKET_LIMITS } from './graphql/websocket.ts';
import { createOrigins } from './http/cors.ts';
import { createGraphiqlPage } from './http/graphiql.ts';
import { createMetrics } from './http/metrics.ts';
import { OUTGOING_LIMITS } from './http/outgoing.ts';
import { createHub } from './live/hub.ts';
import { createRedisBus } from './live/redisBus.ts';
import type { Loaders } from './loaders.ts';
import { createApiDocs } from './rest/docs.ts';
import { createRestDoor } from './rest/door.ts';
import { ROUTES } from './rest/routes.ts';
import { createExpiring } from './runs/expiring.ts';
import { createPadUpkeep } from './scratchpads/upkeep.ts';
import { createServices, type Services } from './services.ts';
import { log } from './shared/log.ts';
import { CannotListen } from './startFailure.ts';
import { keepStatistics } from './storage/statistics.ts';
import { openStores } from './storage/stores.ts';
import { createEmptying } from './threads/emptying.ts';
import { createMcpDoor } from './tools/mcp/door.ts';
import { createHosts } from './tools/mcp/hosts.ts';

export interface Listening {
  readonly url: string;
  /** Where somebody begins to look around; null where that page is off. */
  readonly graphiql: string | null;
  /** Whether the database is the embedded one. */
  readonly isEmbedded: boolean;
  /** Whether nobody has a key yet: of a database of one's own, where no example is made. */
  readonly isUnused: boolean;
  readonly example: Example | null;
}

export interface App {
  readonly services: Services;
  /**
   * Resolves when requests are taken. The first time with an embedded database it makes an example, after that: a start
   * that cannot listen must not use up the key that is shown once.
   */
  listen(): Promise<Listening>;
  /** Refuses new work, tells readers, finishes what is under way, closes the stores. */
  close(): Promise<void>;
}

/**
 * The only wiring: storage → live → services → doors. Nothing listens yet when it resolves. Aborted by `signal` while
 * the stores are opened it throws, with nothing left behind.
 */
export const createApp = async (config: Config, signal?: AbortSignal): Promise<App> => {
  const opening = openStores(config, signal);
  // Built while the stores open, which is mostly waiting.
  const schema = createSchema();
  const stores = await opening;
  const { database, redis } = stores;
  const bus = createRedisBus({ commands: redis.commands, subscriber: redis.subscriber, log });
  const hub = createHub({ bus, log });
  const authentication = createAuthentication({
    database,
    adminToken: config.adminToken,
    bus,
    onError: (error) => log.warn({ err: error }, 'Authentication could not do its upkeep.'),
    onRunDue: (inMs) => expiring.heard(inMs),
  });
  const padUpkeep = createPadUpkeep({ database, redis: redis.commands, log });
  const statistics = keepStatistics(database, log);
  const emptying = createEmptying({ database, log, onEmptied: padUpkeep.outbox.wake });
  const services = createServices({
    database,
    redis: redis.commands,
    bus,
    hub,
    authentication,
    emptying,
    padUpkeep,
    maxAgentHops: config.maxAgentHops,
    scratchpadTtlSeconds: config.scratchpadTtlSeconds,
    answerBytes: config.limits.answerBytes,
    inboxLeaseSeconds: config.inboxLeaseSeconds,
    inboxDigestSeconds: config.inboxDigestSeconds,
  });
  const expiring = createExpiring({ database, log, onEnded: services.runsExpired });
  const metrics = createMetrics();
  metrics.watchHub(() => hub.counts);
  const graphiql = config.graphiql ? createGraphiqlPage() : null;
  if (graphiql?.missing) log.warn(graphiql.missing);
  const doors = createDoors({
    schema,
    createContext: (caller) => new OperationContext(services, caller),
    authentication,
    readiness: stores.readiness,
    metrics,
    log,
    allowedOrigins: config.allowedOrigins,
    isSchemaOpen: config.openIntrospection,
    suggestions: config.openIntrospection,
    trustedProxies: config.trustProxy,
    page: graphiql === null ? null : (exchange) => graphiql.servePage(exchange),
    routes: (isDraining, connections) => [
      ...(graphiql === null ? [] : [graphiql]),
      createApiDocs(ROUTES),
      createRestDoor({ routes: ROUTES, services, authentication, isDraining, metrics, log }),
      createMcpDoor({
        services,
        authentication,
        connections,
        origins: createOrigins(config.allowedOrigins),
        mayBeSentTo: createHosts({
          listensOn: config.host,
          allowed: config.allowedHosts,
          allowedOrigins: config.allowedOrigins,
        }),
        isDraining,
        metrics,
        log,
      }),
    ],
    limits: limitsOf(config),
  });
  return {
    services,
    listen: async () => {
      const port = await doors.listen(config.port, config.host).catch((error: unknown) => {
        throw new CannotListen(config.host, error);
      });
      const host = config.host.includes(':') ? `[${config.host}]` : config.host;
      const url = `http://${host}:${port}/graphql`;
      const example = stores.embedded ? await makeExample(services) : null;
      const isUnused = !stores.embedded && (await isWithoutUsers(services));
      return {
        url,
        graphiql: graphiql === null ? null : url,
        isEmbedded: stores.embedded,
        isUnused,
        example,
      };
    },
    close: async () => {
      await doors.drain(async (overMs) => {
        services.drain(overMs);
        await hub.drain(overMs);
      });
      services.close();
      await expiring.close();
      await emptying.close();
      await statistics.close();
      await padUpkeep.close();
      await authentication.close();
      hub.close();
      bus.close();
      await stores.close();
    },
  };
};

const limitsOf = ({ limits, shutdownSeconds }: Config): Partial<DoorLimits> => ({
  operation: {
    ...OPERATION_LIMITS,
    nesting: Math.max(OPERATION_LIMITS.nesting, limits.queryDepth + 100),
    depth: limits.queryDepth,
    cost: limits.queryCost,
    answer: limits.answerBytes,
  },
  outgoing: { ...OUTGOING_LIMITS, answer: limits.answerBytes },
  webSocket: { ...WEBSOCKET_LIMITS, subscriptions: limits.subscriptionsPerSocket },
  connections: {
    perCredential: limits.socketsPerCredential,
    perUser: limits.socketsPerUser,
    unknownPerAddress: limits.uninitialisedSocketsPerAddress,
  },
  drain: drainTimesWithin(shutdownSeconds * 1_000),
});

/**
 * Made for one operation, and afresh for each event of a subscription, which mostly brings loaders of its own. The caller
 * is asked only where a resolver asks: what asks nothing of it is the same for every caller.
 */
class OperationContext implements GraphQLContext {
  readonly services: Services;
  readonly #caller: KnownCaller;
  #loaders: Loaders | undefined;
  #signal: AbortSignal | undefined;

  constructor(services: Services, caller: KnownCaller) {
    this.services = services;
    this.#caller = caller;
  }

  get actor(): GraphQLContext['actor'] {
    return this.#caller.actor;
  }

  get session(): GraphQLContext['session'] {
    return this.#caller.session;
  }

  get requestId(): string {
    return this.#caller.requestId;
  }

  get transport(): GraphQLContext['transport'] {
    return this.#caller.transport;
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#caller.signal ?? new AbortController().signal;
    return this.#signal;
  }

  get lastEventId(): string | null {
    return this.#caller.lastEventId;
  }

  get loaders(): Loaders {
    this.#loaders ??= this.services.createLoaders(this.#caller.actor);
    return this.#loaders;
  }

  set loaders(loaders: Loaders) {
    this.#loaders = loaders;
  }
}
