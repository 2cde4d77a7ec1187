import {
  type Implementation,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerOptions,
} from '@modelcontextprotocol/server';
import { DomainError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';

type Handler = Parameters<Server['_wrapHandler']>[1];

/**
 * The SDK's server, whose every error is one of the protocol: invalid parameters are -32602 with a sentence on each, a refusal of
 * ours is that too with its code, and of anything else no more is told than that it happened.
 */
export class ProtocolServer extends Server {
  readonly #log: Logger;
  readonly #requestId: string;

  constructor(info: Implementation, options: ServerOptions, log: Logger, requestId: string) {
    super(info, options);
    this.#log = log;
    this.#requestId = requestId;
  }

  protected override _wrapHandler(method: string, handler: Handler): Handler {
    const wrapped = super._wrapHandler(method, handler);
    return async (request, context) => {
      try {
        return await wrapped(request, context);
      } catch (error) {
        throw this.#told(error);
      }
    };
  }

  #told(error: unknown): ProtocolError {
    const { InvalidParams, InternalError } = ProtocolErrorCode;
    const faults = error instanceof Error ? faultsIn(error.message) : null;
    if (faults !== null) return new ProtocolError(InvalidParams, `Invalid params: ${faults}`);
    if (error instanceof ProtocolError) return error;
    if (error instanceof DomainError && error.code !== 'INTERNAL')
      return new ProtocolError(InvalidParams, error.message, { code: error.code });
    const requestId = this.#requestId;
    this.#log.error({ err: error, requestId, path: '/mcp' }, 'unexpected error');
    return new ProtocolError(InternalError, 'Internal server error', { requestId });
  }
}

/** The SDK says what is wrong with a request by zod's list of it, as JSON. Null: this is no such list. */
const faultsIn = (message: string): string | null => {
  const begin = message.indexOf('[');
  if (begin < 0) return null;
  try {
    const faults: unknown = JSON.parse(message.slice(begin));
    if (!Array.isArray(faults) || faults.length === 0 || !faults.every(isFault)) return null;
    return faults.map((fault) => `${fault.path.join('.')}: ${fault.message}`).join('; ');
  } catch {
    return null;
  }
};

const isFault = (value: unknown): value is { readonly path: readonly unknown[]; readonly message: string } =>
  typeof value === 'object' &&
  value !== null &&
  'path' in value &&
  Array.isArray(value.path) &&
  'message' in value &&
  typeof value.message === 'string';
