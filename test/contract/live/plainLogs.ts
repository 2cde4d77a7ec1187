import type { LogSource, Notice } from '../../../src/live/source.ts';

export interface Entry {
  readonly position: number;
  readonly text: string;
}

/**
 * Logs as plain as they can be: what followers must receive is an array that one can look at. Counts what is asked of
 * it, fails while told to, and answers as late as told to.
 */
export class PlainLogs implements LogSource<Entry> {
  readonly name = 'plain';
  readonly asked = { reads: 0, heads: 0, failures: 0, atOnce: 0 };
  #underWay = 0;
  /** Reads that were asked for, as `key@after`. */
  readonly ranges: string[] = [];
  isFailing = false;
  /** Each answer waits for this. */
  pace: () => Promise<void> = () => Promise.resolve();
  readonly #prefix: string;
  readonly #logs = new Map<string, Entry[]>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  open(key: string): void {
    this.#logs.set(key, []);
  }

  append(key: string, text = 'text'): Entry {
    const log = this.#logs.get(key);
    if (log === undefined) throw new Error(`${key} is gone.`);
    const entry = { position: log.length + 1, text };
    log.push(entry);
    return entry;
  }

  delete(key: string): void {
    this.#logs.delete(key);
  }

  entries(key: string): readonly Entry[] {
    return this.#logs.get(key) ?? [];
  }

  channel(key: string): string {
    return `${this.#prefix}:${key}`;
  }

  async read(key: string, after: number, limit: number): Promise<readonly Entry[]> {
    this.asked.reads += 1;
    this.ranges.push(`${key}@${after}`);
    this.#underWay += 1;
    this.asked.atOnce = Math.max(this.asked.atOnce, this.#underWay);
    try {
      return await this.#answer(() => this.entries(key).slice(after, after + limit));
    } finally {
      this.#underWay -= 1;
    }
  }

  async heads(keys: readonly string[]): Promise<ReadonlyMap<string, number>> {
    this.asked.heads += 1;
    return await this.#answer(
      () => new Map(keys.filter((key) => this.#logs.has(key)).map((key) => [key, this.entries(key).length])),
    );
  }

  decode(message: string): Notice<Entry> | null {
    if (message === 'gone') return { gone: true };
    if (message.startsWith('at ')) return { position: Number(message.slice(3)) };
    if (message === '?') return null;
    const item = JSON.parse(message) as Entry;
    return { position: item.position, item };
  }

  size(entry: Entry): number {
    return entry.text.length + 64;
  }

  /** The state is taken when asked, as a database's snapshot is; the answer may come late. */
  async #answer<Result>(take: () => Result): Promise<Result> {
    const result = take();
    await this.pace();
    if (this.isFailing) {
      this.asked.failures += 1;
      throw new Error('Storage is away.');
    }
    return result;
  }
}

export const withItem = (entry: Entry): string => JSON.stringify(entry);
export const withoutItem = (entry: Entry): string => `at ${entry.position}`;
