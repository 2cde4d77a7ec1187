/**
 * Wake-ups between processes. A bus may lose, repeat and reorder messages: whoever follows something durable
 * takes a message as a reason to read, never as the record itself.
 */
export interface Bus {
  /**
   * Never rejects and never waits for a bus that is away: `true` once the message was handed over, `false` when it
   * was not, which costs its readers latency and nothing else.
   */
  publish(channel: string, message: string): Promise<boolean>;
  /**
   * Calls `listener` with each message on `channel` until the returned function is called. `listening` is called
   * whenever listening (again) holds, also after each reconnect: what was published before may have been missed,
   * so that is the moment to read.
   */
  subscribe(channel: string, listener: (message: string) => void, listening?: () => void): Unsubscribe;
  /** Whether messages can arrive now, as far as this process knows. */
  readonly connected: boolean;
  /** How many channels somebody here listens to. */
  readonly channels: number;
  /** Forgets every listener, and publishes nothing more. The connections belong to whoever opened them. */
  close(): void;
}

export type Unsubscribe = () => void;

/** What `live/` needs of a logger; pino is one. */
export interface Logger {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}
