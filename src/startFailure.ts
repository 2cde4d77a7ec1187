import { domainErrorOf } from './storage/conflict.ts';

/** Why a server did not start, in one line. */
export const withoutDetails = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error);
  if (isCode(error, 'EADDRINUSE')) return `The port is in use already: set PORT to another one. (${message})`;
  if (isCode(error, 'EACCES')) return `Not permitted: ${message}.`;
  if (domainErrorOf(error)?.code === 'UNAVAILABLE')
    return `A store cannot be reached: ${firstLine(causeOf(error))}`;
  return firstLine(message);
};

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

const causeOf = (error: unknown): string => {
  if (error instanceof Error && error.cause instanceof Error) return causeOf(error.cause);
  return error instanceof Error ? error.message : String(error);
};

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? text;
