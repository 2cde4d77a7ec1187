import { noPadCursor, padCursor } from '../shared/cursors.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import type { Activity } from './activity.ts';
import { NOWHERE, type PadChange, type PadContent, type PadPosition } from './pad.ts';

/** What a follower of a pad is told: a change of its state, or what became of the pad itself. */
export type ScratchpadChange =
  | PadChange
  | { readonly kind: 'CREATED' }
  | { readonly kind: 'RESET' }
  | { readonly kind: 'DELETED' };

/** One payload: where the reader stands now, and what brought it there or why the stream ends. */
export interface ScratchpadDelivery {
  readonly ownerId: string;
  readonly threadId: string;
  /** null: the thread has none yet. */
  readonly scratchpadId: string | null;
  readonly viewerId: string | null;
  readonly cursor: string;
  readonly change: ScratchpadChange | null;
  /** The change, one object for all who follow the pad; null for what no log has. */
  readonly subject: PadChange | null;
  readonly ended: DeliveryEnd | null;
}

export type Reader = Pick<ScratchpadDelivery, 'ownerId' | 'threadId' | 'viewerId'>;

/** What is kept back until the viewer is active again: at most one of each. */
const HELD = ['CREATED', 'RESET', 'ENTRIES', 'CONTENT'] as const;
type Held = (typeof HELD)[number];

const heldAs = (change: ScratchpadChange): Held => {
  switch (change.kind) {
    case 'CREATED':
    case 'RESET':
      return change.kind;
    case 'ENTRIES_CLEARED':
      return 'ENTRIES';
    default:
      return 'CONTENT';
  }
};

/**
 * One viewer's deliveries of one pad, in order of its changes. An entry goes to who was active at its position in the
 * thread, whatever became of it since; the body to who was so and is active now. What a removed viewer misses of the
 * body, and that entries were cleared or all was lost, is told at its re-add, as it is then: nothing that came and went
 * in between, and no entry of a gap ever. What is told is handed over in batches.
 */
export class Deliveries {
  scratchpadId: string | null;
  /** Up to here everything was told, kept back, or is never to be told. */
  position: PadPosition;
  readonly #reader: Reader;
  readonly #activity: Activity;
  #told: ScratchpadDelivery[] = [];
  readonly #held = new Map<Held, { readonly change: ScratchpadChange; readonly at: PadPosition }>();
  #cursor: string;
  /** Entries up to here were told before, where the position had to stay behind something kept back. */
  #toldUpTo: number;

  constructor(
    reader: Reader,
    activity: Activity,
    start: { scratchpadId: string | null; position: PadPosition; cursor: string },
  ) {
    this.#reader = reader;
    this.#activity = activity;
    this.scratchpadId = start.scratchpadId;
    this.position = start.position;
    this.#cursor = start.cursor;
    this.#toldUpTo = start.position.seq;
  }

  /** How many were told and not handed over yet. */
  get told(): number {
    return this.#told.length;
  }

  /** What was told since it was last asked, in order. */
  handOver(): readonly ScratchpadDelivery[] {
    const told = this.#told;
    this.#told = [];
    return told;
  }

  /** The payload that tells where the reader stands. */
  at(ended: DeliveryEnd | null, change: ScratchpadChange | null = null): ScratchpadDelivery {
    const { ownerId, threadId, viewerId } = this.#reader;
    const subject = change !== null && 'at' in change ? change : null;
    const { scratchpadId } = this;
    return { ownerId, threadId, scratchpadId, viewerId, cursor: this.#cursor, change, subject, ended };
  }

  end(ended: DeliveryEnd, change: ScratchpadChange | null = null): void {
    this.#told.push(this.at(ended, change));
  }

  /** The thread has a pad now. */
  created(scratchpadId: string): void {
    this.scratchpadId = scratchpadId;
    this.#tellOrHold({ kind: 'CREATED' }, this.position);
  }

  /** What was told is no longer so: the log begins again, and with it this reader. */
  reset(log: Pick<PadPosition, 'epoch' | 'tag'>): void {
    this.position = { ...NOWHERE, epoch: log.epoch, tag: log.tag };
    this.#toldUpTo = 0;
    this.#held.delete('ENTRIES');
    this.#held.delete('CONTENT');
    this.#tellOrHold({ kind: 'RESET' }, this.position);
  }

  /** The next change of the log, whose position in the thread the activity reaches unless it was decided otherwise. */
  take(change: PadChange, wasActive = this.#activity.wasActiveAt(threadSeqOf(change))): void {
    this.position = change.at;
    switch (change.kind) {
      case 'ENTRY':
        if (wasActive && change.entry.seq > this.#toldUpTo) this.#tell(change, change.at);
        break;
      case 'ENTRIES_CLEARED':
        if (wasActive) this.#tell(change, change.at);
        else this.#hold(change, change.at);
        break;
      case 'CONTENT':
      case 'CONTENT_CLEARED':
        if (wasActive && this.#activity.isActive) this.#tell(change, change.at);
        else this.#hold(change, change.at);
        break;
      default:
        change satisfies never;
    }
  }

  /** The viewer is back: what became of the pad itself is told at once. */
  back(): void {
    for (const held of ['CREATED', 'RESET'] as const) this.#releaseOne(held);
  }

  /** The viewer is active and something of a gap is kept back: `settle` it by what is there now. */
  get isUnsettled(): boolean {
    return this.#activity.isActive && this.#held.size > 0;
  }

  /** `content`: what is there now. What was kept back of the body is told if it is still so; else the log will tell. */
  settle(content: PadContent | null): void {
    const kept = this.#held.get('CONTENT')?.change;
    const isPresent = kept?.kind === 'CONTENT' ? kept.content.rev === content?.rev : content === null;
    if (!isPresent) this.#held.delete('CONTENT');
    this.#release();
  }

  #release(): void {
    const due = [...this.#held].filter(([held]) => held !== 'CONTENT' || this.#activity.isActive);
    due.sort(([one, { at }], [other, { at: otherAt }]) =>
      at.rev === otherAt.rev ? HELD.indexOf(one) - HELD.indexOf(other) : at.rev - otherAt.rev,
    );
    for (const [held] of due) this.#releaseOne(held);
  }

  #releaseOne(held: Held): void {
    const kept = this.#held.get(held);
    if (kept === undefined) return;
    this.#held.delete(held);
    this.#told.push(this.#payload(kept.change, kept.at));
  }

  #hold(change: ScratchpadChange, at: PadPosition): void {
    this.#held.set(heldAs(change), { change, at });
  }

  #tellOrHold(change: ScratchpadChange, at: PadPosition): void {
    if (this.#activity.isActive) this.#tell(change, at);
    else this.#hold(change, at);
  }

  /** What was kept back goes first: it is of an earlier position. Of two bodies the later one is enough. */
  #tell(change: ScratchpadChange, at: PadPosition): void {
    if (heldAs(change) === 'CONTENT' && change.kind !== 'ENTRY') this.#held.delete('CONTENT');
    if (this.#held.size > 0) this.#release();
    this.#told.push(this.#payload(change, at));
  }

  /** Who resumes from here gets what is kept back again, and no entry twice. */
  #payload(change: ScratchpadChange, at: PadPosition): ScratchpadDelivery {
    const content = this.#held.get('CONTENT');
    const rev = content === undefined ? at.rev : Math.min(at.rev, content.at.rev - 1);
    this.#cursor =
      this.scratchpadId === null
        ? noPadCursor(this.#reader.threadId)
        : padCursor(this.scratchpadId, { ...at, rev });
    return this.at(null, change);
  }
}

export const threadSeqOf = (change: PadChange): number => {
  switch (change.kind) {
    case 'ENTRY':
      return change.entry.threadSeq;
    case 'CONTENT':
      return change.content.threadSeq;
    default:
      return change.threadSeq;
  }
};
