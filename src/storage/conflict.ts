import { badInput, DomainError, type ErrorFacts, isErrorCode, unavailable } from '../shared/errors.ts';
import { redisErrorOf } from './redisErrors.ts';

/**
 * The only reader of the shapes in which Prisma, its driver adapters, pg and PGlite report failures: they have
 * changed with each release. Everything else asks the three functions at the top.
 */

/** The `DomainError` that a failure of a store means, undefined where the failure is a fault of ours. */
export const domainErrorOf = (error: unknown): DomainError | undefined => {
  if (error instanceof DomainError) return error;
  const failure = failureOf(error);
  if (failure.sqlState === RAISED) return raised(failure);
  if (failure.sqlState !== undefined && BAD_TEXT.has(failure.sqlState))
    return badInput('The text contains a character that cannot be stored.');
  return isUnavailable(failure) ? databaseUnavailable(error) : redisErrorOf(error);
};

/** Whether a row with that key is there already; `constraint` asks for one constraint or index by its name. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean => {
  const failure = failureOf(error);
  if (failure.sqlState !== '23505' && failure.prismaCode !== 'P2002') return false;
  return constraint === undefined || failure.constraint === constraint;
};

/** Whether a referenced row is missing, or is still referenced. */
export const isForeignKeyViolation = (error: unknown): boolean => {
  const failure = failureOf(error);
  return failure.sqlState === '23503' || failure.prismaCode === 'P2003';
};

/** Nothing was lost by asking again, but whether a write took place is not known. */
const databaseUnavailable = (cause: unknown): DomainError => {
  const error = unavailable('The database is not available at the moment. Try again.');
  error.cause = cause;
  return error;
};

/** Runs `work`; what it throws arrives as a `DomainError` wherever it means one. */
export const translated = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw domainErrorOf(error) ?? error;
  }
};

/** SQLSTATE of the failures that our SQL functions raise: MESSAGE is a code of the catalogue, DETAIL its facts. */
const RAISED = 'TP001';

/** A NUL, a lone surrogate in JSON, bytes that are no UTF-8. */
const BAD_TEXT = new Set(['22021', '22P05']);

const UNAVAILABLE_STATES = new Set([
  '25006', // read only: a fail-over is under way
  '25P03', // idle in transaction for too long
  '40001', // serialization failure
  '40P01', // deadlock
  '55P03', // lock not available
  '57014', // statement timeout
]);

/** Connection, insufficient resources, operator intervention, system error. */
const UNAVAILABLE_CLASSES = new Set(['08', '53', '57', '58']);

const UNAVAILABLE_PRISMA = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2034', 'P2037']);

const UNAVAILABLE_KINDS = new Set([
  'DatabaseNotReachable',
  'ConnectionClosed',
  'SocketTimeout',
  'TlsConnectionError',
  'TooManyConnections',
  'TransactionAlreadyClosed',
  'TransactionWriteConflict',
]);

const SOCKET_CODES = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/** pg, pg-pool and PGlite report these with no code at all. */
const UNAVAILABLE_MESSAGE =
  /Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|connection error and is not queryable|was closed and is not queryable|after calling end on the pool|PGlite is clos/;

interface Failure {
  readonly sqlState?: string | undefined;
  readonly prismaCode?: string | undefined;
  readonly socketCode?: string | undefined;
  readonly kind?: string | undefined;
  readonly constraint?: string | undefined;
  readonly message: string;
  readonly detail?: string | undefined;
}

type Members = Readonly<Record<string, unknown>>;

const members = (value: unknown): Members | undefined =>
  typeof value === 'object' && value !== null ? (value as Members) : undefined;

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const SQL_STATE = /^[0-9A-Z]{5}$/;

const failureOf = (error: unknown): Failure => {
  const top = members(error);
  if (top === undefined) return { message: String(error) };
  const adapterError = members(members(top.meta)?.driverAdapterError) ?? top;
  const cause = members(adapterError.cause);
  const prismaCode = /^P\d{4}$/.exec(text(top.code) ?? '')?.[0];
  const message = text(top.message) ?? '';
  if (cause !== undefined && typeof cause.kind === 'string') return ofAdapter(cause, prismaCode, message);
  const code = text(top.code);
  return {
    prismaCode,
    sqlState: prismaCode === undefined && code !== undefined && SQL_STATE.test(code) ? code : undefined,
    socketCode: code,
    constraint: text(top.constraint),
    message,
    detail: text(top.detail),
  };
};

const ofAdapter = (cause: Members, prismaCode: string | undefined, message: string): Failure => {
  const original = text(cause.originalMessage) ?? text(cause.message) ?? message;
  const index = text(members(cause.constraint)?.index);
  return {
    prismaCode,
    sqlState: text(cause.originalCode) ?? text(cause.code),
    kind: text(cause.kind),
    constraint: index ?? /unique constraint "([^"]+)"/.exec(original)?.[1],
    message: original,
    detail: text(cause.detail),
  };
};

const isUnavailable = ({ sqlState, prismaCode, socketCode, kind, message }: Failure): boolean =>
  (sqlState !== undefined &&
    (UNAVAILABLE_STATES.has(sqlState) || UNAVAILABLE_CLASSES.has(sqlState.slice(0, 2)))) ||
  (prismaCode !== undefined && UNAVAILABLE_PRISMA.has(prismaCode)) ||
  (socketCode !== undefined && SOCKET_CODES.has(socketCode)) ||
  (kind !== undefined && UNAVAILABLE_KINDS.has(kind)) ||
  UNAVAILABLE_MESSAGE.test(message);

const raised = ({ message: code, detail }: Failure): DomainError => {
  const { message, ...facts } = factsOf(detail);
  if (!isErrorCode(code)) return new DomainError('INTERNAL', `The database raised an unknown code: ${code}`);
  return new DomainError(code, typeof message === 'string' ? message : code, facts);
};

const factsOf = (detail: string | undefined): ErrorFacts => {
  if (detail === undefined) return {};
  try {
    return (members(JSON.parse(detail)) as ErrorFacts | undefined) ?? {};
  } catch {
    return { message: detail };
  }
};
