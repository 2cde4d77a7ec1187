import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError, rateLimited, unavailable } from '../shared/errors.ts';
import { jsonSize } from '../shared/jsonSize.ts';

export interface OutgoingLimits {
  /** Bytes of one answer. */
  readonly answer: number;
  /** Milliseconds after which a client that takes nothing of what waits for it is let go. */
  readonly patience: number;
}

export const OUTGOING_LIMITS: OutgoingLimits = { answer: 64 * 1024 * 1024, patience: 10_000 };

/** What waits for one credential's clients, and for all of this process, in answers of the largest size. */
const WAITING = { credential: 2, all: 4 } as const;

/** Answers up to this size leave at once, or take little. */
const SMALL = 16 * 1024;

/**
 * Answers on their way to clients that may not read them: bounded each, for each credential, and for the process. Each
 * is waited for as long as its client takes something of it.
 */
export interface Outgoing {
  /** Throws `QUERY_TOO_EXPENSIVE` for what is larger as JSON than an answer may be. */
  requireFitting(body: unknown): void;
  /**
   * Counts an answer of so many bytes until the response is over. Throws `RATE_LIMITED` where too much waits for this
   * credential, `UNAVAILABLE` where too much waits for all.
   */
  begin(request: IncomingMessage, response: ServerResponse, bytes: number): void;
}

export const createOutgoing = ({ answer, patience }: OutgoingLimits = OUTGOING_LIMITS): Outgoing => {
  const waiting = new Map<string, number>();
  let all = 0;

  const add = (owner: string, bytes: number): void => {
    all += bytes;
    const own = (waiting.get(owner) ?? 0) + bytes;
    if (own > 0) waiting.set(owner, own);
    else waiting.delete(owner);
  };

  return {
    requireFitting(body) {
      if (jsonSize(body, answer) > answer) throw answerTooLarge(answer);
    },
    begin({ headers }, response, bytes) {
      if (bytes <= SMALL) return;
      const owner = headers.authorization ?? String(headers['x-api-key'] ?? '');
      if ((waiting.get(owner) ?? 0) + bytes > WAITING.credential * answer)
        throw rateLimited(
          'Too much waits to be read by clients of this credential. Read it, then try again.',
          {
            retryAfterMs: RETRY_AFTER,
          },
        );
      if (all + bytes > WAITING.all * answer)
        throw unavailable('Too much waits to be read by clients of this server. Try again.', {
          retryAfterMs: RETRY_AFTER,
        });
      add(owner, bytes);
      giveUpAfter(response, patience);
      response.once('close', () => add(owner, -bytes));
    },
  };
};

const RETRY_AFTER = 1_000;

/** Ends a response of which nothing has left for so many milliseconds: Node looks into a long write, too. Once for each. */
export const giveUpAfter = (response: ServerResponse, patience: number): void => {
  response.setTimeout(patience, () => response.destroy());
  // Before Node sets what holds for the connection until its next request.
  response.prependOnceListener('finish', () => response.setTimeout(0));
};

/** Resolves when the client has taken what was written, or has gone. */
export const drained = async (response: ServerResponse): Promise<void> => {
  const gone = new AbortController();
  const onClose = (): void => gone.abort();
  response.once('close', onClose);
  try {
    if (!response.destroyed) await once(response, 'drain', { signal: gone.signal });
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  } finally {
    response.off('close', onClose);
  }
};

export const answerTooLarge = (limit: number): DomainError =>
  new DomainError(
    'QUERY_TOO_EXPENSIVE',
    `The answer is larger than ${limit} bytes. Ask for less at once: smaller pages, fewer fields. What a mutation did is done.`,
    { limit },
  );
