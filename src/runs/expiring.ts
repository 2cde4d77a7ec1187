import { RUN_DUE_COLUMN } from '../auth/revocations.ts';
import type { Logger } from '../shared/log.ts';
import { type Database, statement } from '../storage/database.ts';

const DUE = statement<{ run_due: number | null }>('runs_due', `SELECT ${RUN_DUE_COLUMN}`);

const EXPIRE = statement<{ ended: string[]; woken: string[] }>(
  'expire_runs',
  'SELECT e.ended, tp_woken() AS woken FROM (SELECT expire_runs($1) AS ended OFFSET 0) e',
);

/**
 * How long what is known of the next deadline holds. A deadline is at least a second ahead when it is set, so a look at
 * least that often knows each before it comes.
 */
const LOOK_MS = 900;
/** Of several processes that know a deadline one does the work, as the others come a moment later. */
const SPREAD_MS = 100;
const BATCH = 100;

export interface Expiring {
  /** The next run is due in so many milliseconds; null: none has a deadline. Whoever is told often asks nothing itself. */
  heard(inMs: number | null): void;
  close(): Promise<void>;
}

/**
 * Ends runs whose deadline has passed, within a second: any process may, and does for all. Their tokens are dead in that
 * moment by themselves; this says so of the run, and ends what is below it. It sleeps until the next deadline.
 */
export const createExpiring = ({
  database,
  log,
  onEnded,
}: {
  database: Database;
  log: Logger;
  /** After the commit: which ended, and whose inboxes it woke. */
  onEnded(runIds: readonly string[], woken: readonly string[]): void;
}): Expiring => {
  let isClosed = false;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const look = async (): Promise<number> =>
    (await database.query(DUE, []))[0]?.run_due ?? Number.POSITIVE_INFINITY;

  const expire = async (): Promise<void> => {
    for (;;) {
      const [row] = await database.query(EXPIRE, [BATCH]);
      if (row === undefined || row.ended.length === 0) return;
      onEnded(row.ended, row.woken);
      if (isClosed || row.ended.length < BATCH) return;
    }
  };

  const run = async (): Promise<void> => {
    let dueInMs = Number.POSITIVE_INFINITY;
    try {
      dueInMs = await look();
      if (dueInMs <= 0) {
        await expire();
        dueInMs = await look();
      }
    } catch (error) {
      log.warn({ err: error }, 'Runs that are due could not be ended; it is tried again.');
    }
    running = undefined;
    sleep(dueInMs);
  };

  const sleep = (dueInMs: number): void => {
    clearTimeout(timer);
    if (isClosed) return;
    const wait = dueInMs > LOOK_MS ? LOOK_MS : Math.ceil(Math.max(dueInMs, 0)) + Math.random() * SPREAD_MS;
    timer = setTimeout(() => {
      running = run();
    }, wait).unref();
  };

  sleep(0);
  return {
    heard: (inMs) => {
      if (running === undefined) sleep(inMs ?? Number.POSITIVE_INFINITY);
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
};
