import { WebSocket } from 'ws';

/** A socket that speaks `graphql-transport-ws`, acknowledged. As plain as can be: thousands stand in one process. */
export const openSocket = (port: number, token: string): Promise<WebSocket> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', {
      perMessageDeflate: false,
    });
    socket.once('error', reject);
    socket.once('close', (code) => reject(new Error(`The socket was closed with ${code}.`)));
    socket.once('open', () =>
      socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } })),
    );
    socket.once('message', () => resolve(socket));
  });

let lastId = 0;

/** Resolves with the first payload, which says where the stream starts; `onNext` is called for each after it. */
export const subscribe = (
  socket: WebSocket,
  payload: { readonly query: string; readonly variables: Readonly<Record<string, unknown>> },
  onNext: () => void = () => {},
): Promise<void> =>
  new Promise((resolve, reject) => {
    const id = String(++lastId);
    let started = false;
    const start = `{"id":"${id}"`;
    socket.on('message', (data: Buffer) => {
      const text = data.toString();
      if (text.includes('"type":"ping"')) socket.send('{"type":"pong"}');
      else if (text.startsWith(start) || text.includes(`"id":"${id}"`)) {
        if (text.includes('"errors"') || text.includes('"type":"error"'))
          reject(new Error(text.slice(0, 300)));
        else if (started) onNext();
        else {
          started = true;
          resolve();
        }
      }
    });
    socket.send(JSON.stringify({ id, type: 'subscribe', payload }));
  });
