import { connect, createServer, type Socket } from 'node:net';

/** Stands between clients and a server, and cuts connections without a word. */
export interface CuttingProxy extends AsyncDisposable {
  readonly port: number;
  /** Connections that are open now. */
  readonly open: () => number;
  /** Cuts the connection that `choose` picks from so many (0 is the oldest). */
  cut(choose: (count: number) => number): void;
}

export const startCuttingProxy = async (target: { readonly port: number }): Promise<CuttingProxy> => {
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((client) => {
    const upstream = connect(target.port, '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.pipe(upstream);
    upstream.pipe(client);
    const end = (): void => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) {
      socket.on('error', end);
      socket.on('close', end);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port.');
  return {
    port: address.port,
    open: () => pairs.size,
    cut(choose) {
      if (pairs.size === 0) return;
      const [client, upstream] = [...pairs][choose(pairs.size) % pairs.size] ?? [];
      client?.resetAndDestroy();
      upstream?.destroy();
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      await closed;
    },
  };
};
