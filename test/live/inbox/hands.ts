import { until } from '../../support/until.ts';
import { LEASE_SECONDS } from './processes.ts';
import { InboxStream, type Told } from './stream.ts';
import type { Open, World } from './world.ts';

/** A delivery that came to an agent. */
export interface Held {
  readonly agent: string;
  readonly thread: string;
  readonly deliveryId: string;
  readonly events: readonly { readonly seq: number; readonly cursor: string }[];
  /** It was acknowledged, as far as it knows. */
  isDone: boolean;
}

/** A delivery is taken somewhat before its lease says, by another clock. */
const CLOCKS_MS = 20;

/** What the agents of a tenant have been given, and the streams by which they are. */
export class Hands {
  readonly held: Held[] = [];
  readonly streams: InboxStream[] = [];
  readonly #world: World;
  #open: Open[] = [];
  /** What the database’s clock is ahead of this one. */
  readonly #aheadMs: number;

  private constructor(world: World, aheadMs: number) {
    this.#world = world;
    this.#aheadMs = aheadMs;
  }

  static async of(world: World): Promise<Hands> {
    const from = performance.now();
    const [row] = await world.processes.db.database.query<{ ms: number }>(
      { name: 'test_clock', text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms' },
      [],
    );
    return new Hands(world, (row?.ms ?? 0) - from);
  }

  /** Somebody was told this, who had asked since `from` for at most `batch` messages of a thread. */
  told(agent: string, batch: number, from: number, { channel, thread, ...told }: Told): void {
    const name = this.#world.threadName(thread?.id ?? '');
    if (channel === 'CONTROL' && told.ended === null)
      this.#world.notices.push({
        agent,
        kind: told.notice ?? '',
        thread: name,
        seq: told.events[0]?.seq ?? 0,
      });
    if (channel !== 'MESSAGE') return;
    const takenAt = Date.parse(told.leaseExpiresAt ?? '') - LEASE_SECONDS * 1_000 - this.#aheadMs;
    const span = { from: Math.max(from, takenAt - CLOCKS_MS), to: performance.now() };
    const deliveryId = told.deliveryId ?? '';
    const seqs = told.events.map(({ seq }) => seq);
    this.#world.saw(agent, name, span, { kind: 'GIVEN', deliveryId, seqs, attempt: told.attempt, batch });
    this.held.push({ agent, thread: name, deliveryId, events: told.events, isDone: false });
  }

  async open(agent: string, on: number, batch: number, isStandby: boolean): Promise<void> {
    const { socketUrl } = await this.#world.processes.server(on);
    const span: Open = { from: performance.now(), to: Number.POSITIVE_INFINITY };
    const stream = await InboxStream.open(
      socketUrl,
      this.#world.tokenOf(agent),
      { agent, batch, isStandby },
      (told, from) => this.told(agent, batch, from.from, told),
    );
    this.#world.processes.begun();
    // It may end at any time, with something on its way to it.
    this.#world.missed(agent, batch, span);
    this.#open.push(span);
    if (stream !== null) this.streams.push(stream);
  }

  /** Its streams by which it could be told something now. */
  isListening(agent: string): boolean {
    return this.streams.some((stream) => stream.agent === agent && stream.isListening);
  }

  /** What it was told since may have been sent to a stream that did not read it, or in an answer that never came. */
  #mayMiss(agent: string, since: number): boolean {
    return (
      this.streams.some(
        (stream) =>
          stream.agent === agent &&
          stream.deafSince !== null &&
          (!stream.isOver || stream.deafSince >= since),
      ) || this.#world.unreadBy(agent).some(({ to }) => to >= since)
    );
  }

  /** Whoever listens is told at once, whatever it has in hand. `since`: when it was begun that it is told of. */
  async hears(agent: string, kind: string, thread: string, seq: number, since: number): Promise<void> {
    const isTold = (): boolean =>
      this.#world.notices.some(
        (notice) =>
          notice.agent === agent && notice.kind === kind && notice.thread === thread && notice.seq === seq,
      );
    if (!this.isListening(agent)) return;
    await until(() => isTold() || !this.isListening(agent) || this.#mayMiss(agent, since)).catch(() => {
      throw new Error(`${agent} was not told ${kind} of ${thread} at ${seq}, though it listened.`);
    });
  }

  /** Reads nothing any more. */
  async leave(stream: InboxStream | undefined, isRude: boolean): Promise<void> {
    if (stream === undefined) return;
    const { agent, from } = stream;
    await stream.leave(isRude);
    this.#world.unread(agent, { from, to: performance.now() });
  }

  /** All streams are over, and nothing is taken by them any more. */
  async leaveAll(): Promise<void> {
    await this.#readAll();
    await Promise.all(this.streams.map((stream) => stream.leave(true)));
    for (const { wrong } of this.streams) if (wrong !== null) throw new Error(`A stream said ${wrong}`);
    const { database } = this.#world.processes.db;
    const { userId } = this.#world.tenant;
    // Those of processes that were killed are not given back by anybody.
    const forget = {
      name: 'test_forget',
      text: 'UPDATE inboxes SET holder = NULL, held_until = now() WHERE owner_id = $1',
    };
    const count = {
      name: 'test_holders',
      text: 'SELECT count(*)::int AS count FROM inboxes WHERE owner_id = $1 AND holder IS NOT NULL',
    };
    await database.query(forget, [userId]);
    await until(async () => (await database.query<{ count: number }>(count, [userId]))[0]?.count === 0);
    for (const span of this.#open) span.to = performance.now();
    this.#open = [];
  }
  /** Whoever listens has read what it was told. */
  async #readAll(): Promise<void> {
    await Promise.all(this.streams.map((stream) => stream.reads()));
    const listening = [...new Set(this.streams.map(({ agent }) => agent))];
    const untold = {
      name: 'test_untold',
      text: `SELECT count(*)::int AS count FROM inbox_controls c JOIN inboxes i USING (owner_id, participant_id)
        WHERE c.owner_id = $1 AND c.participant_id = $2 AND c.told_at IS NULL AND i.holder IS NOT NULL`,
    };
    const { database } = this.#world.processes.db;
    for (const agent of listening)
      await until(async () => {
        if (!this.isListening(agent)) return true;
        const values = [this.#world.tenant.userId, this.#world.idOf(agent)];
        return (await database.query<{ count: number }>(untold, values))[0]?.count === 0;
      });
    await Promise.all(this.streams.map((stream) => stream.reads()));
  }
}
