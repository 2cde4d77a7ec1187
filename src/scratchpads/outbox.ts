import type { Logger } from '../shared/log.ts';
import { type Database, type Statement, statement } from '../storage/database.ts';

/** What was promised to Redis in a transaction, of one kind. Every step may be repeated, and any process may do it. */
export interface Outbox<Row> {
  /** For log lines. */
  readonly name: string;
  /** Takes up to `$1` rows that are due, and puts them off so that no other process takes them meanwhile. */
  readonly claim: Statement<Row>;
  perform(row: Row): Promise<void>;
  /** Says in the database that these are done. */
  done(database: Database, rows: readonly Row[]): Promise<void>;
  /** Puts off what failed, for longer each time. */
  failed(database: Database, rows: readonly Row[]): Promise<void>;
}

export interface OutboxWorker {
  /** Something was promised: begin now. */
  wake(): void;
  close(): Promise<void>;
}

const BATCH = 64;
const EVERY_MS = 30_000;
const SOONEST_MS = 50;

/** In how many seconds the next row of any kind is due; null for none. */
const NEXT = statement<{ seconds: number | null }>(
  'scratchpad_outboxes_due',
  `SELECT extract(epoch FROM least(
     (SELECT min(due_at) FROM scratchpad_purges), (SELECT min(due_at) FROM scratchpad_fences),
     (SELECT min(due_at) FROM scratchpad_retimes)) - now())::float8 AS seconds`,
);

/**
 * Does what outboxes hold: at once when woken, when the next row is due, and for what others left every half minute. A
 * process that is killed in between leaves rows that are due again soon.
 */
export const createOutboxWorker = (
  outboxes: readonly (() => Promise<number>)[],
  { database, log, everyMs = EVERY_MS }: { database: Database; log: Logger; everyMs?: number },
): OutboxWorker => {
  let isClosed = false;
  let isDue = false;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const workAll = async (): Promise<void> => {
    for (const work of outboxes) while (!isClosed && (await work()) > 0);
  };

  const run = async (): Promise<void> => {
    let wait = everyMs;
    try {
      do {
        isDue = false;
        let seconds = await untilNext(database);
        if (seconds <= 0) {
          await workAll();
          seconds = await untilNext(database);
        }
        wait = Math.min(everyMs, Math.max(SOONEST_MS, seconds * 1_000));
      } while (isDue && !isClosed);
    } catch (error) {
      log.warn({ err: error }, 'What Redis was promised could not be looked for; it is tried again.');
    }
    running = undefined;
    if (isClosed) return;
    if (isDue) wake();
    else timer = setTimeout(wake, wait).unref();
  };

  const wake = (): void => {
    isDue = true;
    if (isClosed || running !== undefined) return;
    clearTimeout(timer);
    running = run();
  };

  wake();
  return {
    wake,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
};

const untilNext = async (database: Database): Promise<number> =>
  (await database.query(NEXT, []))[0]?.seconds ?? Number.POSITIVE_INFINITY;

/** Does one batch; answers how many rows were done. */
export const workOff =
  <Row>(outbox: Outbox<Row>, { database, log }: { database: Database; log: Logger }) =>
  async (): Promise<number> => {
    const rows = await database.query(outbox.claim, [BATCH]);
    const outcomes = await Promise.allSettled(rows.map((row) => outbox.perform(row)));
    const done = rows.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    const failed = rows.filter((_, index) => outcomes[index]?.status === 'rejected');
    if (done.length > 0) await outbox.done(database, done);
    if (failed.length > 0) {
      const reason = outcomes.find((outcome) => outcome.status === 'rejected')?.reason as unknown;
      log.warn(
        { err: reason, outbox: outbox.name, rows: failed.length },
        'Redis did not take what it was promised; it is tried again.',
      );
      await outbox.failed(database, failed);
    }
    return done.length;
  };
