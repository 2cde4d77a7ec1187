import type { WebSocket } from 'ws';

/** A socket whose client is expected to give signs of life. */
export interface Watched {
  readonly ws: WebSocket;
  readonly client: {
    isAlive: boolean;
    readonly isClosing: boolean;
    readonly flow: { readonly isStalled: boolean };
  };
}

const SLOTS = 12;

/**
 * Pings every socket once in `everyMs`, spread so that they do not all answer at once, and ends those that gave no
 * sign of life since the last ping: a connection whose other end is gone does not say so by itself.
 */
export const createHeartbeat = (everyMs: number) => {
  const slots = Array.from({ length: SLOTS }, () => new Set<Watched>());
  let slot = 0;
  let next = 0;
  const timer = setInterval(() => {
    for (const watched of slots[slot] ?? []) beat(watched);
    slot = (slot + 1) % SLOTS;
  }, everyMs / SLOTS).unref();

  return {
    watch(watched: Watched): void {
      slots[next]?.add(watched);
      next = (next + 1) % SLOTS;
    },
    forget(watched: Watched): void {
      for (const set of slots) set.delete(watched);
    },
    close: () => clearInterval(timer),
  };
};

const beat = ({ ws, client }: Watched): void => {
  // A client that is behind answers late, and one that was told to go may take its time.
  if (ws.readyState !== ws.OPEN || client.isClosing || client.flow.isStalled) return;
  if (!client.isAlive) {
    ws.terminate();
    return;
  }
  client.isAlive = false;
  ws.ping();
};
