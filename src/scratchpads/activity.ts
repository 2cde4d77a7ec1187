import type { TimelineEvent } from '../timeline/events.ts';
import type { Look } from '../timeline/look.ts';
import type { ThreadWindow } from './plane.ts';
import { isInWindows, windowsOf } from './reading.ts';

/**
 * When one viewer was active, as a fold over the thread's log: from a look on it takes the viewer's own changes of
 * state. What stands at a position that the fold has reached can be decided, however far it has gone since.
 */
export class Activity {
  readonly #viewerId: string | null;
  /** null: the owner, who sees everything. */
  readonly #windows: ThreadWindow[] | null;
  #reached: number;
  #over: number;

  /** `over`: of the pad's state (`PadState.over`). */
  constructor(look: Look, over: number) {
    this.#viewerId = look.viewerId;
    this.#windows = windowsOf(look);
    this.#reached = look.lastSeq;
    this.#over = over;
  }

  /** Takes the next event of the thread; whether the viewer came back with it. */
  take(event: TimelineEvent): boolean {
    this.#reached = event.seq;
    if (event.type !== 'PARTICIPANT_STATE_CHANGED' || event.subjectId !== this.#viewerId) return false;
    const last = this.#windows?.at(-1);
    if (event.to === 'ACTIVE') this.#windows?.push({ from: event.seq, until: null });
    else if (last !== undefined) this.#windows?.splice(-1, 1, { ...last, until: event.seq });
    return event.to === 'ACTIVE';
  }

  /** Whether what stands at this position of the thread can be decided now. */
  reaches(threadSeq: number): boolean {
    return this.#windows === null || (threadSeq <= this.#reached && !this.isOver(threadSeq));
  }

  /** The record was found older than what stands here: only a look at the pad decides it, also later. */
  isOver(threadSeq: number): boolean {
    return this.#over > 0 && threadSeq <= this.#over;
  }

  found({ over }: { readonly over: number }): void {
    this.#over = Math.max(this.#over, over);
  }

  wasActiveAt(threadSeq: number): boolean {
    return isInWindows(this.#windows, threadSeq);
  }

  /** As of the last event that was taken. */
  get isActive(): boolean {
    return this.#windows === null || this.#windows.at(-1)?.until === null;
  }
}
