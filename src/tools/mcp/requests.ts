import { isJSONRPCRequest, isJSONRPCResponse } from '@modelcontextprotocol/server';
import type { Exchange } from '../../http/exchange.ts';
import { badInput } from '../../shared/errors.ts';
import { LIMITS, requireCharacters } from '../../shared/input.ts';
import { asksIn } from './eventLog.ts';
import { LONGEST_CALL_MS } from './resuming.ts';

/** How a runtime names a tool call of its own, so that a repeated one acts once. */
export const CALL_ID = 'threadpad/toolCallId';

/**
 * What names a request, or a call, is kept: so it is looked at before anything acts. Errors: BAD_USER_INPUT.
 */
export const requireNames = (body: unknown): void => {
  const asked = new Set<unknown>();
  for (const message of [body].flat()) {
    if (!isObject(message)) continue;
    const { id, params, method } = message;
    if (method !== undefined && id !== undefined && asked.has(id))
      throw badInput('Two requests have the same id.', { field: 'id' });
    asked.add(id);
    if (typeof id === 'string') requireCharacters(id, 'id', LIMITS.idempotencyKey);
    if (typeof id === 'number' && !Number.isFinite(id)) throw badInput('id is no number.', { field: 'id' });
    const meta = isObject(params) ? params._meta : undefined;
    if (!isObject(meta) || meta[CALL_ID] === undefined) continue;
    const { [CALL_ID]: callId } = meta;
    if (typeof callId !== 'string') throw badInput(`${CALL_ID} must be a text.`, { field: CALL_ID });
    requireCharacters(callId, CALL_ID, LIMITS.idempotencyKey);
  }
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** A stream without sessions: it stays open as one that a GET opens. */
export const isListening = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'method' in body && body.method === 'subscriptions/listen';

/** Asks who the server is: `initialize`, or `server/discover` where there are no sessions. */
export const isGreeting = (body: unknown): boolean =>
  [body]
    .flat()
    .some((message) => isJSONRPCRequest(message) && /^(initialize|server\/discover)$/.test(message.method));

type Asking = Pick<Exchange, 'method' | 'request'>;

/** The event after which a client goes on; null for one that begins. */
export const lastEventIn = ({ method, request }: Asking): string | null => {
  const last = request.headers['last-event-id'];
  return method === 'GET' && typeof last === 'string' && last !== '' ? last : null;
};

/** Whether a stream that a GET opens may begin with an event that has an id and no data: since 2025-11-25. */
export const mayBePrimed = ({ method, request }: Asking): boolean => {
  const version = request.headers['mcp-protocol-version'];
  return (
    method === 'GET' &&
    typeof version === 'string' &&
    version >= '2025-11-25' &&
    lastEventIn({ method, request }) === null
  );
};

/** Whether all requests of a body are answered. */
export const createAnswers = (body: unknown) => {
  const asked = new Set<unknown>(asksIn(body));
  let left = asked.size;
  const answered = new AbortController();
  return {
    kept: (message: unknown): void => {
      if (isJSONRPCResponse(message)) left -= 1;
      if (left <= 0) answered.abort();
    },
    /** One that needs none any more. Whether that was the last. */
    cancelled: (request: unknown): boolean => {
      if (asked.delete(request)) left -= 1;
      if (left <= 0) answered.abort();
      return left <= 0;
    },
    /** Resolves when they are, when `ended` fires, or when no call can be under way any more: one may have been cancelled. */
    all: async (ended: AbortSignal): Promise<void> => {
      if (left <= 0) return;
      const over = AbortSignal.any([answered.signal, ended, AbortSignal.timeout(LONGEST_CALL_MS)]);
      if (!over.aborted)
        await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }));
    },
  };
};
