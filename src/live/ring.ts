import type { LogSource, Positioned, TailLimits } from './source.ts';

/**
 * The recent stretch of a log: every item in the range (start, end], and nothing else. Bounded by count and bytes,
 * except that the newest item always stays, so that however large it is, it is read once for all.
 */
export class Ring<Item extends Positioned> {
  #start: number;
  #end: number;
  #bytes = 0;
  readonly #items: Item[] = [];
  /** What stood up to here was taken out of storage: it does not come back into the ring. */
  #floor = 0;
  readonly #source: Pick<LogSource<Item>, 'size' | 'voids'>;
  readonly #limits: TailLimits;

  constructor(at: number, source: Pick<LogSource<Item>, 'size' | 'voids'>, limits: TailLimits) {
    this.#start = at;
    this.#end = at;
    this.#source = source;
    this.#limits = limits;
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

  /** The first item behind `position`, which must not lie before the start. */
  after(position: number): Item | undefined {
    if (position >= this.#end) return undefined;
    return this.#items[this.#indexAfter(position)];
  }

  /** The item right behind the end. */
  push(item: Item): void {
    // Whoever has not got this far reads from storage, which knows what is left.
    if (this.#source.voids?.(item) === true) {
      this.#floor = this.#end;
      this.restart(this.#end);
    }
    this.#items.push(item);
    this.#bytes += this.#source.size(item);
    this.#end = item.position;
    while (this.#items.length > 1 && this.#isOver()) this.#shift();
  }

  /** Takes what it can of a page that was read after `after`: what follows its end, and what leads up to its start. */
  merge(after: number, page: readonly Item[]): void {
    const last = page.at(-1)?.position ?? after;
    if (after < this.#start && last >= this.#start) this.#growBack(after, page);
    if (after > this.#end) return;
    for (const item of page) if (item.position > this.#end) this.push(item);
  }

  /** Begins again, empty, further on. */
  restart(at: number): void {
    this.#items.length = 0;
    this.#bytes = 0;
    this.#start = at;
    this.#end = at;
  }

  /** Forgets everything up to `position`. */
  trim(position: number): void {
    while (this.#start < position && this.#items.length > 0 && (this.#items[0]?.position ?? 0) <= position)
      this.#shift();
  }

  #growBack(after: number, page: readonly Item[]): void {
    const older: Item[] = [];
    let start = Math.max(after, this.#floor);
    for (const item of page.toReversed()) {
      if (item.position > this.#start) continue;
      if (item.position <= this.#floor) break;
      const bytes = this.#source.size(item);
      const isFull =
        this.#items.length + older.length >= this.#limits.ringItems ||
        this.#bytes + bytes > this.#limits.ringBytes;
      if (isFull) {
        start = item.position;
        break;
      }
      older.push(item);
      this.#bytes += bytes;
    }
    this.#items.unshift(...older.reverse());
    this.#start = start;
  }

  #indexAfter(position: number): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#items[middle]?.position ?? 0) > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #isOver(): boolean {
    return this.#items.length > this.#limits.ringItems || this.#bytes > this.#limits.ringBytes;
  }

  #shift(): void {
    const item = this.#items.shift();
    if (item === undefined) return;
    this.#bytes -= this.#source.size(item);
    this.#start = item.position;
  }
}
