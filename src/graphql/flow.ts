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

/** The connection that is fed. */
export interface Fed {
  /** Bytes that were written and have not left the process. */
  readonly unsent: number;
  /** Called once when its client stays behind; the flow is closed then. */
  onSlow(): void;
}

interface Held {
  readonly bytes: number;
  readonly release: () => void;
}

/**
 * Feeds one connection no faster than its client reads. What may not be written yet is held in order; whoever awaits
 * `send` or `ready` before it fetches more keeps that little. One message may be of any size: only what is added
 * behind it counts. A reader that stays behind is given up, never waited for. A class, as there is one for each of
 * many thousand connections.
 */
export class Flow {
  readonly #fed: Fed;
  readonly #limits: FlowLimits;
  #queue: Held[] | null = null;
  #held = 0;
  #isClosed = false;
  #patience: NodeJS.Timeout | null = null;
  /** Made when something is first written. */
  #onFlushed: Flushed | null = null;

  constructor(fed: Fed, limits: FlowLimits = FLOW_LIMITS) {
    this.#fed = fed;
    this.#limits = limits;
  }

  get isStalled(): boolean {
    return this.#fed.unsent > this.#limits.pause;
  }

  /** Resolves when more may be fetched for this client, or never will be needed. */
  async ready(): Promise<void> {
    if (!this.#isClosed && this.isStalled) await this.#hold(0, null);
  }

  /** `write` is called when its turn comes and calls back when its bytes have left the process. */
  async send(bytes: number, write: (flushed: Flushed) => void): Promise<void> {
    if (this.#isClosed) return;
    if (this.#queue === null && !this.isStalled) this.#put(write);
    else await this.#hold(bytes, write);
  }

  /** Lets everybody go who waits; nothing is written any more. */
  close(): void {
    this.#isClosed = true;
    this.#endPatience();
    const waiting = this.#queue ?? [];
    this.#queue = null;
    for (const { release } of waiting) release();
  }

  #put(write: (flushed: Flushed) => void): void {
    if (this.#isClosed) return;
    this.#onFlushed ??= (error) => this.#flushed(error);
    write(this.#onFlushed);
    this.#watch();
  }

  /** Holds until the client has caught up, in order; the write happens before anybody behind it. */
  #hold(bytes: number, write: ((flushed: Flushed) => void) | null): Promise<void> {
    return new Promise((resolve) => {
      const release = (): void => {
        if (write !== null) this.#put(write);
        resolve();
      };
      this.#queue ??= [];
      this.#queue.push({ bytes, release });
      this.#held += bytes;
      if (this.#held > this.#limits.most - this.#limits.pause) this.#giveUp();
    });
  }

  #flushed(error?: Error | null): void {
    // Gone: whoever holds the connection hears of it and closes the flow.
    if (error) return;
    while (this.#queue !== null && !this.isStalled) {
      const next = this.#queue.shift();
      if (this.#queue.length === 0) this.#queue = null;
      this.#held -= next?.bytes ?? 0;
      next?.release();
    }
    this.#watch();
  }

  #watch(): void {
    if (this.#isClosed) return;
    if (!this.isStalled) this.#endPatience();
    else this.#patience ??= setTimeout(() => this.#giveUp(), this.#limits.patience).unref();
  }

  #endPatience(): void {
    if (this.#patience !== null) clearTimeout(this.#patience);
    this.#patience = null;
  }

  #giveUp(): void {
    if (this.#isClosed) return;
    this.close();
    this.#fed.onSlow();
  }
}
