import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A wire between a client and a Unix socket that can go dead without a word. */
export interface Proxy extends AsyncDisposable {
  /** Where clients connect: a Unix socket with the same file name in another folder. */
  readonly path: string;
  readonly folder: string;
  /** From now on nothing passes on the connections that are open, and none is closed. */
  freeze(): void;
  /** As `freeze`, for connections to come as well; `thaw` lets new ones through again. */
  blackHole(): void;
  thaw(): void;
  /** From now on, on the connections that are open, what clients say passes and what they are answered gets lost. */
  swallow(onLost: (answer: Buffer) => void): void;
  /** Closes the connections that are open. */
  cut(): void;
}

export interface ProxyOptions {
  /** What a client says arrives a second time, over a connection of its own whose answers nobody hears. */
  readonly saysTwice?: boolean;
}

export const startProxy = async (
  target: string,
  { saysTwice = false }: ProxyOptions = {},
): Promise<Proxy> => {
  const folder = await mkdtemp(join(tmpdir(), 'tp-wire-'));
  const path = join(folder, target.slice(target.lastIndexOf('/') + 1));
  const sockets = new Set<Socket>();
  const pairs = new Map<Socket, Socket>();
  let holding = false;
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => undefined);
    client.on('close', () => sockets.delete(client));
    if (holding) return;
    const upstream = connect(target);
    sockets.add(upstream);
    upstream.on('error', () => client.destroy());
    upstream.on('close', () => {
      sockets.delete(upstream);
      if (!client.isPaused()) client.destroy();
    });
    pairs.set(client, upstream);
    client.on('close', () => {
      pairs.delete(client);
      upstream.destroy();
    });
    client.pipe(upstream);
    upstream.pipe(client);
    if (saysTwice) sayAgain(client, target);
  });
  await listen(server, path);
  const freeze = (): void => {
    for (const socket of sockets) {
      socket.unpipe();
      socket.pause();
    }
  };
  return {
    path,
    folder,
    freeze,
    blackHole: () => {
      holding = true;
      freeze();
    },
    thaw: () => {
      holding = false;
    },
    swallow: (onLost) => {
      for (const [client, upstream] of pairs) {
        upstream.unpipe(client);
        upstream.on('data', onLost);
        upstream.resume();
      }
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

const sayAgain = (client: Socket, target: string): void => {
  const echo = connect(target);
  echo.on('error', () => undefined);
  client.on('close', () => echo.destroy());
  client.pipe(echo);
  echo.resume();
};

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
