import { type Server, startApp } from './app.ts';
import { startTcpProxy } from './tcpProxy.ts';

export interface Product {
  /** The server itself, past the line. */
  readonly server: Server;
  readonly origin: string;
  readonly url: string;
  readonly wsUrl: string;
  /** Resets every connection without a word. */
  cut(): void;
  close(): Promise<void>;
}

/** A whole server, reached over a line that can be cut. */
export const openProduct = async (): Promise<Product> => {
  const server = await startApp();
  const line = await startTcpProxy(() => ({ host: '127.0.0.1', port: Number(new URL(server.url).port) }));
  const host = `127.0.0.1:${line.port}`;
  return {
    server,
    origin: `http://${host}`,
    url: `http://${host}/graphql`,
    wsUrl: `ws://${host}/graphql`,
    cut: () => void line.cut(),
    async close() {
      await line[Symbol.asyncDispose]();
      await server.close();
    },
  };
};
