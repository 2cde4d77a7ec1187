import { inject } from 'vitest';
import { type Server, startProcess } from '../../support/app.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';

type ServerProcess = Awaited<ReturnType<typeof startProcess>>;

/** No lease runs out by itself: that is what schedules decide. */
export const LEASE_SECONDS = 3_600;
const ENVIRONMENT = {
  INBOX_LEASE_SECONDS: String(LEASE_SECONDS),
  INBOX_DIGEST_SECONDS: '1',
  MAX_SUBSCRIPTIONS_PER_SOCKET: '10000',
  MAX_SOCKETS_PER_CREDENTIAL: '10000',
};
/** Each process is another user of the database, so that its statements can be told from the other's. */
const USERS = ['inbox_one', 'inbox_other'] as const;

/** Two server processes on the same stores, which are killed in the middle of whatever they do, and begin again. */
export class Processes implements AsyncDisposable {
  readonly db: TestDatabase;
  readonly #servers: (ServerProcess | null)[] = [null, null];
  readonly #starting: (Promise<void> | null)[] = [null, null];
  #next: { left: number; readonly ms: number; readonly which: readonly number[] } | null = null;
  #killing: Promise<void> = Promise.resolve();

  private constructor(db: TestDatabase) {
    this.db = db;
  }

  static async start(): Promise<Processes> {
    const processes = new Processes(await createTestDatabase({ poolSize: 4 }));
    for (const user of USERS)
      await processes.db.database.script(
        `DO $$ BEGIN CREATE ROLE ${user} SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
      );
    await processes.allUp();
    return processes;
  }

  #start(index: number): Promise<void> {
    const url = new URL(this.db.url);
    url.username = USERS[index] ?? '';
    const starting = startProcess({ databaseUrl: url.href, redisUrl: inject('redisUrl') }, ENVIRONMENT).then(
      (server) => {
        this.#servers[index] = server;
        this.#starting[index] = null;
      },
    );
    this.#starting[index] = starting;
    return starting;
  }

  async allUp(): Promise<void> {
    await Promise.all(
      [0, 1].map(
        (index) => this.#starting[index] ?? (this.#servers[index] === null ? this.#start(index) : null),
      ),
    );
  }

  /** The one that is asked for, or the other while that is down. */
  async server(index: number): Promise<Server> {
    for (;;) {
      const up = this.#servers[index] ?? this.#servers[1 - index];
      if (up) return up;
      await this.#killing;
      await Promise.race(this.#starting.filter((starting) => starting !== null));
    }
  }

  /** When so many more requests have begun, and a little later, they are killed. */
  killAfter(requests: number, ms: number, which: readonly number[]): void {
    this.#next = { left: requests, ms, which };
  }

  /** A request has begun. */
  begun(): void {
    const next = this.#next;
    if (next === null) return;
    next.left -= 1;
    if (next.left >= 0) return;
    this.#next = null;
    this.#killing = this.#kill(next.which, next.ms);
    this.#killing.catch(() => undefined);
  }

  /** Whoever was to be killed has been, and nothing that it had begun goes on any more. */
  async killed(): Promise<void> {
    if (this.#next !== null) {
      this.#next.left = 0;
      this.begun();
    }
    await this.#killing;
  }

  async #kill(which: readonly number[], ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
    const old = which.map((index) => this.#servers[index]);
    for (const index of which) this.#servers[index] = null;
    await Promise.all(old.map((server) => server?.kill9()));
    await Promise.all(
      which.map(async (index) => {
        await until(async () => (await this.#connections(USERS[index] ?? '')) === 0);
        void this.#start(index);
      }),
    );
  }

  async #connections(user: string): Promise<number> {
    const [row] = await this.db.database.query<{ count: number }>(
      {
        name: 'test_connections',
        text: 'SELECT count(*)::int AS count FROM pg_stat_activity WHERE usename = $1 AND datname = current_database()',
      },
      [user],
    );
    return row?.count ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.allUp();
    await Promise.all(this.#servers.map((server) => server?.close()));
    await this.db.drop();
  }
}
