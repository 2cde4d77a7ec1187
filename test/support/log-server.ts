import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createHandler } from 'graphql-sse/lib/use/http';
import { useServer } from 'graphql-ws/use/ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { createTinyLog, type TinyLog } from './tiny-log.ts';

/**
 * A tiny log over graphql-ws and graphql-sse, by those packages' own servers, whose connections can be hurt in all
 * the ways in which connections get hurt. It stands for no part of the product: it tests the client by itself.
 */
export interface LogServer extends TinyLog {
  readonly wsUrl: string;
  readonly sseUrl: string;
  /** Closes every socket with this code, and every event stream as a proxy does: politely, in the middle. */
  close(code: number, reason?: string): void;
  /** Resets every connection without a word. */
  reset(): void;
  /** Lets in only who presents this. */
  requireToken(token: string): void;
  /** Stops listening and resets everything; `listen` opens the same port again. */
  stop(): Promise<void>;
  listen(): Promise<void>;
  /** The subscriptions as they arrived. */
  readonly subscriptions: { readonly query: string; readonly variables: Record<string, unknown> }[];
  /** How many connections were ever made. */
  readonly accepted: () => number;
}

export const startLogServer = async ({ extensions = true } = {}): Promise<LogServer> => {
  const log = createTinyLog();
  const subscriptions: { query: string; variables: Record<string, unknown> }[] = [];
  const connections = new Set<Socket>();
  const sockets = new Set<WebSocket>();
  const streams = new Set<{ end(): void }>();
  let token: string | undefined;

  const sse = createHandler({
    schema: log.schema,
    onSubscribe: (_request, { query, variables = {} }) => {
      subscriptions.push({ query, variables });
    },
    onNext: (_context, _request, result) => {
      if (extensions) addCursor(result);
    },
  });
  const http = createServer((request, response) => {
    if (token !== undefined && request.headers.authorization !== token) {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ errors: [{ message: 'No.', extensions: { code: 'UNAUTHENTICATED' } }] }));
      return;
    }
    streams.add(response);
    response.on('close', () => streams.delete(response));
    // The handler does not know that its response was ended behind its back.
    response.on('error', () => {});
    sse(request, response).catch(() => response.destroy());
  });
  let accepted = 0;
  http.on('connection', (socket) => {
    accepted++;
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });

  const ws = new WebSocketServer({ server: http, path: '/ws' });
  // What happens to the http server's listening is the listener's business.
  ws.on('error', () => {});
  ws.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  useServer(
    {
      schema: log.schema,
      onConnect: ({ connectionParams, extra }) => {
        if (token !== undefined && connectionParams?.authorization !== token)
          extra.socket.close(4403, 'The credential is not valid.');
      },
      onSubscribe: (_context, _id, { query, variables }) => {
        subscriptions.push({ query, variables: variables ?? {} });
      },
      onNext: (_context, _id, _payload, _args, result) => {
        if (extensions) addCursor(result);
      },
    },
    ws,
  );

  let port = 0;
  const listen = () =>
    new Promise<void>((resolve, reject) => {
      http.once('error', reject);
      http.listen(port, '127.0.0.1', () => {
        http.off('error', reject);
        port = (http.address() as AddressInfo).port;
        resolve();
      });
    });
  const reset = () => {
    for (const socket of sockets) socket.terminate();
    for (const socket of connections) socket.resetAndDestroy();
  };
  await listen();

  return {
    ...log,
    wsUrl: `ws://127.0.0.1:${port}/ws`,
    sseUrl: `http://127.0.0.1:${port}/sse`,
    close(code, reason) {
      for (const socket of sockets) socket.close(code, reason);
      for (const stream of streams) stream.end();
    },
    reset,
    requireToken(required) {
      token = required;
    },
    stop: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        reset();
      }),
    listen,
    subscriptions,
    accepted: () => accepted,
  };
};

const addCursor = (result: { data?: unknown; extensions?: unknown }): void => {
  const { timeline } = (result.data ?? {}) as { timeline?: { cursor?: unknown; resumableCursor?: unknown } };
  const cursor = timeline?.cursor ?? timeline?.resumableCursor;
  if (cursor !== undefined) result.extensions = { cursor };
};
