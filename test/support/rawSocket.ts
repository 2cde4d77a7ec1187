import { once } from 'node:events';
import { WebSocket } from 'ws';

export interface RawMessage {
  readonly id?: string;
  readonly type: string;
  readonly payload?: unknown;
}

/** A client that speaks graphql-transport-ws by hand, so that a test sees each message and each close code. */
export const openRawSocket = async (
  url: string,
  options: {
    readonly origin?: string;
    readonly protocol?: string;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
) => {
  const { protocol = 'graphql-transport-ws', ...rest } = options;
  const ws = new WebSocket(url, protocol, { ...rest, perMessageDeflate: true });
  const messages: RawMessage[] = [];
  const waiting = new Set<() => void>();
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    ws.on('close', (code, reason) => {
      resolve({ code, reason: reason.toString() });
      for (const wake of waiting) wake();
    });
  });
  ws.on('message', (data) => {
    messages.push(JSON.parse(String(data)) as RawMessage);
    for (const wake of waiting) wake();
  });
  await once(ws, 'open');
  const send = (message: RawMessage | string): void =>
    ws.send(typeof message === 'string' ? message : JSON.stringify(message));
  let read = 0;

  /** The next message that has not been taken; rejects when the socket closes first. */
  const next = async (): Promise<RawMessage> => {
    for (;;) {
      const message = messages[read];
      if (message !== undefined) {
        read += 1;
        return message;
      }
      if (ws.readyState === WebSocket.CLOSED) throw new Error('The socket has closed.');
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          waiting.delete(wake);
          resolve();
        };
        waiting.add(wake);
      });
    }
  };
  return {
    ws,
    messages,
    closed,
    send,
    next,
    /** Skips until a message of this id (and type) comes. */
    async nextOf(id: string, type?: string): Promise<RawMessage> {
      for (;;) {
        const message = await next();
        if (message.id === id && (type === undefined || message.type === type)) return message;
      }
    },
    async init(
      payload: Readonly<Record<string, unknown>> = { authorization: 'Bearer key-1' },
    ): Promise<void> {
      send({ type: 'connection_init', payload });
      const { type } = await next();
      if (type !== 'connection_ack') throw new Error(`No acknowledgement: ${type}`);
    },
    subscribe(id: string, query: string, variables?: Readonly<Record<string, unknown>>): void {
      send({ id, type: 'subscribe', payload: { query, variables } });
    },
    async close(): Promise<void> {
      ws.terminate();
      await closed;
    },
  };
};

export type RawSocket = Awaited<ReturnType<typeof openRawSocket>>;
