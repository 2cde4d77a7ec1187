import type { Database } from '../storage/database.ts';
import { statement } from '../storage/database.ts';

/** What this needs of a message bus, which may lose, repeat and delay: it only makes news sooner. Never rejects. */
export interface Wakeups {
  publish(channel: string, message: string): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): () => void;
}

/** What a statement says of the database when it reads credentials or endings. */
export interface Reading {
  /** Every transaction below it was over when the statement looked. */
  readonly xmin: string;
  /** The database's clock, milliseconds since 1970. */
  readonly clock: number;
}

/** Columns of a `Reading`, for any statement. */
export const READING_COLUMNS = `pg_snapshot_xmin(pg_current_snapshot())::text AS xmin,
  (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS clock`;

/** In how many milliseconds the next deadline of an open run comes; null: none has one. For any statement. */
export const RUN_DUE_COLUMN = `(SELECT (extract(epoch FROM min(r.expires_at) - clock_timestamp()) * 1000)::float8
  FROM runs r WHERE r.finished_at IS NULL) AS run_due`;

/** Credential ids to when they expire: milliseconds since 1970 by the database's clock, null for never. */
export type Expiries = Readonly<Record<string, number | null>>;

const READ = statement<
  Reading & { ended: string[]; closed: string[]; expiries: Expiries | null; run_due: number | null }
>(
  'revocations_read',
  `SELECT ${READING_COLUMNS}, ${RUN_DUE_COLUMN}, ARRAY(SELECT DISTINCT credential_id FROM revocation_log
       WHERE xid >= $1::bigint AND reason IS DISTINCT FROM 'EXPIRY_MOVED') AS ended,
     ARRAY(SELECT credential_id FROM revocation_log WHERE xid >= $1::bigint AND reason = 'RUN_CLOSED') AS closed,
     (SELECT jsonb_object_agg(c.id, extract(epoch FROM c.expires_at) * 1000) FROM credentials c WHERE c.id = ANY (ARRAY(
       SELECT credential_id FROM revocation_log WHERE xid >= $1::bigint AND reason = 'EXPIRY_MOVED'))) AS expiries`,
);

const NONE: ReadonlySet<string> = new Set();

const REVOCATIONS_CHANNEL = 'threadpad:revocations';

/** How often the log is read, and how old a reading may be before nothing is trusted any more. */
const READ_EVERY_MS = 400;
const TRUST_FOR_MS = 1_000;
/** A burst of wake-ups is one reading. */
const WAKE_UP_AFTER_MS = 5;

export interface RevocationLogOptions {
  readonly database: Database;
  readonly bus?: Wakeups | undefined;
  /** Whether this process holds a session or a cached credential; without one nothing is read. */
  readonly isNeeded: () => boolean;
  /** Told of credentials that ended, possibly more than once; `closed`: those of them whose run has ended. */
  readonly onEnded: (credentialIds: readonly string[], closed: ReadonlySet<string>) => void;
  /** Told of credentials that expire at another time than they did, possibly more than once. */
  readonly onMoved: (expiries: Expiries) => void;
  /** What each reading brings along, since it is made so often: in how many milliseconds the next run is due; null: none is. */
  readonly onRunDue?: ((inMs: number | null) => void) | undefined;
  /** Called about every 400 ms while needed, also when the database does not answer. */
  readonly onTick: () => void;
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonic?: (() => number) | undefined;
}

/** A statement in flight that reads a credential: what ended while it was. */
interface Witness {
  hasEnded(credentialId: string): boolean;
  /** The statement has answered: the log goes on from no later than what it saw. */
  saw(reading: Reading): void;
  done(): void;
}

/**
 * The reader of the append-only revocation log: one statement every 400 ms per process, however many sockets.
 *
 * Rows carry the transaction that wrote them, and each reading asks for everything since the oldest
 * transaction that was still open at the last one. So a row whose number is low and whose commit is late is
 * never missed. Order of numbers means nothing, and a row may be seen twice.
 */
export interface RevocationLog {
  /** Whether what this process knows is at most a second old. */
  isFresh(): boolean;
  /** Resolves at the next fresh reading (at once if this one is); never rejects: the signal only gives up. */
  whenFresh(signal: AbortSignal): Promise<void>;
  /** The database's clock, never ahead of it: an expiry is judged by it. */
  now(): number;
  witness(): Witness;
  /** Something is held again: reads on, if it does not already. */
  wake(): void;
  /** These were ended by this process and are committed: known here at once, elsewhere as soon as Redis tells. */
  announce(credentialIds: readonly string[]): void;
  /** Something ended or expires at another time, this process does not know the ids: read everywhere at once. */
  nudge(): void;
  close(): void;
}

export const createRevocationLog = (options: RevocationLogOptions): RevocationLog => {
  const { database, bus, isNeeded, onEnded, onMoved, onTick } = options;
  const monotonic = options.monotonic ?? (() => performance.now());
  const witnesses = new Set<Set<string>>();
  const waiting = new Set<() => void>();
  /** From which transaction the next reading must ask; null before anything was held. */
  let position: bigint | null = null;
  let lastStartedAt = Number.NEGATIVE_INFINITY;
  let clockAhead = Date.now() - monotonic();
  let timer: NodeJS.Timeout | null = null;
  let dueAt = Number.POSITIVE_INFINITY;
  let isReading = false;
  let isClosed = false;
  /** A channel of the bus, only while something is held. */
  let unsubscribe: (() => void) | undefined;

  const deafen = (): void => {
    unsubscribe?.();
    unsubscribe = undefined;
  };

  const isFresh = (): boolean => monotonic() - lastStartedAt <= TRUST_FOR_MS;

  const schedule = (inMs: number): void => {
    if (isClosed || isReading) return;
    const at = monotonic() + inMs;
    if (timer !== null && dueAt <= at) return;
    if (timer !== null) clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(() => void tick(), inMs);
    timer.unref();
  };

  const end = (ids: readonly string[], closed: ReadonlySet<string> = NONE): void => {
    if (ids.length === 0) return;
    for (const ended of witnesses) for (const id of ids) ended.add(id);
    onEnded(ids, closed);
  };

  const noteClock = (reading: Reading): void => {
    clockAhead = reading.clock - monotonic();
  };

  /** Set by a wake-up that came while a reading was under way: its news may be too late for that one. */
  let readAgain = false;

  const read = async (from: bigint): Promise<void> => {
    const startedAt = monotonic();
    const [row] = await database.urgent(READ, [from.toString()]);
    if (row === undefined || isClosed) return;
    end(row.ended, row.closed.length === 0 ? NONE : new Set(row.closed));
    noteClock(row);
    // A lookup that saw the old expiry moves the position back, and is put right by the next reading.
    if (row.expiries !== null) onMoved(row.expiries);
    options.onRunDue?.(row.run_due);
    // A witness may have moved it back meanwhile, for something this reading has not looked for.
    if (position === from) position = BigInt(row.xmin);
    lastStartedAt = startedAt;
    for (const resolve of [...waiting]) resolve();
  };

  const tick = async (): Promise<void> => {
    timer = null;
    dueAt = Number.POSITIVE_INFINITY;
    const startedAt = monotonic();
    onTick();
    if (!isNeeded() || position === null) return deafen();
    isReading = true;
    readAgain = false;
    try {
      await read(position);
    } catch (error) {
      options.onError?.(error);
    } finally {
      isReading = false;
      schedule(readAgain ? WAKE_UP_AFTER_MS : Math.max(0, READ_EVERY_MS - (monotonic() - startedAt)));
    }
  };

  const nudge = (): void => {
    if (isReading) readAgain = true;
    else if (timer !== null) schedule(WAKE_UP_AFTER_MS);
  };

  return {
    isFresh,
    now: () => monotonic() + clockAhead,
    whenFresh: (signal) =>
      new Promise((resolve) => {
        const settle = (): void => {
          waiting.delete(settle);
          signal.removeEventListener('abort', settle);
          resolve();
        };
        if (isFresh() || signal.aborted || isClosed) return resolve();
        waiting.add(settle);
        signal.addEventListener('abort', settle, { once: true });
        nudge();
      }),
    witness: () => {
      const ended = new Set<string>();
      const startedAt = monotonic();
      witnesses.add(ended);
      return {
        hasEnded: (id) => ended.has(id),
        saw: (reading) => {
          const xmin = BigInt(reading.xmin);
          if (position !== null && (isReading || timer !== null)) {
            if (xmin < position) position = xmin;
            return;
          }
          // Nothing was held, so nothing older can be missed: the log begins with this statement.
          position = xmin;
          lastStartedAt = startedAt;
          noteClock(reading);
        },
        done: () => witnesses.delete(ended),
      };
    },
    wake: () => {
      if (isClosed) return;
      unsubscribe ??= bus?.subscribe(REVOCATIONS_CHANNEL, nudge);
      if (timer === null) schedule(READ_EVERY_MS);
    },
    announce: (ids) => {
      end(ids);
      if (ids.length > 0) void bus?.publish(REVOCATIONS_CHANNEL, '');
    },
    nudge: () => {
      nudge();
      void bus?.publish(REVOCATIONS_CHANNEL, '');
    },
    close: () => {
      isClosed = true;
      if (timer !== null) clearTimeout(timer);
      for (const resolve of [...waiting]) resolve();
      deafen();
    },
  };
};
