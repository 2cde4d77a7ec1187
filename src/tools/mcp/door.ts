import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  type RequestId,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { Authentication, Session } from '../../auth/session.ts';
import { discardBody, RequestGone, readBody, utf8 } from '../../http/body.ts';
import type { Connections } from '../../http/connections.ts';
import type { Origins } from '../../http/cors.ts';
import { keyInUrl, presentedIn } from '../../http/credential.ts';
import { type Exchange, type Route, sendJson } from '../../http/exchange.ts';
import type { Metrics } from '../../http/metrics.ts';
import { stopOn } from '../../live/stopping.ts';
import type { Services } from '../../services.ts';
import { badInput, DomainError, rateLimited, unavailable } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import { type McpCaller, requireCaller } from './caller.ts';
import { cancellationOf, cancelledIn, mayBeCancelled } from './cancelling.ts';
import { createChangeBus } from './changes.ts';
import { asksIn, createEventLog, type EventLog, eventStoreOf, NOTIFICATIONS, PRIMING } from './eventLog.ts';
import { presentOf } from './notifying.ts';
import { answerOf, Refusal } from './refusals.ts';
import {
  createAnswers,
  isGreeting,
  isListening,
  lastEventIn,
  mayBePrimed,
  requireNames,
} from './requests.ts';
import { resumeAnswers } from './resuming.ts';
import { createMcpServer } from './server.ts';
import type { McpSession } from './sessions.ts';
import { followSubscriptions } from './subscriptions.ts';
import { sendWebResponse, webRequest } from './web.ts';

export interface McpDeps {
  readonly services: Services;
  readonly authentication: Pick<Authentication, 'openSession'>;
  readonly connections: Connections;
  readonly origins: Origins;
  readonly mayBeSentTo: (host: string | undefined) => boolean;
  readonly isDraining: () => boolean;
  readonly metrics: Pick<Metrics, 'operationDone'>;
  readonly log: Logger;
}

/** Bytes of a body: a legal megabyte of text can be three when it is escaped. */
const BODY_LIMIT = 8 * 1024 * 1024;
const METHODS = new Set(['GET', 'POST', 'DELETE']);
const PATH = /^\/mcp(?:\/threads\/([^/]+))?\/?$/;

/** What one request is about, once it is known who asks. */
interface Visit {
  readonly exchange: Exchange;
  readonly caller: McpCaller;
  readonly session: Session;
  /** Of the path. */
  readonly threadId: string | null;
  readonly body: unknown;
  /** The client has gone, the credential has ended, or (a stream) the process is about to stop. */
  readonly over: AbortSignal;
}

/** After which a client whose stream broke comes back. */
const RETRY_MS = 1_000;

/**
 * `/mcp` and `/mcp/threads/{id}`: the Model Context Protocol over streamable HTTP, with sessions (up to 2025-11-25) and
 * without (2026-07-28). Each request is served by a server of its own; what a session keeps lies in Redis, so that any
 * process answers the next one. Whoever asks is looked up afresh for each, and a stream ends with its credential.
 */
export const createMcpDoor = (deps: McpDeps): Route => {
  const { services, authentication, connections, origins, mayBeSentTo, isDraining, metrics, log } = deps;
  const { mcpSessions: sessions } = services;

  const serveModern = async ({ exchange, caller, session, body, over }: Visit): Promise<void> => {
    const bus = createChangeBus({ services, caller, log }, over);
    const handler = createMcpHandler(
      () =>
        createMcpServer({
          services,
          log,
          caller,
          requestId: exchange.requestId,
          isGreeting: isGreeting(body),
          subscriptions: null,
        }),
      { legacy: 'reject', bus },
    );
    const answer = await handler.fetch(webRequest(exchange, over), { parsedBody: body });
    try {
      await sendWebResponse(exchange, answer, session, over);
    } finally {
      await handler.close();
    }
  };

  /** The session that the request names, or a new one for an `initialize`, which is there once that is accepted. */
  const sessionFor = async ({ exchange, caller, threadId, body }: Visit): Promise<McpSession> => {
    const id = exchange.request.headers['mcp-session-id'];
    if (isInitializeRequest(body)) return sessions.fresh(caller.actor, threadId);
    if (typeof id !== 'string')
      throw new Refusal(400, -32000, 'Bad Request: Mcp-Session-Id header is required');
    const found = await sessions.find(id, caller.actor, threadId);
    if (found === null) throw new Refusal(404, -32001, 'Session not found');
    return found;
  };

  /** Whether it was a request to go on with lost answers, which is served then; a place that does not hold is refused. */
  const resumed = async ({ exchange, session, over }: Visit, events: EventLog): Promise<boolean> => {
    const last = lastEventIn(exchange);
    if (last === null) return false;
    const place = await events.locate(last);
    if (place.streamId === NOTIFICATIONS) return false;
    if (exchange.request.headers.accept?.includes('text/event-stream') !== true)
      throw new Refusal(406, -32000, 'Not Acceptable: Client must accept text/event-stream');
    await sendWebResponse(exchange, resumeAnswers(events, place, over), session, over);
    return true;
  };

  const serveSession = async (visit: Visit): Promise<void> => {
    const { exchange, caller, session, body, over } = visit;
    const mcpSession = await sessionFor(visit);
    if (exchange.method === 'DELETE') {
      await sessions.end(mcpSession);
      exchange.response.writeHead(204).end();
      return;
    }
    const events = createEventLog(services.redis, mcpSession, log, asksIn(body));
    if (await resumed(visit, events)) return;
    const streaming = new AbortController();
    const leave = (): void => streaming.abort();
    // It may have fired by now.
    const release = stopOn(streaming, [over]);
    const answers = createAnswers(body);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: undefined,
      eventStore: eventStoreOf(events, answers.kept),
      retryInterval: RETRY_MS,
      keepAliveMs: 12_000,
    });
    const cancelled = (request: RequestId): void => {
      transport.onmessage?.(cancellationOf(request));
      if (answers.cancelled(request)) leave();
    };
    const stopHearing = mayBeCancelled(body) ? sessions.listenForCancels(mcpSession, cancelled) : null;
    for (const request of cancelledIn(body)) await sessions.cancel(mcpSession, request);
    const server = await createMcpServer({
      services,
      log,
      caller,
      requestId: exchange.requestId,
      isGreeting: isGreeting(body),
      subscriptions: {
        subscribe: async (uri) => sessions.subscribe(mcpSession, uri, await presentOf(uri, services, caller)),
        unsubscribe: (uri) => sessions.unsubscribe(mcpSession, uri),
      },
    });
    try {
      await server.connect(transport);
      const request = webRequest(exchange, streaming.signal);
      const answer = await transport.handleRequest(request, body === undefined ? {} : { parsedBody: body });
      if (answer.ok && isInitializeRequest(body)) await sessions.open(mcpSession);
      answer.headers.set('mcp-session-id', mcpSession.id);
      const begin = answer.ok && mayBePrimed(exchange) ? await events.add(NOTIFICATIONS, PRIMING) : '';
      const first = begin === '' ? '' : `id: ${begin}\nretry: ${RETRY_MS}\ndata: \n\n`;
      const following =
        answer.ok && exchange.method === 'GET'
          ? followSubscriptions(
              { services, caller, log, server, session: mcpSession },
              leave,
              streaming.signal,
            )
          : null;
      await sendWebResponse(exchange, answer, session, streaming.signal, first);
      leave();
      await following;
      // Whoever was cut off comes back for the answer.
      if (answer.ok) await answers.all(session.ended);
    } finally {
      stopHearing?.();
      leave();
      release();
      await server.close();
    }
  };

  const serveAs = async (
    exchange: Exchange,
    session: Session,
    over: AbortSignal,
    endWith: (signal: AbortSignal) => void,
  ): Promise<void> => {
    const threadId = PATH.exec(exchange.path)?.[1] ?? null;
    const caller = await requireCaller(services, session, threadId);
    const body = exchange.method === 'POST' ? await bodyOf(exchange) : undefined;
    // Once more: the body may have been long in coming.
    await session.cleared();
    // A stream ends with the process; what is being worked on is answered before.
    if (exchange.method === 'GET' || isListening(body)) endWith(services.draining);
    const visit = { exchange, caller, session, threadId, body, over };
    const isOfOld = exchange.method !== 'POST' || (await isLegacyRequest(webRequest(exchange, over), body));
    await (isOfOld ? serveSession(visit) : serveModern(visit));
  };

  const serve = async (exchange: Exchange): Promise<void> => {
    const { request, response, method } = exchange;
    if (!mayBeSentTo(request.headers.host))
      throw new Refusal(403, -32000, 'This host name is not known here: see ALLOWED_HOSTS.');
    if (!origins.mayConnect(request))
      throw new Refusal(403, -32000, 'This origin is not allowed: see ALLOWED_ORIGINS.');
    if (!METHODS.has(method))
      throw new Refusal(405, -32000, 'Method not allowed.', { allow: 'GET, POST, DELETE' });
    if (isDraining()) throw unavailable('The server is shutting down. Try again.');
    if (keyInUrl(exchange.query) !== undefined)
      throw badInput('A key does not belong into a URL, which ends up in logs. Send it in a header.');
    const session = await authentication.openSession(presentedIn(request.headers));
    let release = connections.claim(session.actor);
    const over = new AbortController();
    const end = (): void => over.abort();
    const endWith = (signal: AbortSignal): void => {
      if (signal.aborted) end();
      signal.addEventListener('abort', end, { once: true });
    };
    // Whoever was cut off may connect again while its call goes on.
    const cutOff = (): void => {
      end();
      const unattended = release === null ? null : connections.claimUnattended(session.actor);
      if (unattended === null) return;
      release?.();
      release = unattended;
    };
    response.once('close', cutOff);
    endWith(session.ended);
    try {
      if (release === null) throw rateLimited('This credential has as many connections as it may have.');
      await serveAs(exchange, session, over.signal, endWith);
    } finally {
      response.off('close', cutOff);
      services.draining.removeEventListener('abort', end);
      session.close();
      release?.();
    }
  };

  const tell = async (exchange: Exchange, error: unknown): Promise<string> => {
    const { status, rpcCode, code, message, headers } = answerOf(error, log, exchange.requestId);
    if (exchange.response.headersSent) {
      exchange.response.end();
      return code;
    }
    if (exchange.method === 'POST') await discardBody(exchange.request, BODY_LIMIT);
    const body = { jsonrpc: '2.0', error: { code: rpcCode, message, data: { code } }, id: null };
    sendJson(exchange, status, body, { 'cache-control': 'no-store', 'x-error-code': code, ...headers });
    return code;
  };

  return {
    matches: (path) => PATH.test(path),
    async serve(exchange) {
      const started = performance.now();
      let code = 'OK';
      try {
        await serve(exchange);
      } catch (error) {
        if (error instanceof RequestGone) throw error;
        code = await tell(exchange, error);
      } finally {
        const seconds = (performance.now() - started) / 1_000;
        metrics.operationDone({ transport: 'mcp', kind: exchange.method, field: '/mcp', code, seconds });
      }
    },
  };
};

const bodyOf = async ({ request }: Exchange): Promise<unknown> => {
  const body = jsonOf(utf8(await readBody(request, BODY_LIMIT)));
  try {
    requireNames(body);
  } catch (error) {
    throw error instanceof DomainError
      ? new Refusal(400, -32600, `Invalid request: ${error.message}`)
      : error;
  }
  return body;
};

const jsonOf = (text: string | null): unknown => {
  try {
    if (text !== null) return JSON.parse(text) as unknown;
  } catch {
    // Told below.
  }
  throw new Refusal(400, -32700, 'Parse error: the body is no JSON in UTF-8.');
};
