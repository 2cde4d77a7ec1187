import { destination, type Logger, pino } from 'pino';

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

/** Structured, one JSON object a line. Standard error, so that standard output is free for what a person should read. */
export const log: Logger = pino(
  {
    level: 'info',
    base: null,
    timestamp: () => `,"at":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: REDACTED_PATHS, censor: '[left out]' },
  },
  destination({ dest: 2, sync: true }),
);

/** Set once, by main, from the configuration. */
export const setLogLevel = (level: string): void => {
  log.level = level;
};
