import { resolve } from 'node:path';
import { z } from 'zod';
import { parseRedisUrl } from './storage/redisUrl.ts';

/** A value of the environment is wrong; the message names it and says what is meant, in one line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const flag = z
  .enum(['true', 'false', '1', '0'], 'true or false is meant')
  .transform((text) => text === 'true' || text === '1');

const whole = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d{1,12}$/, 'a whole number is meant')
    .transform(Number)
    .refine(
      (value) => value >= minimum && value <= maximum,
      `a number from ${minimum} to ${maximum} is meant`,
    );

const databaseUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//, 'postgresql://user:password@host:5432/database is meant')
  .refine((url) => URL.canParse(url), 'it cannot be read as a URL; encode what is special in a password');

const redisUrl = z.string().superRefine((url, context) => {
  try {
    parseRedisUrl(url);
  } catch (error) {
    context.addIssue({
      code: 'custom',
      message: `it ${error instanceof Error ? error.message : 'is no URL'}`,
    });
  }
});

/** An exact origin as a browser sends it; `*` for any. */
const origins = z.string().transform((text, context) => {
  const list = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  for (const item of list)
    if (item !== '*' && !(URL.canParse(item) && new URL(item).origin === item))
      context.addIssue({ code: 'custom', message: `"${item}" is no origin such as https://example.com` });
  return list;
});

/** Names that a browser may reach this server by. */
const hosts = z.string().transform((text, context) => {
  const list = text
    .split(',')
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== '');
  for (const item of list)
    if (!(URL.canParse(`http://${item}`) && new URL(`http://${item}`).hostname === item))
      context.addIssue({ code: 'custom', message: `"${item}" is no host name such as example.com` });
  return list;
});

/** How far to believe X-Forwarded-For: the number of proxies in front, or false. */
const proxies = z
  .string()
  .regex(/^(\d{1,2}|true|false)$/, 'the number of proxies in front of the server is meant')
  .transform((text) => (text === 'true' ? 1 : text === 'false' ? 0 : Number(text)));

const environment = z.object({
  NODE_ENV: z
    .enum(['development', 'test', 'production'], 'development, test or production is meant')
    .default('development'),
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: whole(0, 65_535).default(4000),
  DATABASE_URL: databaseUrl.optional(),
  DATABASE_POOL_SIZE: whole(1, 1_000).default(20),
  DATA_DIR: z.string().min(1).default('.data'),
  REDIS_URL: redisUrl.optional(),
  ADMIN_TOKEN: z.string().min(16, 'at least 16 characters are meant').optional(),
  ALLOWED_ORIGINS: origins.default([]),
  ALLOWED_HOSTS: hosts.default([]),
  TRUST_PROXY: proxies.default(0),
  LOG_LEVEL: z
    .enum(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'trace, debug, info, warn, error, fatal or silent is meant',
    )
    .default('info'),
  MAX_AGENT_HOPS: whole(0, 1_000_000).default(0),
  SCRATCHPAD_TTL_SECONDS: whole(0, 315_360_000).default(0),
  INBOX_LEASE_SECONDS: whole(1, 3_600).default(60),
  INBOX_DIGEST_SECONDS: whole(1, 3_600).default(5),
  GRAPHIQL: flag.optional(),
  INTROSPECTION: flag.optional(),
  MAX_SUBSCRIPTIONS_PER_SOCKET: whole(1, 1_000_000).default(200),
  MAX_SOCKETS_PER_CREDENTIAL: whole(1, 1_000_000).default(100),
  MAX_SOCKETS_PER_USER: whole(1, 1_000_000).default(2_000),
  MAX_UNINITIALISED_SOCKETS_PER_ADDRESS: whole(1, 1_000_000).default(100),
  MAX_QUERY_DEPTH: whole(1, 1_000).default(12),
  MAX_QUERY_COST: whole(1, 1_000_000_000).default(50_000),
  MAX_ANSWER_BYTES: whole(65_536, 268_435_456).default(67_108_864),
  SHUTDOWN_SECONDS: whole(1, 3_600).default(10),
});

/** Every variable there is, for the documents that list them. */
export const CONFIG_VARIABLES: readonly string[] = Object.keys(environment.shape);

export interface Config {
  readonly environment: 'development' | 'test' | 'production';
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Null: the embedded database under `dataDir`. */
  readonly databaseUrl: string | null;
  readonly databasePoolSize: number;
  /** Absolute. */
  readonly dataDir: string;
  /** Null: a private redis-server under `dataDir`. */
  readonly redisUrl: string | null;
  readonly adminToken: string | null;
  readonly allowedOrigins: readonly string[];
  /** Names, beside those of the loopback, that MCP clients may reach this server by. */
  readonly allowedHosts: readonly string[];
  /** Number of proxies in front whose X-Forwarded-For is believed. */
  readonly trustProxy: number;
  readonly logLevel: string;
  /** 0: off. */
  readonly maxAgentHops: number;
  /** Of pads without a `ttlSeconds` of their own: seconds after the last write until their state expires; 0: never. */
  readonly scratchpadTtlSeconds: number;
  /** How long a delivery is an agent's before it is handed out again, unless it is renewed. */
  readonly inboxLeaseSeconds: number;
  /** Between digests of what an agent may see besides its messages. */
  readonly inboxDigestSeconds: number;
  /** On in development, off in production unless asked for. */
  readonly graphiql: boolean;
  /** To anybody, without a credential. */
  readonly openIntrospection: boolean;
  readonly limits: {
    readonly subscriptionsPerSocket: number;
    readonly socketsPerCredential: number;
    readonly socketsPerUser: number;
    readonly uninitialisedSocketsPerAddress: number;
    readonly queryDepth: number;
    readonly queryCost: number;
    /** Of one answer, or one payload of a subscription. */
    readonly answerBytes: number;
  };
  /** From SIGTERM to the end, at most. */
  readonly shutdownSeconds: number;
}

/** Reads the environment, once, at start. An empty value counts as absent. Throws `ConfigError`. */
export const readConfig = (variables: Readonly<Record<string, string | undefined>> = process.env): Config => {
  const present = Object.fromEntries(
    Object.entries(variables).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = environment.safeParse(present);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ConfigError(
      `${issue?.path.join('.') ?? 'The environment'} is wrong: ${issue?.message ?? 'unreadable'}.`,
    );
  }
  const values = parsed.data;
  const production = values.NODE_ENV === 'production';
  return Object.freeze({
    environment: values.NODE_ENV,
    host: values.HOST,
    port: values.PORT,
    databaseUrl: values.DATABASE_URL ?? null,
    databasePoolSize: values.DATABASE_POOL_SIZE,
    dataDir: resolve(values.DATA_DIR),
    redisUrl: values.REDIS_URL ?? null,
    adminToken: values.ADMIN_TOKEN ?? null,
    allowedOrigins: Object.freeze(values.ALLOWED_ORIGINS),
    allowedHosts: Object.freeze(values.ALLOWED_HOSTS),
    trustProxy: values.TRUST_PROXY,
    logLevel: values.LOG_LEVEL,
    maxAgentHops: values.MAX_AGENT_HOPS,
    scratchpadTtlSeconds: values.SCRATCHPAD_TTL_SECONDS,
    inboxLeaseSeconds: values.INBOX_LEASE_SECONDS,
    inboxDigestSeconds: values.INBOX_DIGEST_SECONDS,
    graphiql: values.GRAPHIQL ?? !production,
    openIntrospection: values.INTROSPECTION ?? !production,
    limits: Object.freeze({
      subscriptionsPerSocket: values.MAX_SUBSCRIPTIONS_PER_SOCKET,
      socketsPerCredential: values.MAX_SOCKETS_PER_CREDENTIAL,
      socketsPerUser: values.MAX_SOCKETS_PER_USER,
      uninitialisedSocketsPerAddress: values.MAX_UNINITIALISED_SOCKETS_PER_ADDRESS,
      queryDepth: values.MAX_QUERY_DEPTH,
      queryCost: values.MAX_QUERY_COST,
      answerBytes: values.MAX_ANSWER_BYTES,
    }),
    shutdownSeconds: values.SHUTDOWN_SECONDS,
  });
};
