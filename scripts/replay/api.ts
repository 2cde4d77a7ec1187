import { setTimeout as wait } from 'node:timers/promises';
import { ReplayError } from './operations.ts';

interface Answer<Data> {
  readonly data?: Data | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: { readonly code?: string; readonly retryAfterMs?: number };
  }[];
}

/** An operation was refused; `code` is the API's. */
export class Refused extends ReplayError {
  readonly code: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Whether an earlier attempt of the same operation may have been done without our knowing. */
  readonly afterRetry: boolean;
  constructor(code: string, message: string, facts: Readonly<Record<string, unknown>>, afterRetry: boolean) {
    super(`${code}: ${message}`);
    this.code = code;
    this.facts = facts;
    this.afterRetry = afterRetry;
  }
}

/** The public API at one address, for whoever holds a credential. */
export interface Api {
  readonly url: string;
  /** One operation, tried again while the server says that it cannot now. Throws `Refused` or `ReplayError`. */
  ask<Data>(token: string, query: string, variables?: Readonly<Record<string, unknown>>): Promise<Data>;
}

const ATTEMPTS = 8;
const RETRYABLE = new Set(['UNAVAILABLE', 'RATE_LIMITED']);

export const createApi = (url: string): Api => {
  const send = async <Data>(token: string, body: string): Promise<Answer<Data>> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body,
    });
    const answer = await response.text();
    try {
      return JSON.parse(answer) as Answer<Data>;
    } catch {
      throw new ReplayError(`${url} answers ${response.status}, and not as a GraphQL API does.`);
    }
  };
  return {
    url,
    async ask<Data>(token: string, query: string, variables: Readonly<Record<string, unknown>> = {}) {
      const body = JSON.stringify({ query, variables });
      for (let attempt = 1; ; attempt++) {
        const isLast = attempt === ATTEMPTS;
        let pause = 100 * 2 ** attempt;
        try {
          const { data, errors } = await send<Data>(token, body);
          const [error] = errors ?? [];
          if (error === undefined && data) return data;
          const { code = 'INTERNAL', retryAfterMs, ...facts } = error?.extensions ?? {};
          if (!RETRYABLE.has(code) || isLast)
            throw new Refused(code, error?.message ?? 'The answer is empty.', facts, attempt > 1);
          pause = retryAfterMs ?? pause;
        } catch (error) {
          if (error instanceof ReplayError) throw error;
          if (isLast) throw new ReplayError(`${url} cannot be reached: ${reason(error)}`);
        }
        await wait(pause);
      }
    },
  };
};

const reason = (error: unknown): string => {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
};
