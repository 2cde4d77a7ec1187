import type { Authentication, Presented, Session } from '../auth/session.ts';
import type { Connections } from '../http/connections.ts';
import type { Exchange } from '../http/exchange.ts';
import { rateLimited } from '../shared/errors.ts';
import type { Accounts } from './accounts.ts';
import type { Caller } from './caller.ts';
import { type EventLimits, type EventWriter, openEvents } from './events.ts';
import { isRefused, isStream, type OperationParams, type Operations } from './operations.ts';
import type { PayloadStream } from './stream.ts';

export interface StreamLimits extends EventLimits {
  /** How long the last payload of an ended credential may take, in milliseconds. */
  readonly farewell: number;
}

export interface SseDeps {
  readonly operations: Operations;
  readonly accounts: Accounts;
  readonly authentication: Authentication;
  readonly connections: Connections;
  readonly limits: StreamLimits;
}

export interface SseDoor {
  /**
   * Answers one operation as an event stream: `next` for each result, with its cursor as the event's id, then
   * `complete`. Faults of the document come as a result too; throws only while nothing was answered (`UNAUTHENTICATED`,
   * `RATE_LIMITED` …). Source: GraphQL over SSE, distinct connections mode.
   */
  serve(
    exchange: Exchange,
    params: OperationParams,
    presented: Presented,
    ticket: string | null,
  ): Promise<void>;
}

export const createSseDoor = ({
  operations,
  accounts,
  authentication,
  connections,
  limits,
}: SseDeps): SseDoor => {
  const openSession = (
    params: OperationParams,
    presented: Presented,
    ticket: string | null,
    lastEventId: string | null,
  ): Promise<Session> =>
    ticket === null
      ? authentication.openSession(presented)
      : authentication.openTicketSession(
          ticket,
          { query: params.query, variables: params.variables, operationName: params.operationName ?? null },
          lastEventId,
        );

  const answer = async (writer: EventWriter, params: OperationParams, caller: Caller): Promise<void> => {
    const operation = operations.begin(params, caller);
    if (isRefused(operation)) {
      accounts.refused(caller, operation);
      await writer.next(operation);
      return;
    }
    const result = await accounts.run(operation, caller);
    if (isStream(result)) await pipe(writer, result);
    else await writer.next(result);
  };

  return {
    async serve(exchange, params, presented, ticket) {
      const { response, request, requestId } = exchange;
      const header = request.headers['last-event-id'];
      const lastEventId = typeof header === 'string' && header !== '' ? header : null;
      const session = await openSession(params, presented, ticket, lastEventId);
      const release = connections.claim(session.actor);
      if (release === null || response.destroyed) {
        release?.();
        session.close();
        throw rateLimited('This credential has as many connections as it may have.');
      }
      const controller = new AbortController();
      const writer = openEvents(response, limits);
      const farewell = { timer: undefined as NodeJS.Timeout | undefined };
      const onEnded = (): void => {
        farewell.timer = setTimeout(writer.end, limits.farewell);
      };
      const onClose = (): void => {
        writer.close();
        controller.abort();
      };
      response.once('close', onClose);
      session.ended.addEventListener('abort', onEnded, { once: true });
      if (session.ended.aborted) onEnded();
      const { actor } = session;
      const caller: Caller = {
        actor,
        session,
        requestId,
        transport: 'sse',
        signal: controller.signal,
        lastEventId,
      };
      try {
        await answer(writer, params, caller);
      } finally {
        clearTimeout(farewell.timer);
        session.ended.removeEventListener('abort', onEnded);
        session.close();
        release();
        writer.end();
      }
    },
  };
};

/** Pulls a payload only when the one before it is on its way; ends the stream when the client has gone. */
const pipe = async (writer: EventWriter, stream: PayloadStream): Promise<void> => {
  stream.flow = writer.flow;
  writer.onClose(() => {
    stream.return().catch(() => {});
  });
  for await (const payload of stream) await writer.next(payload);
};
