export interface Positioned {
  readonly position: number;
}

/** What a message on a log's channel says. `item` is the log's item at `position`, when it was small enough to send. */
export type Notice<Item> =
  | { readonly position: number; readonly item?: Item | undefined }
  | { readonly gone: true };

/**
 * Logs of one kind, as live delivery sees them: ordered items at growing positions, that never change and of which
 * none can appear below one that was already readable. Any call may fail; followers then wait and it is tried again.
 */
export interface LogSource<Item extends Positioned> {
  /** For log lines. */
  readonly name: string;
  /** Storage may lose the end of a log and go on from before it: followers of what was lost are then told it is gone. */
  readonly mayFallBack?: boolean;
  /** Where changes of this log are announced, after they can be read. */
  channel(key: string): string;
  /** The first `limit` items after `after`, in order; empty at the end and for a log that is gone. */
  read(key: string, after: number, limit: number): Promise<readonly Item[]>;
  /** The last position of each log, in one statement; a log that is gone is left out. */
  heads(keys: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** null (or an error) for a message that says nothing certain; the log is then looked at. */
  decode(message: string, key: string): Notice<Item> | null;
  /** Whether what stood before this item is not to be told any more: it took that out of storage. */
  voids?(item: Item): boolean;
  /** About how many bytes an item holds in memory, the same each time. */
  size(item: Item): number;
}

/** Why following ended though nobody asked it to: the log was deleted, or this process is about to stop. */
export type FollowEnd = 'GONE' | 'DRAINING';

/** One step of a follower: the next item, or, last of all, why there are no more. */
export type Followed<Item> =
  | { readonly item: Item; readonly ended?: undefined }
  | { readonly item?: undefined; readonly ended: FollowEnd };

/** Steps in order. What is at hand can be had without waiting: it came together. */
export interface Following<Item> extends AsyncIterableIterator<Followed<Item>, undefined> {
  poll(): Followed<Item> | undefined;
}

/** How much a tail keeps and asks for at a time. */
export interface TailLimits {
  readonly ringItems: number;
  readonly ringBytes: number;
  /** Of one read; the number of items adapts to their size. */
  readonly pageItems: number;
  readonly pageBytes: number;
}

export const TAIL_LIMITS: TailLimits = {
  ringItems: 512,
  ringBytes: 512 * 1024,
  pageItems: 200,
  pageBytes: 256 * 1024,
};
