import { log } from '../shared/log.ts';

export interface LifelineOptions {
  /** Asks the server for a sign of life, over a connection of its own; rejects when none can be had. */
  readonly probe: () => Promise<void>;
  /** Since when the oldest command that is under way has been, in `performance.now()` terms; undefined for none. */
  readonly oldest: () => number | undefined;
  /** The server does not answer: whatever waits for it must stop waiting. */
  readonly onLost: () => void;
}

const PULSE_MS = 250;
const PATIENCE_MS = 400;
const ANSWER_MS = 900;

/**
 * Tells a slow command from a server that is gone without a word (a half-open connection, a stopped machine). A
 * time-out on each command could not: a lock may be waited for longer than a lost server may go unnoticed.
 * While a command takes longer than a moment, the server is asked for a sign of life; when it gives none,
 * `onLost` is called, so every command has its answer within 2 s.
 */
export const createLifeline = ({ probe, oldest, onLost }: LifelineOptions): { close(): void } => {
  let asking = false;

  const ask = async (): Promise<void> => {
    asking = true;
    try {
      await withDeadline(probe(), ANSWER_MS);
    } catch (error) {
      log.warn({ err: error }, 'The database does not answer; commands under way are given up.');
      onLost();
    } finally {
      asking = false;
    }
  };

  const timer = setInterval(() => {
    const since = oldest();
    if (!asking && since !== undefined && performance.now() - since >= PATIENCE_MS) void ask();
  }, PULSE_MS);
  timer.unref();

  return { close: () => clearInterval(timer) };
};

/** Rejects after `ms`. A busy process is not taken for a dead server: an answer that has arrived is read first. */
const withDeadline = async <T>(work: Promise<T>, ms: number): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => setImmediate(() => setImmediate(() => reject(new Error(`no answer within ${ms} ms`)))),
      ms,
    );
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
};
