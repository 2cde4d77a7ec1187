import { connect, type Socket } from 'node:net';

export interface Response {
  readonly status: number;
  readonly body: string;
}

/** One kept connection, one request at a time, with as little work as can be: it shares the machine with the server. */
export interface Connection {
  post(path: string, body: string, headers?: string): Promise<Response>;
  close(): void;
}

export const openConnection = async (port: number): Promise<Connection> => {
  const socket = await connected(port);
  let chunks: Buffer[] = [];
  let waiting: { resolve(response: Response): void; reject(error: Error): void } | undefined;
  const fail = (error: Error): void => {
    waiting?.reject(error);
    waiting = undefined;
  };
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('The connection was closed.')));
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    const all = chunks.length === 1 ? chunk : Buffer.concat(chunks);
    chunks = [all];
    const response = readResponse(all);
    if (response === null) return;
    chunks = [];
    const { resolve } = waiting ?? {};
    waiting = undefined;
    resolve?.(response);
  });
  return {
    post: (path, body, headers = '') =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket.write(
          `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
        );
      }),
    close: () => socket.destroy(),
  };
};

const connected = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });

/** Null while it is not whole. Both servers say how long their answers are. */
const readResponse = (data: Buffer): Response | null => {
  const end = data.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const head = data.toString('latin1', 0, end);
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? Number.NaN);
  if (Number.isNaN(length)) throw new Error(`An answer without a length:\n${head}`);
  if (data.length < end + 4 + length) return null;
  return {
    status: Number(head.slice(9, 12)),
    body: data.toString('utf8', end + 4, end + 4 + length),
  };
};
