import type { Agent, Observation, Unseen } from './observed.ts';
import { after, FIRST_PLACE, letGo, type Place, Record, take } from './rules.ts';

type Places = ReadonlyMap<string, Place>;

/**
 * Whether there is an order of all that was seen of an agent's inbox, each at some moment of its own, in which the rules give just
 * what was seen. Null: there is. Otherwise what stands in the way of the order that goes furthest. Threads of an agent that
 * works in several at once are explained each by itself, those of another together.
 */
export const unexplained = (
  agent: Agent,
  seen: readonly Observation[],
  unseen: readonly Unseen[],
): string | null => {
  const threads = [...new Set(seen.map(({ thread }) => thread))];
  const groups = agent.isConcurrent ? threads.map((thread) => [thread]) : [threads];
  const failures = groups.flatMap((group) => {
    const search = new Search(
      agent,
      seen.filter(({ thread }) => group.includes(thread)),
      unseen,
    );
    return search.succeeds() ? [] : [search.failure];
  });
  return failures.length === 0 ? null : failures.join('\n');
};

/** Orders searched through at most: what takes longer is not explained. */
const MOST_STATES = 400_000;

class Search {
  readonly #agent: Agent;
  /** By when they began. */
  readonly #seen: readonly Observation[];
  readonly #unseen: readonly Unseen[];
  readonly #records: ReadonlyMap<string, Record>;
  readonly #isDone: boolean[];
  readonly #known = new Set<string>();
  #furthest = -1;
  failure = '';

  constructor(agent: Agent, seen: readonly Observation[], unseen: readonly Unseen[]) {
    this.#agent = agent;
    this.#seen = [...seen].sort((one, other) => one.span.from - other.span.from);
    this.#unseen = unseen;
    this.#isDone = seen.map(() => false);
    this.#records = new Map(
      [...new Set(seen.map(({ thread }) => thread))].map((thread) => [
        thread,
        new Record(
          agent.handle,
          seen
            .flatMap((one) => (one.thread === thread && one.kind === 'EVENT' ? one.event : []))
            .sort((one, other) => one.seq - other.seq),
        ),
      ]),
    );
  }

  succeeds(): boolean {
    return this.#from(new Map(), 0, 0, Number.NEGATIVE_INFINITY);
  }

  /** `first`: all before it are done; `now`: so late it is at least. */
  #from(places: Places, first: number, count: number, now: number): boolean {
    let begin = first;
    while (this.#isDone[begin]) begin += 1;
    const done = this.#isDone.slice(begin, this.#isDone.lastIndexOf(true) + 1).map(Number);
    const key = `${begin} ${done.join('')} ${told(places)}`;
    if (this.#known.has(key) || this.#known.size > MOST_STATES) return false;
    this.#known.add(key);

    let limit = Number.POSITIVE_INFINITY;
    let isOver = true;
    const next: number[] = [];
    for (let index = begin; index < this.#seen.length; index += 1) {
      const one = this.#seen[index];
      if (one === undefined || one.span.from > limit) break;
      if (this.#isDone[index]) continue;
      if (isLost(one)) {
        // Its time is over: it was in vain.
        if (one.span.to >= now) next.push(index);
        continue;
      }
      isOver = false;
      limit = Math.min(limit, one.span.to);
      next.push(index);
    }
    if (isOver && next.every((index) => isLost(this.#seen[index]))) return true;

    next.sort((one, other) => (this.#seen[one]?.span.to ?? 0) - (this.#seen[other]?.span.to ?? 0));
    for (const index of next) {
      const one = this.#seen[index];
      if (one === undefined || one.span.from > limit) continue;
      const place = this.#after(places, one);
      if (place === null) continue;
      this.#isDone[index] = true;
      const then = new Map(places).set(one.thread, place);
      if (this.#from(then, begin, count + 1, Math.max(now, one.span.from))) return true;
      this.#isDone[index] = false;
    }
    for (const [thread, place] of this.#notSeen(places, now, limit))
      if (this.#from(new Map(places).set(thread, place), begin, count, now)) return true;
    if (count > this.#furthest) {
      this.#furthest = count;
      this.failure = this.#told(places, next);
    }
    return false;
  }

  #place(places: Places, thread: string): Place {
    return places.get(thread) ?? FIRST_PLACE;
  }

  #isBusy(places: Places): boolean {
    return !this.#agent.isConcurrent && [...places.values()].some(({ hand }) => hand?.isLive === true);
  }

  #after(places: Places, one: Observation): Place | null {
    const record = this.#records.get(one.thread);
    if (record === undefined) return null;
    return after(this.#place(places, one.thread), one, record, this.#agent.handle, this.#isBusy(places));
  }

  /**
   * What may have happened unseen: what has nothing to give any more is let go; and those to whom not all came took something,
   * which stays with them or was given back as if never taken.
   */
  *#notSeen(places: Places, now: number, limit: number): Generator<readonly [string, Place]> {
    const isBusy = this.#isBusy(places);
    const batches = new Set(
      this.#unseen.filter(({ span }) => span.from <= limit && span.to >= now).map(({ batch }) => batch),
    );
    for (const [thread, record] of this.#records) {
      const place = this.#place(places, thread);
      const free = letGo(place, record);
      if (free !== null) yield [thread, free];
      for (const batch of isBusy ? [] : batches) {
        const taken = take(place, record, null, batch);
        if (taken === null) continue;
        const { hand } = taken;
        yield [thread, taken];
        yield [thread, { ...taken, hand: { ...hand, attempt: hand.attempt - 1, isLive: false } }];
      }
    }
  }

  #told(places: Places, next: readonly number[]): string {
    const done = this.#seen.filter((_one, index) => this.#isDone[index]);
    return [
      `Of ${this.#agent.handle} nothing explains what comes after ${done.length} of ${this.#seen.length}${this.#known.size > MOST_STATES ? ' (too much was tried)' : ''}:`,
      ...next.map((index) => `  ${JSON.stringify(this.#seen[index])}`),
      'where it stands so:',
      ...[...places].map(
        ([thread, place]) =>
          `  ${thread} ${JSON.stringify({ ...place, closed: place.closed.slice(0, 3) })} waiting: ${this.#records.get(thread)?.pending(place).join(' ')}`,
      ),
      'after, at last:',
      ...done.slice(-12).map((one) => `  ${JSON.stringify(one)}`),
    ].join('\n');
  }
}

/** Nobody was told whether it was done. */
const isLost = (one: Observation | undefined): boolean =>
  (one?.kind === 'ACKNOWLEDGED' || one?.kind === 'EXTENDED') && one.code === 'LOST';

const told = (places: Places): string =>
  [...places]
    .map(
      ([thread, { head, acknowledged, hand, closed }]) =>
        `${thread} ${head} ${acknowledged} ${closed.length} ${hand?.deliveryId} ${hand?.attempt} ${hand?.seqs.length} ${hand?.isLive}`,
    )
    .sort()
    .join('|');
