import type { FollowEnd, Followed, Following, Positioned } from './source.ts';

/** What a follower needs of the tail it reads from. */
export interface Feed<Item extends Positioned> {
  /** The item that follows `position`, if it is at hand. */
  at(position: number): Item | undefined;
  /** Has `follower` pulled again (or offered a page) as soon as there may be more for it. */
  wait(follower: Follower<Item>): void;
  /** As much of what follows `position` in `page` as one follower may hold on to. */
  portion(page: readonly Item[], position: number): readonly Item[];
  leave(follower: Follower<Item>): void;
}

type Pull<Item> = (result: IteratorResult<Followed<Item>, undefined>) => void;

const NONE: readonly never[] = [];
const DONE = { value: undefined, done: true } as const;

/**
 * A reader of a log: a position that pulls. Nothing is queued for it; while it does not pull it holds at most the
 * rest of one bounded page, so a slow one costs nobody anything. It is freed at once, whatever it is doing, by its
 * signal or by `return()`.
 */
export class Follower<Item extends Positioned> implements Following<Item> {
  /** null once it has left. */
  #feed: Feed<Item> | null;
  #position: number;
  #page: readonly Item[] = NONE;
  #pageIndex = 0;
  #ended: FollowEnd | undefined;
  readonly #pulls: Pull<Item>[] = [];
  readonly #signal: AbortSignal;

  constructor(feed: Feed<Item> | null, after: number, signal: AbortSignal, ended?: FollowEnd) {
    this.#feed = feed;
    this.#position = after;
    this.#signal = signal;
    this.#ended = ended;
    if (feed !== null) signal.addEventListener('abort', this.#leave, { once: true });
  }

  /** Up to here everything was handed out. */
  get position(): number {
    return this.#position;
  }

  /** The next step if it is at hand, without waiting. */
  poll(): Followed<Item> | undefined {
    return this.#pulls.length === 0 ? this.#step() : undefined;
  }

  next(): Promise<IteratorResult<Followed<Item>, undefined>> {
    const step = this.poll();
    if (step !== undefined) return Promise.resolve({ value: step, done: false });
    if (this.#feed === null) return Promise.resolve(DONE);
    return new Promise((resolve) => {
      if (this.#pulls.push(resolve) === 1) this.#feed?.wait(this);
    });
  }

  return(): Promise<IteratorResult<Followed<Item>, undefined>> {
    this.#leave();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** By the tail: there may be more. */
  pull(): void {
    while (this.#pulls.length > 0) {
      const step = this.#step();
      if (step === undefined) break;
      this.#pulls.shift()?.({ value: step, done: false });
    }
    if (this.#pulls.length > 0) this.#feed?.wait(this);
  }

  /** By the tail: a page of which a part may follow this follower's position. */
  offer(page: readonly Item[]): void {
    if (this.#feed !== null && this.#feed.at(this.#position) === undefined) {
      this.#page = this.#feed.portion(page, this.#position);
      this.#pageIndex = 0;
    }
    this.pull();
  }

  /** By the tail: the next step says why it ends, and is the last. What was not handed out yet never is. */
  end(ended: FollowEnd): void {
    if (this.#feed === null) return;
    this.#detach();
    this.#ended = ended;
    const step = this.#pulls.length > 0 ? this.#step() : undefined;
    if (step !== undefined) this.#pulls.shift()?.({ value: step, done: false });
    this.#finish();
  }

  #step(): Followed<Item> | undefined {
    if (this.#feed === null) {
      const ended = this.#ended;
      this.#ended = undefined;
      return ended === undefined ? undefined : { ended };
    }
    const shared = this.#feed.at(this.#position);
    const item = shared ?? this.#page[this.#pageIndex];
    if (item === undefined) return undefined;
    this.#pageIndex += 1;
    if (shared !== undefined || this.#pageIndex >= this.#page.length) {
      this.#page = NONE;
      this.#pageIndex = 0;
    }
    this.#position = item.position;
    return { item };
  }

  readonly #leave = (): void => {
    this.#detach();
    this.#ended = undefined;
    this.#finish();
  };

  #detach(): void {
    this.#signal.removeEventListener('abort', this.#leave);
    this.#feed?.leave(this);
    this.#feed = null;
    this.#page = NONE;
  }

  #finish(): void {
    for (const pull of this.#pulls.splice(0)) pull(DONE);
  }
}
