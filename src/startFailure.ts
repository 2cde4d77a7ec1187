import { domainErrorOf } from './storage/conflict.ts';

/** Where the server was to listen it cannot. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen';
  readonly code: unknown;

  constructor(host: string, cause: unknown) {
    const reason = messageOf(cause);
    super(
      isAnyCode(cause, ELSEWHERE)
        ? `HOST is wrong: ${host} is no address of this machine (${reason}).`
        : reason,
    );
    this.code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  }
}

/** Why a server did not start, in one line. */
export const withoutDetails = (error: unknown): string => {
  const message = messageOf(error);
  if (isCode(error, 'EADDRINUSE')) return `The port is in use already: set PORT to another one. (${message})`;
  if (isCode(error, 'EACCES')) return `Not permitted: ${message}.`;
  if (error instanceof CannotListen) return message;
  if (isAnyCode(error, UNUSABLE)) return `The database of DATABASE_URL cannot be used: ${firstLine(message)}`;
  // Redis may be away: a server starts without.
  if (domainErrorOf(error)?.code === 'UNAVAILABLE')
    return `The database of DATABASE_URL cannot be reached: ${firstLine(causeOf(error))}`;
  return firstLine(message);
};

/** Of an address that is another machine's, or a name that nobody has. */
const ELSEWHERE = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'];

/** SQLSTATEs: no such database, wrong password, no such role or no entry for it. */
const UNUSABLE = ['3D000', '28P01', '28000'];

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const isAnyCode = (error: unknown, codes: readonly string[]): boolean =>
  codes.some((code) => isCode(error, code));

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

const causeOf = (error: unknown): string => {
  if (error instanceof Error && error.cause instanceof Error) return causeOf(error.cause);
  return messageOf(error);
};

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? text;
