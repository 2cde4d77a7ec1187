import pg from 'pg';
import { log } from '../shared/log.ts';

export interface LifelineOptions {
  /** A connection like the pool's, not connected yet. */
  readonly makeClient: () => pg.Client;
  /** The connections that are in use, oldest first, and since when (`performance.now()`). */
  readonly busy: ReadonlyMap<pg.PoolClient, number>;
  /** The server does not answer: whatever waits for it must stop waiting. */
  readonly onLost: () => void;
}

const PULSE_MS = 250;
const PATIENCE_MS = 400;
/** A starved server may take this long to begin with a command that has reached it. */
const BEGIN_MS = 1_000;
const ANSWER_MS = 900;

/**
 * Tells a slow command from a server, or a connection, that is gone without a word. A time-out on each command could
 * not: a lock may be waited for longer than a lost server may go unnoticed. While something takes longer than a
 * moment, the server is asked over a connection of its own what it is doing for it: no answer, and `onLost` is
 * called; for a connection that the server knows nothing of, or finds idle, that one is given up. So
 * every command has its answer within 2 s.
 */
export const createLifeline = ({ makeClient, busy, onLost }: LifelineOptions): { close(): void } => {
  const line = createLine(makeClient);
  let asking = false;

  const ask = async (clients: readonly pg.PoolClient[]): Promise<void> => {
    asking = true;
    try {
      for (const client of await withDeadline(line.findDead(clients), ANSWER_MS)) {
        if (!busy.has(client)) continue;
        log.warn('A database connection went dead and is given up.');
        client.end().catch(() => undefined);
      }
    } catch (error) {
      log.warn({ err: error }, 'The database does not answer; commands under way are given up.');
      line.drop();
      onLost();
    } finally {
      asking = false;
    }
  };

  const timer = setInterval(() => {
    const now = performance.now();
    const [oldest] = busy.values();
    if (asking || oldest === undefined || now - oldest < PATIENCE_MS) return;
    void ask([...busy].filter(([, since]) => now - since >= BEGIN_MS).map(([client]) => client));
  }, PULSE_MS);
  timer.unref();

  return {
    close: () => {
      clearInterval(timer);
      line.drop();
    },
  };
};

/**
 * `settled`: for longer than an answer is on its way. `direct` is false behind a pooler, which gives process ids of its
 * own: nothing can be said of a single connection there.
 */
const STATES = `SELECT pg_backend_pid() = $2::int AS direct, ARRAY(
  SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[])
    AND NOT (state = 'idle' AND state_change < clock_timestamp() - interval '300 ms')) AS alive`;

interface Line {
  /** Those of `clients` for which the server is doing nothing. Rejects when it gives no sign of life. */
  findDead(clients: readonly pg.PoolClient[]): Promise<readonly pg.PoolClient[]>;
  drop(): void;
}

/** The connection for asking; nothing else uses it. */
const createLine = (makeClient: () => pg.Client): Line => {
  let client: pg.Client | undefined;

  const connected = async (): Promise<pg.Client> => {
    if (client !== undefined) return client;
    const fresh = makeClient();
    fresh.on('error', () => {
      if (client === fresh) client = undefined;
    });
    await fresh.connect();
    client = fresh;
    return fresh;
  };

  return {
    findDead: async (clients) => {
      try {
        const asked = await connected();
        const values = [clients.map(processId), processId(asked)];
        const { rows } = await asked.query<{ direct: boolean; alive: number[] }>({
          name: 'lifeline',
          text: STATES,
          values,
        });
        const [row] = rows;
        if (row?.direct !== true) return [];
        return clients.filter((candidate) => !row.alive.includes(processId(candidate)));
      } catch (error) {
        // A refusal is a sign of life too.
        if (error instanceof pg.DatabaseError) return [];
        throw error;
      }
    },
    drop: () => {
      const dropped = client;
      client = undefined;
      dropped?.end().catch(() => undefined);
    },
  };
};

/** As the server announced it; not in the driver's types. */
const processId = (client: pg.ClientBase): number => Number(Reflect.get(client, 'processID'));

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
    work.catch(() => undefined);
  }
};
