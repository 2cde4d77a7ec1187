import type { Cluster, Redis } from 'ioredis';
import type { PadAddress } from './keys.ts';
import { createImportLegacy } from './legacy.ts';
import type {
  Appended,
  Author,
  Cleared,
  ContentSet,
  EtagDiffers,
  Fenced,
  Gone,
  Grant,
  KeyReused,
  Pad,
  PadChange,
  PadContent,
  PadEntry,
  PadPosition,
  TooLarge,
  WriteKey,
} from './pad.ts';
import { createPlaneReads } from './planeReads.ts';
import { createPlaneWrites } from './planeWrites.ts';

/**
 * The state of scratchpads, in Redis. Every verb is one script on the pad's slot and one round trip (large pages and
 * batches apart, which are read in parts of one look): check, write, sequence, idempotency, limits, expiry and
 * announcement are one. It decides nothing about rights: a grant says what an authorising statement saw, and a verb
 * refuses with `FENCED` what may have changed since. Whatever an earlier version left is taken over first.
 * Every verb rejects with the driver's error when Redis is away (`domainErrorOf` makes it `UNAVAILABLE`).
 */
export interface Plane {
  /** All or none. At least one; none empty (the caller sees to it). */
  append(pad: Pad, grant: Grant, author: Author, input: AppendInput): Promise<Appended | WriteRefusal>;
  setContent(
    pad: Pad,
    grant: Grant,
    author: Author,
    input: SetContentInput,
  ): Promise<ContentSet | EtagDiffers | WriteRefusal>;
  /** Clearing what is empty changes nothing and succeeds. */
  clear(
    pad: Pad,
    grant: Grant,
    author: Author,
    what: ClearWhat,
    operation?: string,
  ): Promise<Cleared | Gone | Fenced>;
  /** The first result of that key, for a caller who may no longer write; null if there is none. Nothing is written. */
  replayAppend(
    pad: PadAddress,
    author: Author,
    input: KeyedAppend,
  ): Promise<Appended | KeyReused | Gone | null>;
  replayContent(
    pad: PadAddress,
    author: Author,
    input: KeyedContent,
  ): Promise<ContentSet | KeyReused | Gone | null>;
  /**
   * Before a membership change at `threadSeq` commits, and while the thread's row is locked by it: no write that was
   * authorised before it lands any more, and the place in the list is noted. Does no harm if the change is rolled
   * back. Repeatable, also late (from an outbox). `isHeld`: whether the row is still held; then what stands above
   * `threadSeq` is known to be of a record that was lost, and the place is the list's end.
   */
  raise(pad: PadAddress, threadSeq: number, isHeld?: () => boolean): Promise<void>;
  /** State and what earlier versions left are gone, and for an hour whatever still comes is refused. Repeatable. */
  purge(pad: PadAddress): Promise<void>;
  /**
   * After `ttlSeconds` was changed: what there is now expires accordingly, counted from now. A write that knows only of
   * an older one does not set that again, as long as such a write may come.
   */
  retime(pad: PadAddress & Pick<Pad, 'ttlSeconds' | 'ttlVersion'>): Promise<void>;
  /** One pipeline for all; of one pad everything as of one moment. In the order of the reads. */
  read(reads: readonly PadRead[]): Promise<(PadState | Gone | Fenced)[]>;
  /**
   * The first changes after `after.rev`, in order, at least one unless there are none: entries that are still there,
   * the newest content, the last clear of each kind. null: `after` belongs to another epoch or to what a fail-over
   * lost, or the pad is gone.
   */
  changes(pad: PadAddress, after: PadPosition, limit: number): Promise<readonly PadChange[] | null>;
  /** Where each pad's log ends now; null for a deleted one. One pipeline. */
  heads(pads: readonly PadAddress[]): Promise<(PadPosition | null)[]>;
  /** Takes over what an earlier version left, if `legacyPending`. The other verbs do it by themselves. */
  importLegacy(pad: Pad, grant: Grant): Promise<{ readonly kind: 'DONE' } | Gone | Fenced>;
}

/** A write that may take several attempts, each authorised afresh. */
interface Attempted {
  /** The same at each attempt (`newOperation`): whichever of its commands arrive, and how often, one of them acts. */
  readonly operation?: string;
}
export interface AppendInput extends Attempted {
  readonly contents: readonly string[];
  readonly key: WriteKey | null;
}
export interface KeyedAppend extends AppendInput {
  readonly key: WriteKey;
}
export interface SetContentInput extends Attempted {
  readonly text: string;
  /** null: whatever is there. '': only if nothing is. */
  readonly expectedEtag: string | null;
  readonly key: WriteKey | null;
}
export interface KeyedContent extends SetContentInput {
  readonly key: WriteKey;
}
export type ClearWhat = 'CONTENT' | 'ENTRIES' | 'ALL';
export type WriteRefusal = Gone | Fenced | TooLarge | KeyReused;

/** `from` <= threadSeq < `until`, as positions of the thread; null: to the end. */
export interface ThreadWindow {
  readonly from: number;
  readonly until: number | null;
}

export interface PageWant {
  /** Ascending and disjoint; null: everything. */
  readonly windows: readonly ThreadWindow[] | null;
  /** Entry seqs, exclusive. */
  readonly after: number | null;
  readonly before: number | null;
  readonly limit: number;
  /** The newest `limit` of the range instead of the oldest. */
  readonly isBackward: boolean;
  /** Ends once the entries' contents are this many bytes or more; at least one entry. */
  readonly maxBytes?: number;
}

export interface PadWants {
  readonly content?: boolean;
  readonly pages?: readonly PageWant[];
  /** Single entries by seq. */
  readonly seqs?: readonly number[];
  /** What shows those, as `windows` of a page; null: everything. */
  readonly seqWindows?: readonly ThreadWindow[] | null;
  /** Whether a reader who stands there can go on. */
  readonly position?: PadPosition;
}

export interface PadRead {
  readonly pad: Pad;
  readonly grant: Grant;
  readonly wants: PadWants;
}

export interface PadPage {
  /** Ascending. */
  readonly entries: readonly PadEntry[];
  /** How many entries the windows show in all, without regard to `after` and `before`. */
  readonly total: number;
  /** How many of them lie before the first of `entries` (or, of an empty page, before where it would be). */
  readonly skipped: number;
  /** The last position that the windows show: of an open one the log's end, else where the last one closed. */
  readonly end: PadPosition;
}

export interface PadState {
  readonly kind: 'STATE';
  /** The log's end. `epoch` is '' while there is no state. */
  readonly position: PadPosition;
  /** Entries in the list. */
  readonly count: number;
  /** Unix ms; null: kept. */
  readonly expiresAt: number | null;
  /** null: none there, or not wanted. */
  readonly content: PadContent | null;
  /** As wanted, in that order. */
  readonly pages: readonly PadPage[];
  /** Those of the wanted seqs that are still there and shown, ascending. */
  readonly entries: readonly PadEntry[];
  /** Whether the wanted `position` is one of this log's, and not beyond its end. True if none was asked for. */
  readonly positionHolds: boolean;
  /**
   * The record's head was once found below this position of the thread: up to it only the pad knows, by its list, what
   * a window shows. 0: never.
   */
  readonly over: number;
}

export interface PlaneOptions {
  readonly redis: Redis | Cluster;
  /** Sets `legacyCheckedAt` of the pad's row, if it is null. */
  markLegacyChecked(pad: PadAddress): Promise<void>;
  /** A larger batch is sent in parts of about this size, so that no script holds up the others for long. */
  readonly partBytes?: number;
}

const PART_BYTES = 384 * 1024;

export const createPlane = (options: PlaneOptions): Plane => {
  const { expire, ...writes } = createPlaneWrites(options.redis, options.partBytes ?? PART_BYTES);
  const importLegacy = createImportLegacy({ ...options, expire });
  /** What an earlier version left stands before whatever is written. */
  const imported = async <Outcome>(
    pad: Pad,
    grant: Grant,
    write: () => Promise<Outcome>,
  ): Promise<Outcome | Gone | Fenced> => {
    if (!pad.legacyPending) return write();
    const outcome = await importLegacy(pad, grant);
    return outcome.kind === 'DONE' ? write() : outcome;
  };
  return {
    ...writes,
    ...createPlaneReads({ redis: options.redis, importLegacy }),
    importLegacy,
    append: (pad, grant, ...rest) => imported(pad, grant, () => writes.append(pad, grant, ...rest)),
    setContent: (pad, grant, ...rest) => imported(pad, grant, () => writes.setContent(pad, grant, ...rest)),
    clear: (pad, grant, ...rest) => imported(pad, grant, () => writes.clear(pad, grant, ...rest)),
  };
};
