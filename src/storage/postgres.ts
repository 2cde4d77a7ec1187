import { Socket } from 'node:net';
import { PrismaPg } from '@prisma/adapter-pg';
import type { SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import pg from 'pg';
import { log } from '../shared/log.ts';
import { translated } from './conflict.ts';
import type { Database, MigrationSession } from './database.ts';
import { createLifeline } from './lifeline.ts';
import { openPrisma } from './prisma.ts';
import { rfc3339 } from './values.ts';

export interface PostgresOptions {
  /** Connections of this process at most. */
  readonly poolSize?: number;
  /** A statement that takes longer is cancelled: `UNAVAILABLE`. */
  readonly statementTimeoutMs?: number;
}

/** Waiting for a connection, and for the server's side of the handshake. Leaves time to answer within 2 s. */
const CONNECT_MS = 1_500;
/** Beside the pool; opened when first used. */
const URGENT_CONNECTIONS = 2;
const IDLE_IN_TRANSACTION_MS = 10_000;

/** Opens a pool; connects to nothing yet, so a server that is away is noticed by the first command. */
export const openPostgres = (url: string, options: PostgresOptions = {}): Promise<Database> => {
  const { poolSize = 20, statementTimeoutMs = 15_000 } = options;
  const sockets = createSockets();
  const busy = new Map<pg.PoolClient, number>();
  const openPool = (max: number, name: string): pg.Pool => {
    const pool = new pg.Pool({
      ...connection(url),
      max,
      stream: sockets.open,
      statement_timeout: statementTimeoutMs,
      // The last resort, should the server's own time-out never be heard of.
      query_timeout: statementTimeoutMs + 2_000,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      idleTimeoutMillis: 60_000,
      application_name: name,
    });
    pool.on('error', (error) => log.warn({ err: error }, 'An idle database connection was lost.'));
    pool.on('acquire', (client) => busy.set(client, performance.now()));
    pool.on('release', (_error, client) => busy.delete(client as pg.PoolClient));
    pool.on('remove', (client) => busy.delete(client as pg.PoolClient));
    return pool;
  };
  const pool = openPool(poolSize, 'threadpad');
  const urgent = openPool(URGENT_CONNECTIONS, 'threadpad urgent');

  const lifeline = createLifeline({
    makeClient: () => new pg.Client({ ...connection(url), application_name: 'threadpad lifeline' }),
    busy,
    onLost: () => sockets.destroyAll(connectionLost()),
  });

  const prisma = openPrisma(new PrismaPg(pool));
  const runOn =
    (on: pg.Pool): Database['query'] =>
    ({ name, text }, values) =>
      translated(async () => (await on.query({ name, text, values: values as unknown[] })).rows);

  return Promise.resolve({
    prisma,
    query: runOn(pool),
    urgent: runOn(urgent),
    script: async (sql) => translated(async () => void (await pool.query(sql))),
    openMigrationSession: () => openMigrationSession(url),
    close: async () => {
      lifeline.close();
      await prisma.$disconnect();
      await Promise.all([pool.end(), urgent.end()]);
    },
  });
};

/** What every connection of ours has in common: UTC whatever the server's setting, and its values as text. */
const connection = (url: string): pg.PoolConfig => ({
  ...withSessionOptions(url),
  connectionTimeoutMillis: CONNECT_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: 5_000,
  types: { getTypeParser: parserOf },
});

/**
 * What is asked often is in memory, or on a disk without arms. By the database's own guess, that of disks with arms, a planner
 * that takes a busy agent for one like the others would read and sort all that it has, instead of the first fifty in order.
 */
const GUESSES = '-c random_page_cost=1.1';

/** A URL's own `options` would replace ours, so they are joined; its guesses go before ours. */
const withSessionOptions = (url: string): pg.PoolConfig => {
  const session = '-c TimeZone=UTC -c DateStyle=ISO';
  if (!URL.canParse(url)) return { connectionString: url, options: `${GUESSES} ${session}` };
  const parsed = new URL(url);
  const own = parsed.searchParams.get('options');
  parsed.searchParams.delete('options');
  return { connectionString: parsed.href, options: `${GUESSES} ${own === null ? '' : `${own} `}${session}` };
};

const parserOf: typeof pg.types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === pg.types.builtins.TIMESTAMPTZ && format !== 'binary'
    ? rfc3339
    : pg.types.getTypeParser(oid, format);

/** Shaped as the server's own report of a lost connection, so that it passes through Prisma's adapter as one. */
const connectionLost = (): Error =>
  Object.assign(new Error('The connection to the database was lost.'), { code: '08006', severity: 'FATAL' });

const createSockets = (): { open: () => Socket; destroyAll: (error: Error) => void } => {
  const sockets = new Set<Socket>();
  return {
    open: () => {
      const socket = new Socket();
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      return socket;
    },
    destroyAll: (error) => {
      for (const socket of sockets) socket.destroy(error);
    },
  };
};

/** One connection, kept until the end: an advisory lock taken on it covers all that the engine does. */
const openMigrationSession = async (url: string): Promise<MigrationSession> => {
  const pool = new pg.Pool({
    ...connection(url),
    max: 1,
    idleTimeoutMillis: 0,
    application_name: 'threadpad migrations',
  });
  pool.on('error', (error) => log.warn({ err: error }, 'The connection for migrations was lost.'));
  const factory = new PrismaPg(pool);
  const adapter: SqlDriverAdapterFactory = {
    provider: factory.provider,
    adapterName: factory.adapterName,
    connect: async () => {
      const connected = await factory.connect();
      // The adapter's own splits at every semicolon and breaks function bodies.
      connected.executeScript = async (script) => void (await pool.query(script));
      return connected;
    },
  };
  return Promise.resolve({
    adapter,
    query: async <Row>(text: string) => (await translated(() => pool.query(text))).rows as Row[],
    close: () => pool.end(),
  });
};
