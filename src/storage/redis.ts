import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import { AbstractConnector, Cluster, Redis, type RedisOptions } from 'ioredis';
import { log } from '../shared/log.ts';
import { warnOfEviction } from './eviction.ts';
import { parseRedisUrl, type RedisLogin, type RedisNode, type RedisPlace } from './redisUrl.ts';

/**
 * The connections of one process. A command that finds Redis away fails at once, one that gets no answer within
 * 1.5 s (`UNAVAILABLE`, see `conflict.ts`); nothing is sent again by itself. They reconnect for ever, and a
 * link that is half open is noticed within 5 s.
 */
export interface RedisConnections {
  readonly commands: Redis | Cluster;
  /** For pub/sub alone. With a Cluster it is a link to any one of its nodes: they all hear everything. */
  readonly subscriber: Redis;
  /** Resolves when Redis answers; rejects within 1.5 s when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

const COMMAND_MS = 1_500;
const PING_EVERY_MS = 1_000;
const SILENCE_MS = 2_500;
const FIRST_READY_MS = 1_500;

/** Resolves when both are ready, or after a moment without: a server may start before its Redis. */
export const openRedis = async (url: string): Promise<RedisConnections> => {
  const place = parseRedisUrl(url);
  const commands = place.kind === 'cluster' ? openCluster(place) : openServer(place, 'threadpad');
  const subscriber =
    place.kind === 'cluster' ? openAnyNode(place) : openServer(place, 'threadpad-subscriber');
  let closing = false;
  report(commands, 'commands', () => closing);
  report(subscriber, 'subscriber', () => closing);
  revive(commands, () => closing);
  revive(subscriber, () => closing);
  const heartbeat = setInterval(() => {
    for (const link of [subscriber, ...linksOf(commands)])
      if (link.status === 'ready') link.ping().catch(() => undefined);
  }, PING_EVERY_MS);
  heartbeat.unref();

  warnOfEviction(commands);

  await Promise.all([firstReady(commands), firstReady(subscriber)]);
  return {
    commands,
    subscriber,
    ping: async () => {
      if (subscriber.status !== 'ready') throw new Error('Connection is closed.');
      await commands.get('threadpad:ping');
    },
    close: () => {
      closing = true;
      clearInterval(heartbeat);
      commands.disconnect();
      subscriber.disconnect();
      return Promise.resolve();
    },
  };
};

const linksOf = (commands: Redis | Cluster): readonly Redis[] =>
  commands instanceof Cluster ? commands.nodes('all') : [commands];

/** Soon at first, then every second or so, for ever. */
const retryDelay = (attempt: number): number =>
  Math.min(50 * 2 ** Math.min(attempt, 10), 1_000) + Math.random() * 100;

const common = (login: RedisLogin, tls: boolean) =>
  ({
    ...login,
    ...(tls ? { tls: {} } : {}),
    connectTimeout: 1_500,
    commandTimeout: COMMAND_MS,
    // A ping every second: silence for longer than this is a dead link, whatever TCP believes.
    socketTimeout: SILENCE_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    keepAlive: 5_000,
    retryStrategy: retryDelay,
    // After a fail-over the former primary refuses writes: find the new one.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  }) satisfies RedisOptions;

const openServer = (place: Exclude<RedisPlace, { kind: 'cluster' }>, connectionName: string): Redis => {
  const tls = place.kind !== 'socket' && place.tls;
  const options = { ...common(place.login, tls), connectionName };
  switch (place.kind) {
    case 'socket':
      return new Redis({ ...options, path: place.path });
    case 'server':
      return new Redis({ ...options, host: place.node.host, port: place.node.port });
    case 'sentinel':
      return new Redis({
        ...options,
        sentinels: [...place.nodes],
        name: place.name,
        ...(place.sentinelLogin.username === undefined
          ? {}
          : { sentinelUsername: place.sentinelLogin.username }),
        ...(place.sentinelLogin.password === undefined
          ? {}
          : { sentinelPassword: place.sentinelLogin.password }),
        ...(tls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
        sentinelRetryStrategy: retryDelay,
        sentinelCommandTimeout: COMMAND_MS,
        failoverDetector: true,
      });
    default:
      return place satisfies never;
  }
};

type ClusterPlace = Extract<RedisPlace, { kind: 'cluster' }>;

const openCluster = ({ nodes, login, tls }: ClusterPlace): Cluster => {
  const { retryStrategy: _, enableOfflineQueue: __, ...redisOptions } = common(login, tls);
  return new Cluster([...nodes], {
    enableOfflineQueue: false,
    clusterRetryStrategy: retryDelay,
    clusterNodeRetryStrategy: retryDelay,
    slotsRefreshTimeout: COMMAND_MS,
    retryDelayOnFailover: 200,
    maxRedirections: 6,
    redisOptions: { ...redisOptions, connectionName: 'threadpad' },
  });
};

/** One link to whichever node takes it; after a loss to the next. */
const openAnyNode = ({ nodes, login, tls }: ClusterPlace): Redis => {
  let turn = Math.floor(Math.random() * nodes.length);
  class NextNode extends AbstractConnector {
    constructor() {
      super(1_000);
    }
    override connect(): Promise<Socket> {
      const { host, port } = nodes[turn++ % nodes.length] as RedisNode;
      this.stream = tls ? connectSecure({ host, port }) : connectPlain({ host, port });
      this.stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      return Promise.resolve(this.stream);
    }
  }
  return new Redis({ ...common(login, tls), connectionName: 'threadpad-subscriber', Connector: NextNode });
};

/** Says once that a connection was lost and once that it is back, not at each attempt. */
const report = (connection: Redis | Cluster, which: string, closing: () => boolean): void => {
  let lost = false;
  connection.on('error', (error: Error) => {
    if (!lost) log.warn({ err: error, connection: which }, 'Redis is not available.');
    lost = true;
  });
  connection.on('close', () => {
    if (!lost && !closing()) log.warn({ connection: which }, 'The connection to Redis was lost.');
    lost = true;
  });
  connection.on('ready', () => {
    if (lost) log.info({ connection: which }, 'Redis is back.');
    lost = false;
  });
};

/**
 * The driver gives a link up for good where a fail-over is announced while it asks sentinels for the next primary: it begins
 * again.
 */
const revive = (connection: Redis | Cluster, closing: () => boolean): void => {
  connection.on('end', () => {
    if (closing()) return;
    // What fails now fails as any attempt does: it is told, and ends here again or goes on by itself.
    setTimeout(() => {
      if (!closing() && connection.status === 'end') connection.connect().catch(() => undefined);
    }, retryDelay(1)).unref();
  });
};

const firstReady = (connection: Redis | Cluster): Promise<void> =>
  new Promise((resolve) => {
    if (connection.status === 'ready') return resolve();
    const timer = setTimeout(done, FIRST_READY_MS);
    connection.once('ready', done);
    function done(): void {
      clearTimeout(timer);
      connection.off('ready', done);
      resolve();
    }
  });
