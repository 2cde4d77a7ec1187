import type { ClearWhat, ThreadWindow } from '../../../src/scratchpads/plane.ts';
import { MEMBERS } from './history.ts';

export interface ModelEntry {
  readonly seq: number;
  readonly rev: number;
  readonly threadSeq: number;
  readonly content: string;
}

/** A thread as SQL has it: a head, and who came and went at which position. */
export class ModelThread {
  head = 1;
  readonly #changes: { readonly seq: number; readonly who: number; readonly isActive: boolean }[] = [];

  /** The last change up to there left it active; none: active. */
  isActive(who: number, seq: number): boolean {
    return this.#changes.findLast((change) => change.who === who && change.seq <= seq)?.isActive ?? true;
  }

  change(who: number): number {
    this.#changes.push({ seq: this.head + 1, who, isActive: !this.isActive(who, this.head) });
    this.head += 1;
    return this.head;
  }

  windows(who: number): ThreadWindow[] {
    const windows: ThreadWindow[] = [];
    let from: number | null = 1;
    for (const { seq, isActive } of this.#changes.filter((change) => change.who === who)) {
      if (!isActive && from !== null) windows.push({ from, until: seq });
      from = isActive ? seq : null;
    }
    if (from !== null) windows.push({ from, until: null });
    return windows;
  }

  hasChangeAfter(seq: number, isRaised: (seq: number) => boolean): boolean {
    return this.#changes.some((change) => change.seq > seq && isRaised(change.seq));
  }
}

/** A pad as a plain object: what §6 says, without keys, scripts or time. */
export class ModelPad {
  rev = 0;
  seq = 0;
  entries: ModelEntry[] = [];
  content: { readonly text: string; readonly version: number; readonly rev: number } | null = null;
  version = 0;
  last = 0;
  readonly results = new Map<string, { readonly hash: string; readonly outcome: unknown }>();

  get isNothing(): boolean {
    return this.rev === 0;
  }

  append(threadSeq: number, contents: readonly string[]): ModelEntry[] {
    this.last = Math.max(this.last, threadSeq);
    const added = contents.map((content) => {
      this.rev += 1;
      this.seq += 1;
      return { seq: this.seq, rev: this.rev, threadSeq: this.last, content };
    });
    this.entries.push(...added);
    return added;
  }

  set(threadSeq: number, text: string): void {
    this.last = Math.max(this.last, threadSeq);
    this.rev += 1;
    this.version += 1;
    this.content = { text, version: this.version, rev: this.rev };
  }

  clear(threadSeq: number, what: ClearWhat): void {
    const clears = [
      what !== 'ENTRIES' && this.content !== null,
      what !== 'CONTENT' && this.entries.length > 0,
    ];
    if (clears.includes(true)) this.last = Math.max(this.last, threadSeq);
    if (clears[0]) {
      this.rev += 1;
      this.content = null;
    }
    if (clears[1]) {
      this.rev += 1;
      this.entries = [];
    }
  }
}

export const everybody: readonly number[] = Array.from({ length: MEMBERS }, (_, who) => who);
