import { destination, type Logger, type LoggerOptions, pino } from 'pino';

export type { Logger };

/** What could be a secret or somebody's words, wherever it stands in a log record, is left out. */
const SECRETS = [
  'authorization',
  'apiKey',
  'token',
  'ticket',
  'password',
  'secret',
  'cookie',
  'variables',
  'content',
  'x-api-key',
];

const REDACTED_PATHS = SECRETS.flatMap((name) => {
  const key = name.includes('-') ? `["${name}"]` : name;
  const nested = name.includes('-') ? `*${key}` : `*.${key}`;
  const headers = name.includes('-') ? `headers${key}` : `headers.${key}`;
  return [key, nested, headers, `*.${headers}`];
});

/**
 * What is written of an error. Nothing else that hangs on one: drivers leave their connections there, with keys, and the
 * values of the row that was refused.
 */
const described = (error: unknown, depth = 0): unknown => {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) };
  const { name, message, stack, cause } = error;
  const code = 'code' in error ? error.code : undefined;
  return {
    type: error.constructor.name || name,
    message,
    stack,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(cause === undefined || depth === MAX_CAUSES ? {} : { cause: described(cause, depth + 1) }),
  };
};

const MAX_CAUSES = 3;

export const LOG_OPTIONS: LoggerOptions = {
  level: 'info',
  base: null,
  timestamp: () => `,"at":"${new Date().toISOString()}"`,
  formatters: { level: (label) => ({ level: label }) },
  redact: { paths: REDACTED_PATHS, censor: '[left out]' },
  serializers: { err: (error: unknown) => described(error), error: (error: unknown) => described(error) },
};

/** Structured, one JSON object a line. Standard error, so that standard output is free for what a person should read. */
export const log: Logger = pino(LOG_OPTIONS, destination({ dest: 2, sync: true }));

/** Set once, by main, from the configuration. */
export const setLogLevel = (level: string): void => {
  log.level = level;
};
