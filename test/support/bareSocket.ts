import { once } from 'node:events';
import { WebSocket } from 'ws';

/** `graphql-transport-ws` by hand: thousands of subscriptions on a few sockets, without a client's own cost. */
export interface BareSocket {
  /** Resolves with the operation's first message; with null where it is completed before. */
  subscribe(id: string, query: string, variables: Readonly<Record<string, unknown>>): Promise<Message | null>;
  complete(id: string): void;
  /** Resolves when so many more messages have come. */
  heard(count: number): Promise<void>;
  close(): void;
  terminate(): void;
}

export interface Message {
  readonly type: string;
  readonly id?: string;
  readonly payload?: unknown;
}

export const openBareSocket = async (url: string, token: string): Promise<BareSocket> => {
  const socket = new WebSocket(url, 'graphql-transport-ws');
  const first = new Map<string, (message: Message | null) => void>();
  const waiting = new Set<{ left: number; resolve: () => void }>();
  const ready = new Promise<void>((resolve, reject) => {
    socket.once('close', (code, reason) => reject(new Error(`Closed with ${code} ${reason.toString()}.`)));
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message;
      if (message.type === 'connection_ack') resolve();
      if (message.type === 'ping') socket.send('{"type":"pong"}');
      if (message.id === undefined) return;
      first.get(message.id)?.(message);
      first.delete(message.id);
      for (const wait of waiting) {
        wait.left -= 1;
        if (wait.left > 0) continue;
        waiting.delete(wait);
        wait.resolve();
      }
    });
  });
  ready.catch(() => undefined);
  socket.on('error', () => undefined);
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  await ready;
  return {
    subscribe: (id, query, variables) =>
      new Promise((resolve) => {
        first.set(id, resolve);
        socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query, variables } }));
      }),
    complete: (id) => {
      first.get(id)?.(null);
      first.delete(id);
      socket.send(JSON.stringify({ id, type: 'complete' }));
    },
    heard: (count) => new Promise((resolve) => waiting.add({ left: count, resolve })),
    close: () => socket.close(),
    terminate: () => socket.terminate(),
  };
};
