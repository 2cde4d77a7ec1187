import type { Headers } from '../../http/exchange.ts';
import { DomainError, ERROR_STATUS } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';

/** A fault that the protocol itself has an answer for. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly rpcCode: number,
    message: string,
    readonly headers: Headers = {},
  ) {
    super(message);
  }
}

/** What is answered instead, in the protocol's terms and in ours. */
export const answerOf = (error: unknown, log: Logger, requestId: string) => {
  if (error instanceof Refusal) {
    const { status, rpcCode, message, headers } = error;
    return { status, rpcCode, message, headers, code: status === 404 ? 'NOT_FOUND' : 'BAD_REQUEST' };
  }
  if (error instanceof DomainError && error.code !== 'INTERNAL') {
    const headers: Headers =
      error.code === 'UNAUTHENTICATED'
        ? { 'www-authenticate': 'Bearer' }
        : error.code === 'UNAVAILABLE' || error.code === 'RATE_LIMITED'
          ? { 'retry-after': '1' }
          : {};
    const { code, message } = error;
    return { status: ERROR_STATUS[code], rpcCode: -32000, message, headers, code };
  }
  log.error({ err: error, requestId, path: '/mcp' }, 'unexpected error');
  return { status: 500, rpcCode: -32603, message: 'Internal server error', headers: {}, code: 'INTERNAL' };
};
