import type { Headers } from '../http/exchange.ts';
import { DomainError, ERROR_STATUS, type ErrorCode } from '../shared/errors.ts';
import { InvalidRequest, type Issue, issueOf } from './issues.ts';
import type { RestRoute } from './route.ts';

/** What is answered for a failure; the stable code travels beside it. */
export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly detail: string | readonly Issue[];
  readonly headers: Headers;
}

/** A fault of the request that the protocol itself has a status for. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly headers: Headers = {},
  ) {
    super(detail);
  }
}

/** Null for what nobody expected. `route`: whose service failed; null where none was called. */
export const problemOf = (error: unknown, route: RestRoute | null): Problem | null => {
  if (error instanceof Refusal) {
    const { status, code, detail, headers } = error;
    return { status, code, detail, headers };
  }
  if (error instanceof InvalidRequest)
    return { status: 422, code: 'BAD_USER_INPUT', detail: error.issues, headers: {} };
  if (!(error instanceof DomainError) || error.code === 'INTERNAL') return null;
  const { code } = error;
  const status = ERROR_STATUS[code];
  const detail = status === 422 ? [issueOfDomain(error, route)] : textOf(error, route);
  return { status, code, detail, headers: headersOf(error) };
};

const textOf = (error: DomainError, route: RestRoute | null): string => {
  const text = route?.errors[error.code];
  if (typeof text === 'string') return text;
  const message = messageOf(error, route);
  // `Thread not found`: clients compare it.
  return error.code === 'NOT_FOUND' ? message.replace(/\.$/, '') : message;
};

/** A service's message begins with the name of the field that it is about, where it is about one. */
const messageOf = ({ message, facts }: DomainError, route: RestRoute | null): string => {
  const field = String(facts.field ?? '');
  const name = route?.names?.[field];
  return name !== undefined && message.startsWith(`${field} `) ? name + message.slice(field.length) : message;
};

/** Seconds after which it is worth trying again. */
const RETRY_AFTER: Partial<Record<ErrorCode, number>> = { UNAVAILABLE: 1, RATE_LIMITED: 1, LOOP_LIMIT: 60 };

const headersOf = ({ code, facts }: DomainError): Headers => {
  if (code === 'UNAUTHENTICATED') return { 'www-authenticate': 'APIKey' };
  const { retryAfterMs, currentEtag } = facts;
  const seconds = typeof retryAfterMs === 'number' ? Math.ceil(retryAfterMs / 1_000) : RETRY_AFTER[code];
  return {
    ...(seconds === undefined ? {} : { 'retry-after': String(seconds) }),
    ...(typeof currentEtag === 'string' ? { etag: `"${currentEtag}"` } : {}),
  };
};

/** A fault that only a service could see, at the place it came from. */
const issueOfDomain = (error: DomainError, route: RestRoute | null): Issue => {
  const field = String(error.facts.field ?? '');
  return issueOf('value_error', messageOf(error, route), locOf(route?.names?.[field] ?? field, route), null);
};

const locOf = (field: string, route: RestRoute | null): Issue['loc'] => {
  const path = field
    .split('.')
    .filter((part) => part !== '')
    .map((part) => part.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  const [name = ''] = path;
  if (name === 'idempotency_key' && route?.headers !== undefined && !takes(route.body, name))
    return ['header', 'Idempotency-Key'];
  // `first` and `last` are what a service calls `limit`.
  if (name === 'first' || name === 'last') return ['query', 'limit'];
  return takes(route?.query, name) ? ['query', ...path] : ['body', ...path];
};

const takes = (schema: unknown, name: string): boolean =>
  typeof schema === 'object' &&
  schema !== null &&
  'shape' in schema &&
  typeof schema.shape === 'object' &&
  schema.shape !== null &&
  name in schema.shape;
