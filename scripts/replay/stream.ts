import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { resumable, type StreamRequest, type StreamSink, steady } from '../../src/client/index.ts';

/** One subscription of one participant, over a connection of its own that is taken up again whenever it is lost. */
export interface Stream {
  /** How often the connection was lost and taken up again. */
  readonly retries: () => number;
  /** Why it ended before it was told to. */
  readonly problem: () => unknown;
  /** Resolves when the condition holds, which is looked at after each payload, or nothing will arrive any more. */
  until(condition: () => boolean): Promise<void>;
  stop(): Promise<void>;
}

export const openStream = <Data>(
  socketUrl: string,
  token: string,
  request: StreamRequest,
  onData: (data: Data) => void,
): Stream => {
  let retries = 0;
  let problem: unknown;
  let isOver = false;
  const waiting = new Set<() => void>();
  const happened = (): void => {
    for (const look of [...waiting]) look();
  };
  const client = resumable(
    createClient({
      url: socketUrl,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${token}` },
      ...steady,
    }),
    {
      onRetry: () => {
        retries += 1;
      },
    },
  );
  const sink: StreamSink = {
    next({ data, errors }) {
      if (errors !== undefined) problem = errors;
      if (data) onData(data as Data);
      happened();
    },
    error(reason) {
      problem = reason;
      isOver = true;
      happened();
    },
    complete() {
      isOver = true;
      happened();
    },
  };
  client.subscribe(request, sink);
  return {
    retries: () => retries,
    problem: () => problem,
    until: (condition) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!condition() && !isOver) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    stop: async () => {
      await client.dispose();
    },
  };
};
