import type { WebSocket } from 'ws';

export interface Heartbeat {
  /** The client gave a sign of life. */
  heard(): void;
  stop(): void;
}

interface Watched {
  readonly ws: WebSocket;
  readonly mayJudge: () => boolean;
  isAlive: boolean;
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
    /** `mayJudge`: false while silence has another reason. */
    watch(ws: WebSocket, mayJudge: () => boolean): Heartbeat {
      const watched: Watched = { ws, mayJudge, isAlive: true };
      const home = slots[next];
      next = (next + 1) % SLOTS;
      home?.add(watched);
      const heard = (): void => {
        watched.isAlive = true;
      };
      ws.on('pong', heard);
      ws.on('ping', heard);
      return { heard, stop: () => home?.delete(watched) };
    },
    close: () => clearInterval(timer),
  };
};

const beat = (watched: Watched): void => {
  const { ws } = watched;
  if (ws.readyState !== ws.OPEN || !watched.mayJudge()) return;
  if (!watched.isAlive) {
    ws.terminate();
    return;
  }
  watched.isAlive = false;
  ws.ping();
};
