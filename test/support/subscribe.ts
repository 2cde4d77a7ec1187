import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import type { Server } from './app.ts';

/** What a subscription has brought so far; whoever waits is woken by the next payload. */
export interface Heard<Payload> extends AsyncDisposable {
  readonly payloads: readonly Payload[];
  /** Resolves once `isEnough` holds of all payloads so far; rejects when the stream ends before. */
  until(isEnough: (payloads: readonly Payload[]) => boolean): Promise<readonly Payload[]>;
}

/** One subscription over WebSocket on a socket of its own, without reconnection. */
export const subscribe = <Payload>(
  server: Server,
  token: string,
  query: string,
  variables: Readonly<Record<string, unknown>> = {},
): Heard<Payload> => {
  const client = createClient({
    url: server.socketUrl,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
    lazyCloseTimeout: 0,
  });
  const payloads: Payload[] = [];
  const waiting = new Set<() => void>();
  let ended: Error | undefined;
  const wake = (): void => {
    for (const check of [...waiting]) check();
  };
  const end = (error: Error): void => {
    ended ??= error;
    wake();
  };
  client.subscribe<Payload>(
    { query, variables },
    {
      next: ({ data, errors }) => {
        if (errors) return end(new Error(JSON.stringify(errors)));
        if (data) payloads.push(data);
        wake();
      },
      error: (error) => end(new Error(`The stream failed: ${JSON.stringify(error)}`)),
      complete: () => end(new Error('The stream is complete.')),
    },
  );
  return {
    payloads,
    until: (isEnough) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (isEnough(payloads)) resolve(payloads);
          else if (ended) reject(ended);
          else return;
          waiting.delete(check);
        };
        waiting.add(check);
        check();
      }),
    async [Symbol.asyncDispose]() {
      await client.dispose();
    },
  };
};
