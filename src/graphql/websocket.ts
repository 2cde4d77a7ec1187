import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { handleProtocols, makeServer } from 'graphql-ws';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { Connections, Release } from '../http/connections.ts';
import { refuseUpgrade, type UpgradeRoute } from '../http/listener.ts';
import type { Metrics } from '../http/metrics.ts';
import { newRequestId } from '../http/requestId.ts';
import { tooLarge } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import { CLOSE } from './closeCodes.ts';
import { FLOW_LIMITS } from './flow.ts';
import { createGathering } from './gathering.ts';
import { createHeartbeat } from './heartbeat.ts';
import { ClientSocket, runTask, type SocketDeps, type SocketLimits } from './socket.ts';

export interface WebSocketLimits extends SocketLimits {
  /** Bytes of one message. One up to twice as long fails alone, on its operation's id; a longer one closes with 1009. */
  readonly message: number;
  /** Bytes that a client may send before it has said who it is. */
  readonly greeting: number;
  /** Milliseconds until `connection_init` must have come. */
  readonly init: number;
  /** Milliseconds between pings; a socket that was silent that long after one is closed. */
  readonly heartbeat: number;
}

export const WEBSOCKET_LIMITS: WebSocketLimits = {
  subscriptions: 200,
  operations: 200,
  flow: FLOW_LIMITS,
  farewell: 200,
  message: 8 * 1024 * 1024,
  greeting: 64 * 1024,
  init: 5_000,
  heartbeat: 12_000,
};

export interface WebSocketDoorOptions extends Omit<SocketDeps, 'limits' | 'gathering'> {
  readonly connections: Connections;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly limits?: WebSocketLimits;
  /** The client's address, behind whatever proxies are trusted. */
  readonly addressOf: (request: IncomingMessage) => string;
}

export interface WebSocketDoor extends UpgradeRoute {
  /**
   * Closes every socket with 1012 as soon as nothing runs on it, idle ones spread over `overMs`, all at `deadlineMs`.
   * New ones are closed at once. Resolves when the last has been told.
   */
  drain(overMs: number, deadlineMs: number): Promise<void>;
  /** Ends whatever is left. */
  close(): void;
}

/** `graphql-transport-ws` on the listener's port. A bad operation ends only itself; a bad message closes the socket. */
export const createWebSocketDoor = (options: WebSocketDoorOptions): WebSocketDoor => {
  const { connections, metrics, log, mask, isDraining, addressOf, limits = WEBSOCKET_LIMITS } = options;
  const deps: SocketDeps = { ...options, limits, gathering: createGathering() };
  const sockets = new Set<ClientSocket>();
  const heartbeat = createHeartbeat(limits.heartbeat);
  const transport = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: 2 * limits.message,
    handleProtocols,
  });
  const protocol = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: limits.init,
    async onConnect({ connectionParams, extra }) {
      const isIn = await extra.client.connect(connectionParams);
      extra.greeted();
      extra.greeted = nothing;
      return isIn;
    },
    onSubscribe: ({ extra }, id, payload) => extra.client.begin(id, payload),
    execute: runTask,
    subscribe: runTask,
  });

  const open = (ws: WebSocket, raw: Duplex, known: Release): void => {
    metrics.socketOpened();
    const client = new ClientSocket(ws, raw, deps);
    const watched = { ws, client };
    const stopCounting = countGreeting(raw, limits.greeting, () =>
      client.close(CLOSE.tooBig, 'greeting too long'),
    );
    const extra: Extra = {
      client,
      greeted: () => {
        stopCounting();
        raw.off('close', known);
        known();
      },
    };
    const closed = protocol.opened(client, extra);
    client.onDispose = () => {
      sockets.delete(client);
      closed(1005, '').catch(report);
    };
    sockets.add(client);
    heartbeat.watch(watched);
    const heard = (): void => {
      client.isAlive = true;
    };
    ws.on('pong', heard).on('ping', heard).on('error', ws.terminate);
    ws.on('close', () => {
      metrics.socketClosed();
      heartbeat.forget(watched);
      client.dispose();
    });
    ws.on('message', (data, isBinary) => {
      client.isAlive = true;
      if (!client.isClosing) onMessage(client, data, isBinary);
    });
    if (isDraining()) client.close(CLOSE.restart, RESTART);
  };

  const report = (error: unknown): void => {
    log.error({ err: error }, 'unexpected error on a socket');
  };

  const onMessage = (client: ClientSocket, data: RawData, isBinary: boolean): void => {
    if (isBinary || !Buffer.isBuffer(data)) {
      client.close(CLOSE.badMessage, 'messages are JSON text');
      return;
    }
    if (data.length > limits.message) {
      refuseMessage(client, data);
      return;
    }
    client.take(data.toString()).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith('Unexpected message')) {
        client.close(CLOSE.badMessage, 'unexpected message');
        return;
      }
      report(error);
      client.close(1011, 'internal error');
    });
  };

  const refuseMessage = (client: ClientSocket, data: Buffer): void => {
    const id = SUBSCRIBE_ID.exec(data.toString('utf8', 0, 512))?.[1];
    if (id === undefined) {
      client.close(CLOSE.tooBig, 'message too long');
      return;
    }
    const error = mask.error(tooLarge('message', limits.message), newRequestId());
    void client.send(`{"id":"${id}","type":"error","payload":[${JSON.stringify(error)}]}`);
  };

  return {
    matches: (path) => path === '/graphql',
    upgrade(request, raw, head, origins) {
      if (!origins.mayConnect(request)) {
        refuseUpgrade(raw, 403, 'Forbidden', 'This origin is not allowed: see ALLOWED_ORIGINS.');
        return;
      }
      const greeted = connections.claimUnknown(addressOf(request));
      if (greeted === null) {
        refuseUpgrade(raw, 429, 'Too Many Requests', 'Too many connections that have not said who they are.');
        return;
      }
      raw.once('close', greeted);
      transport.handleUpgrade(request, raw, head, (ws) => open(ws, raw, greeted));
    },
    async drain(overMs, deadlineMs) {
      const all = [...sockets];
      await Promise.all(
        all.map((client, index) => tellRestart(client, (overMs * index) / all.length, overMs, deadlineMs)),
      );
    },
    close() {
      heartbeat.close();
      for (const client of sockets) client.close(CLOSE.restart, RESTART);
      const left = setTimeout(() => {
        for (const ws of transport.clients) ws.terminate();
      }, limits.farewell);
      transport.close(() => clearTimeout(left));
    },
  };
};

/** What graphql-ws keeps for a socket. */
interface Extra {
  readonly client: ClientSocket;
  /** To be called once it is known who it is, or that it may not come in. */
  greeted: () => void;
}

const nothing = (): void => {};

const RESTART = 'the server restarts';
/** The id of a subscribe message, as clients write it, without what would need escaping. */
const SUBSCRIBE_ID = /^\s*\{\s*(?:"type"\s*:\s*"subscribe"\s*,\s*)?"id"\s*:\s*"([\w.:-]+)"/;

/** The socket closes when it is idle and its turn has come, whichever is later; at the deadline in any case. */
const tellRestart = (
  client: ClientSocket,
  turnMs: number,
  overMs: number,
  deadlineMs: number,
): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(turn);
      clearTimeout(deadline);
      client.onIdle = null;
      client.close(CLOSE.restart, RESTART);
      resolve();
    };
    const wasIdle = client.isIdle;
    const turn = setTimeout(
      () => {
        if (client.isIdle) end();
      },
      wasIdle ? turnMs : overMs,
    );
    const deadline = setTimeout(end, deadlineMs);
    // Its streams were told over the same time: the last one's end is its turn.
    client.onIdle = end;
  });

const countGreeting = (raw: Duplex, most: number, onTooLong: () => void): (() => void) => {
  let bytes = 0;
  const count = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes <= most) return;
    stop();
    onTooLong();
  };
  const stop = (): void => {
    raw.off('data', count);
  };
  raw.on('data', count);
  return stop;
};
