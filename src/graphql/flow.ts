export interface FlowLimits {
  /** Bytes unsent above which a reader is not fed. */
  readonly pause: number;
  /** Bytes unsent and held at which it is given up. */
  readonly most: number;
  /** Milliseconds without being fed after which it is given up. */
  readonly patience: number;
}

export const FLOW_LIMITS: FlowLimits = { pause: 1024 * 1024, most: 4 * 1024 * 1024, patience: 10_000 };

/** Called with the error where the bytes could not be sent. */
type Flushed = (error?: Error | null) => void;

/**
 * Feeds one connection no faster than its client reads. What may not be written yet is held in order; whoever
 * awaits `send` or `ready` before it fetches more keeps that little. One message may be of any size: only what is
 * added behind it counts. A reader that stays behind is given up (`onSlow`, once), never waited for.
 */
export interface Flow {
  readonly isStalled: boolean;
  /** Resolves when more may be fetched for this client, or never will be needed. */
  ready(): Promise<void>;
  /** `write` is called when its turn comes and calls back when its bytes have left the process. */
  send(bytes: number, write: (flushed: Flushed) => void): Promise<void>;
  /** Lets everybody go who waits; nothing is written any more. */
  close(): void;
}

interface Held {
  readonly bytes: number;
  readonly release: () => void;
}

export const createFlow = ({
  unsent,
  onSlow,
  limits = FLOW_LIMITS,
}: {
  readonly unsent: () => number;
  readonly onSlow: () => void;
  readonly limits?: FlowLimits;
}): Flow => {
  let queue: Held[] = [];
  let held = 0;
  let isClosed = false;
  let patience: NodeJS.Timeout | undefined;

  const isBehind = (): boolean => unsent() > limits.pause;
  const close = (): void => {
    isClosed = true;
    clearTimeout(patience);
    const waiting = queue;
    queue = [];
    held = 0;
    for (const { release } of waiting) release();
  };
  const slow = (): void => {
    if (isClosed) return;
    close();
    onSlow();
  };
  const watch = (): void => {
    if (isClosed) return;
    if (!isBehind()) {
      clearTimeout(patience);
      patience = undefined;
      return;
    }
    patience ??= setTimeout(slow, limits.patience).unref();
  };
  const flushed = (error?: Error | null): void => {
    // The connection is gone; whoever holds it hears of it and closes the flow.
    if (error) return;
    while (queue.length > 0 && (isClosed || !isBehind())) {
      const next = queue.shift();
      held -= next?.bytes ?? 0;
      next?.release();
    }
    watch();
  };
  /** Holds until the client has caught up, in order; `act` then runs before anybody behind it. */
  const hold = (bytes: number, act: () => void): Promise<void> =>
    new Promise((resolve) => {
      held += bytes;
      queue.push({
        bytes,
        release: () => {
          act();
          resolve();
        },
      });
      if (held > limits.most - limits.pause) slow();
    });
  const put = (write: (flushed: Flushed) => void): void => {
    if (isClosed) return;
    write(flushed);
    watch();
  };

  return {
    get isStalled() {
      return isBehind();
    },
    async ready() {
      if (!isClosed && isBehind()) await hold(0, () => {});
    },
    async send(bytes, write) {
      if (isClosed) return;
      if (queue.length === 0 && !isBehind()) put(write);
      else await hold(bytes, () => put(write));
    },
    close,
  };
};
