import type { Bus, Unsubscribe } from './bus.ts';
import { type Feed, Follower } from './follower.ts';
import type { Outage } from './outage.ts';
import type { Reads } from './reads.ts';
import { Ring } from './ring.ts';
import type { FollowEnd, LogSource, Notice, Positioned, TailLimits } from './source.ts';

/** What a tail shares with the other tails of its source. */
export interface TailContext<Item extends Positioned> {
  readonly source: LogSource<Item>;
  readonly bus: Bus;
  readonly reads: Reads;
  readonly outage: Outage;
  readonly limits: TailLimits;
  /** Has the log's head looked up soon, and `reached` called with it. */
  check(tail: Tail<Item>): void;
  /** The last follower has left. */
  drop(tail: Tail<Item>): void;
}

/** A read under way, or waiting to be tried again, and who wants its page. */
interface Load<Item extends Positioned> {
  readonly after: number;
  readonly limit: number;
  readonly waiters: Set<Follower<Item>>;
  failures: number;
  retry: NodeJS.Timeout | undefined;
}

const FIRST_PAGE_ITEMS = 32;
const RETRY_MS = 100;
const MAX_RETRY_MS = 2_000;

/**
 * One followed log of this process. It listens once, knows how far the log reaches, and keeps the recent stretch in
 * a ring that all its followers read. A follower at the ring's end waits until the log is known to reach further; the
 * first that pulls then causes one read for all. One that is behind the ring reads pages of its own (shared with
 * whoever needs the same) until it gets there. Nothing is read that nobody pulls.
 */
export class Tail<Item extends Positioned> implements Feed<Item> {
  readonly key: string;
  readonly #context: TailContext<Item>;
  readonly #ring: Ring<Item>;
  readonly #followers = new Set<Follower<Item>>();
  readonly #loads = new Set<Load<Item>>();
  /** Those that have pulled and stand at the end of what is known. */
  #idle = new Set<Follower<Item>>();
  /** The highest position that was heard of. */
  #head: number;
  #pageItems: number;
  #isBehind = false;
  #unsubscribe: Unsubscribe | undefined;

  constructor(key: string, after: number, context: TailContext<Item>) {
    this.key = key;
    this.#context = context;
    this.#ring = new Ring(after, context.source, context.limits);
    this.#head = after;
    this.#pageItems = Math.min(FIRST_PAGE_ITEMS, context.limits.pageItems);
  }

  get followers(): ReadonlySet<Follower<Item>> {
    return this.#followers;
  }

  /** Listens first and looks then, so that nothing slips between; without a bus it looks at once, and the poll goes on. */
  start(): void {
    const { bus, source, check } = this.#context;
    const look = (): void => check(this);
    this.#unsubscribe = bus.subscribe(source.channel(this.key), (message) => this.#heard(message), look);
    if (!bus.connected) look();
  }

  join(after: number, signal: AbortSignal): Follower<Item> {
    const follower = new Follower<Item>(this, after, signal);
    this.#followers.add(follower);
    if (after > this.#ring.end) {
      this.#ring.restart(after);
      this.#head = Math.max(this.#head, after);
      this.#wake();
    }
    return follower;
  }

  /** The log's head as storage has it; undefined: the log is gone. */
  reached(head: number | undefined): void {
    if (head === undefined || this.#isLost(head)) this.end('GONE');
    else this.#advance(head);
  }

  /** Whether what was read is no longer there: so it is twice in a row, since an answer may be older than a notice. */
  #isLost(head: number): boolean {
    const isBehind = this.#context.source.mayFallBack === true && head < this.#ring.end;
    const isLost = isBehind && this.#isBehind;
    this.#isBehind = isBehind;
    if (isBehind && !isLost) this.#context.check(this);
    return isLost;
  }

  end(ended: FollowEnd): void {
    for (const follower of this.#followers) follower.end(ended);
  }

  /** Forgets what every follower has passed. */
  trim(): void {
    let slowest = Number.POSITIVE_INFINITY;
    for (const { position } of this.#followers) slowest = Math.min(slowest, position);
    this.#ring.trim(slowest);
  }

  at(position: number): Item | undefined {
    return position < this.#ring.start ? undefined : this.#ring.after(position);
  }

  wait(follower: Follower<Item>): void {
    const { position } = follower;
    if (position < this.#ring.start || position < this.#head) this.#load(follower, position);
    else this.#idle.add(follower);
  }

  portion(page: readonly Item[], position: number): readonly Item[] {
    const { source, limits } = this.#context;
    const items: Item[] = [];
    let bytes = 0;
    for (const item of page) {
      if (item.position <= position) continue;
      bytes += source.size(item);
      if (bytes > limits.pageBytes && items.length > 0) break;
      items.push(item);
    }
    return items;
  }

  leave(follower: Follower<Item>): void {
    if (!this.#followers.delete(follower)) return;
    this.#idle.delete(follower);
    for (const load of this.#loads) {
      if (!load.waiters.delete(follower) || load.waiters.size > 0) continue;
      clearTimeout(load.retry);
      this.#loads.delete(load);
    }
    if (this.#followers.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#context.drop(this);
  }

  #heard(message: string): void {
    const notice = this.#decode(message);
    // Storage has the last word on what is gone or unclear.
    if (notice === null || 'gone' in notice) {
      this.#context.check(this);
      return;
    }
    if (notice.item !== undefined && notice.position === this.#ring.end + 1) {
      this.#ring.push(notice.item);
      this.#head = Math.max(this.#head, notice.position);
      this.#wake();
    } else this.#advance(notice.position);
  }

  #decode(message: string): Notice<Item> | null {
    try {
      return this.#context.source.decode(message, this.key);
    } catch {
      return null;
    }
  }

  #advance(head: number): void {
    if (head <= this.#head) return;
    this.#head = head;
    this.#wake();
  }

  #wake(): void {
    const idle = this.#idle;
    this.#idle = new Set();
    for (const follower of idle) follower.pull();
  }

  #load(follower: Follower<Item>, after: number): void {
    for (const load of this.#loads) {
      if (load.after > after || after >= load.after + load.limit) continue;
      load.waiters.add(follower);
      return;
    }
    const load = {
      after,
      limit: this.#pageItems,
      waiters: new Set([follower]),
      failures: 0,
      retry: undefined,
    };
    this.#loads.add(load);
    this.#attempt(load);
  }

  #attempt(load: Load<Item>): void {
    const { source, reads } = this.#context;
    load.retry = undefined;
    reads
      .run(load.after >= this.#ring.end ? 'live' : 'catchUp', async () =>
        this.#loads.has(load) ? await source.read(this.key, load.after, load.limit) : [],
      )
      .then(
        (page) => this.#loaded(load, page),
        (error: unknown) => this.#failed(load, error),
      );
  }

  #loaded(load: Load<Item>, page: readonly Item[]): void {
    if (!this.#loads.has(load)) return;
    this.#context.outage.over();
    const last = page.at(-1);
    if (last === undefined && load.after < this.#ring.start) {
      // Something stood there when the ring began: the log is gone, which the next look will tell, or will be back.
      this.#retry(load);
      return;
    }
    this.#loads.delete(load);
    if (last === undefined) {
      // What was announced is not there. Storage is believed; the next look finds it if it comes.
      if (load.after >= this.#ring.end) this.#head = this.#ring.end;
    } else {
      this.#ring.merge(load.after, page);
      this.#adapt(page);
      this.#advance(last.position);
    }
    for (const follower of load.waiters) follower.offer(page);
  }

  #failed(load: Load<Item>, error: unknown): void {
    if (!this.#loads.has(load)) return;
    this.#context.outage.failed(error);
    this.#retry(load);
  }

  #retry(load: Load<Item>): void {
    const delay = Math.min(RETRY_MS * 2 ** load.failures, MAX_RETRY_MS) * (0.5 + Math.random() / 2);
    load.failures += 1;
    load.retry = setTimeout(() => this.#attempt(load), delay);
  }

  /** Reads as many items next time as fit the size of a page, judged by this one. */
  #adapt(page: readonly Item[]): void {
    const { source, limits } = this.#context;
    let bytes = 1;
    for (const item of page) bytes += source.size(item);
    const fitting = Math.floor((limits.pageBytes * page.length) / bytes);
    this.#pageItems = Math.max(1, Math.min(fitting, limits.pageItems));
  }
}
