/**
 * The catalogue of expected failures: one code each, the same over GraphQL, REST, tools and MCP.
 * A domain error is thrown where the rule stands and translated once, at each door. Its message says what
 * happened and what to do, never that a hidden thing exists. Anything else that is thrown is `INTERNAL`.
 */
export const ERROR_STATUS = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  BAD_USER_INPUT: 422,
  INVALID_CURSOR: 422,
  CONFLICT: 409,
  STALE_VIEW: 409,
  INVALID_TRANSITION: 409,
  ALREADY_RETRACTED: 409,
  PARTICIPANT_NOT_ACTIVE: 409,
  IDEMPOTENCY_KEY_REUSED: 409,
  VERSION_CONFLICT: 412,
  PAYLOAD_TOO_LARGE: 413,
  LOOP_LIMIT: 429,
  RATE_LIMITED: 429,
  QUERY_TOO_EXPENSIVE: 400,
  UNAVAILABLE: 503,
  INTERNAL: 500,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** Machine-readable facts beside the message: `field`, `limit`, `unseen`, `existingId`, `retryAfterMs` … */
export type ErrorFacts = Readonly<Record<string, unknown>>;

export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message);
    this.code = code;
    this.facts = facts;
  }
}

/**
 * A thread or a scratchpad that an operation was reading is deleted meanwhile: `NOT_FOUND` to whoever asked once. A live
 * stream of it that meets it inside a delivery does not fail; it ends with the delivery that says so.
 */
export class LogGone extends DomainError {
  constructor(
    readonly kind: 'Thread' | 'Scratchpad',
    /** Of that thread or scratchpad. */
    readonly id: string,
  ) {
    super('NOT_FOUND', `${kind} not found.`);
  }
}

const factory =
  (code: ErrorCode) =>
  (message: string, facts?: ErrorFacts): DomainError =>
    new DomainError(code, message, facts);

export const unauthenticated = factory('UNAUTHENTICATED');
export const forbidden = factory('FORBIDDEN');
export const badInput = factory('BAD_USER_INPUT');
export const conflict = factory('CONFLICT');
export const rateLimited = factory('RATE_LIMITED');
/** With the same idempotency key it may be tried again. */
export const unavailable = (message: string, facts?: ErrorFacts): DomainError =>
  new DomainError('UNAVAILABLE', message, { retryable: true, ...facts });
export const tooLarge = (field: string, limit: number): DomainError =>
  new DomainError('PAYLOAD_TOO_LARGE', `${field} is larger than ${limit} bytes.`, { field, limit });
export const tooLong = (field: string, limit: number): DomainError =>
  new DomainError('PAYLOAD_TOO_LARGE', `${field} has more than ${limit} characters.`, { field, limit });
export const invalidCursor = (field = 'after'): DomainError =>
  new DomainError('INVALID_CURSOR', 'This cursor does not belong to this log, or lies beyond its end.', {
    field,
  });

/** The one answer for what does not exist and for what the caller may not know of: `Thread not found.` */
export const notFound = (what: string): DomainError => new DomainError('NOT_FOUND', `${what} not found.`);

export const isErrorCode = (code: unknown): code is ErrorCode =>
  typeof code === 'string' && code in ERROR_STATUS;
