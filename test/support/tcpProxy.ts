import type { AddressInfo } from 'node:net';
import { createConnection, createServer, type NetConnectOpts, type Socket } from 'node:net';

/** Passes bytes on, as a load balancer would, and cuts whom it is told to. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** Resets every connection, or those that `chosen` says (0 is the oldest). Answers how many. */
  cut(chosen?: (index: number, count: number) => boolean): number;
  /** From now on new connections are taken and nothing of them is passed on, until the returned function is called. */
  hold(): () => void;
}

/** `target` is asked for each connection, so that one place may stand for several servers. */
export const startTcpProxy = async (target: () => NetConnectOpts): Promise<TcpProxy> => {
  const pairs = new Set<readonly [Socket, Socket]>();
  let waiting: (() => void)[] | null = null;
  const server = createServer((client) => {
    const upstream = createConnection(target());
    const pair = [client, upstream] as const;
    pairs.add(pair);
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(pair);
        for (const end of pair) end.destroy();
      });
    }
    const pass = (): void => {
      client.pipe(upstream);
      upstream.pipe(client);
    };
    if (waiting === null) pass();
    else waiting.push(pass);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut: TcpProxy['cut'] = (chosen = () => true) => {
    const cutNow = [...pairs].filter((_, index, all) => chosen(index, all.length));
    for (const [client, upstream] of cutNow) {
      client.resetAndDestroy();
      upstream.destroy();
    }
    return cutNow.length;
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    hold: () => {
      const held: (() => void)[] = [];
      waiting = held;
      return () => {
        waiting = null;
        for (const pass of held) pass();
      };
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
};
