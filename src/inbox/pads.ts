import type { Session } from '../auth/session.ts';
import type { Bus } from '../live/bus.ts';
import type { ScratchpadChange, ScratchpadDelivery } from '../scratchpads/deliveries.ts';
import type { FollowScratchpadInput } from '../scratchpads/follow.ts';
import { noPadCursor } from '../shared/cursors.ts';
import { DomainError } from '../shared/errors.ts';
import { log } from '../shared/log.ts';
import { type Database, statement } from '../storage/database.ts';
import { decodeThreadNotice, userChannel } from '../timeline/live.ts';
import type { Inbox } from './inboxes.ts';

export interface PadObserving {
  readonly database: Database;
  readonly bus: Bus;
  followScratchpad(
    session: Session,
    input: FollowScratchpadInput,
    gone: AbortSignal,
  ): Promise<AsyncGenerator<ScratchpadDelivery>>;
}

/** Pads that one stream observes: those whose threads moved last. */
const MOST_PADS = 100;
/** Changes that wait for a digest; of a pad that has more the rest is read later. */
const MOST_CHANGES = 200;
/** Clocks of processes and stores agree so well: rather told of something from before than not told. */
const CLOCKS_MS = 500;

/** Pads of an inbox's threads (of these, if any are named), and how long ago each was made. */
const PADS = statement<{ thread_id: string; age_ms: number }>(
  'inbox_pads',
  `SELECT s.thread_id, (extract(epoch FROM clock_timestamp() - s.created_at) * 1000)::float8 AS age_ms FROM inbox_threads i
   JOIN scratchpads s ON s.owner_id = i.owner_id AND s.thread_id = i.thread_id
   JOIN thread_heads h ON h.owner_id = i.owner_id AND h.thread_id = i.thread_id
   WHERE i.owner_id = $1 AND i.participant_id = $2 AND ($3::text[] IS NULL OR i.thread_id = ANY ($3::text[]))
     AND ($4::text IS NULL OR i.thread_id = $4)
   ORDER BY h.activity DESC LIMIT ${MOST_PADS}`,
);

/** Of these threads, those in which the participant is active: the others' content it may not read. */
const ACTIVE = statement<{ thread_id: string }>(
  'inbox_active_threads',
  `SELECT m.thread_id FROM thread_members m
   WHERE m.owner_id = $1 AND m.participant_id = $2 AND m.thread_id = ANY ($3::text[]) AND m.state = 'ACTIVE'`,
);

const authorOf = (change: ScratchpadChange): string | null => {
  switch (change.kind) {
    case 'ENTRY':
      return change.entry.authorId;
    case 'CONTENT':
      return change.content.authorId;
    case 'CONTENT_CLEARED':
    case 'ENTRIES_CLEARED':
      return change.actorId;
    case 'CREATED':
    case 'RESET':
    case 'DELETED':
      return null;
    default:
      return change satisfies never;
  }
};

/** When it was made, where that is known. */
const timeOf = (change: ScratchpadChange): number => {
  if (change.kind === 'ENTRY') return Date.parse(change.entry.createdAt);
  return change.kind === 'CONTENT' ? Date.parse(change.content.updatedAt) : Number.POSITIVE_INFINITY;
};

/** What a change takes of an answer, about. */
const bytesOf = ({ change }: ScratchpadDelivery): number => {
  const text = change?.kind === 'ENTRY' ? change.entry.content : undefined;
  return 512 + Buffer.byteLength((change?.kind === 'CONTENT' ? change.content.text : text) ?? '');
};

/**
 * What becomes of the scratchpads of an inbox's threads while it is open, for its digests: each followed as itself,
 * from a moment after the stream began on, whenever it can be; of a pad that is made meanwhile everything. What it writes itself
 * is left out.
 */
export class PadObserver {
  readonly #deps: PadObserving;
  readonly #session: Session;
  readonly #inbox: Inbox;
  /** Of the changes that wait and of those of one digest. */
  readonly #mostBytes: number;
  readonly #gone = new AbortController();
  readonly #followed = new Set<string>();
  /** Threads that something was heard of, or whose pads could not be followed. */
  readonly #changed = new Set<string>();
  /** Up to where pads were followed that cannot be just now. */
  readonly #reached = new Map<string, string>();
  /** When it looked first: what is of before is not told. */
  #began: { readonly at: number; readonly time: number } | null = null;
  /** All pads that are there were looked for since listening held. */
  #isComplete = false;
  #changes: ScratchpadDelivery[] = [];
  #bytes = 0;
  #room: (() => void)[] = [];
  readonly #leave: () => void;

  constructor(deps: PadObserving, session: Session, inbox: Inbox, mostBytes: number) {
    this.#deps = deps;
    this.#session = session;
    this.#inbox = inbox;
    this.#mostBytes = mostBytes;
    const heard = (message: string): void => {
      const { threadId, seq, participantId, deletedFor } = decodeThreadNotice(message);
      if (inbox.threadId !== null && inbox.threadId !== threadId) return;
      // Something beside the record: it may be that the thread has a pad now.
      if (seq === undefined && participantId === undefined && deletedFor === undefined)
        this.#changed.add(threadId);
    };
    // Listening (again): what was said before may have been missed.
    this.#leave = deps.bus.subscribe(userChannel(inbox.ownerId), heard, () => {
      this.#isComplete = false;
    });
  }

  /**
   * Looks for pads to follow: at first for all, then for those that were made since or could not be followed. No statement
   * where nothing was heard. Where it fails, the next time looks for the same.
   */
  async look(): Promise<void> {
    const isFirst = this.#began === null;
    this.#began ??= { at: performance.now(), time: Date.now() - CLOCKS_MS };
    const heard = [...this.#changed].filter((id) => !this.#followed.has(id));
    const isComplete = this.#isComplete;
    if (isComplete && heard.length === 0) return;
    // What is heard while it looks is for the next time.
    this.#isComplete = true;
    for (const id of heard) this.#changed.delete(id);
    try {
      await this.#find(isComplete ? heard : null, isFirst);
    } catch (error) {
      this.#isComplete &&= isComplete;
      for (const id of heard) this.#changed.add(id);
      throw error;
    }
  }

  /** Some wait for the next digest. */
  get hasMore(): boolean {
    return this.#changes.length > 0;
  }

  /**
   * At most so many, and no more than fit beside others into an answer. Content that waited is told to nobody who was removed
   * meanwhile. Where that cannot be known, nothing is taken.
   */
  async take(most: number): Promise<ScratchpadDelivery[]> {
    const known = await this.#forgetContent();
    let bytes = 0;
    const end = this.#changes.findIndex((delivery, index) => {
      bytes += bytesOf(delivery);
      const isUnknown = delivery.change?.kind === 'CONTENT' && !known.has(delivery.threadId);
      return isUnknown || index >= most || (index > 0 && bytes > this.#mostBytes);
    });
    const taken = this.#changes.splice(0, end < 0 ? this.#changes.length : end);
    for (const change of taken) this.#bytes -= bytesOf(change);
    this.#makeRoom();
    return taken;
  }

  /** Of the threads in which its participant is not active; answers the others that content waits of. */
  async #forgetContent(): Promise<ReadonlySet<string>> {
    const threadIds = new Set(
      this.#changes.flatMap(({ change, threadId }) => (change?.kind === 'CONTENT' ? [threadId] : [])),
    );
    if (threadIds.size === 0) return threadIds;
    const { ownerId, participantId } = this.#inbox;
    const rows = await this.#deps.database.query(ACTIVE, [ownerId, participantId, [...threadIds]]);
    for (const { thread_id } of rows) threadIds.delete(thread_id);
    this.#dropWhere(({ change, threadId }) => change?.kind === 'CONTENT' && threadIds.has(threadId));
    return new Set(rows.map((row) => row.thread_id));
  }

  close(): void {
    this.#leave();
    this.#gone.abort();
    this.#makeRoom();
  }

  #makeRoom(): void {
    const waiting = this.#room;
    this.#room = [];
    for (const go of waiting) go();
  }

  async #find(threadIds: readonly string[] | null, isFirst: boolean): Promise<void> {
    const { ownerId, participantId, threadId: only } = this.#inbox;
    const rows = await this.#deps.database.query(PADS, [ownerId, participantId, threadIds, only]);
    for (const { thread_id: threadId, age_ms: age } of rows) {
      if (this.#followed.has(threadId) || this.#followed.size >= MOST_PADS) continue;
      // What could not be followed from the beginning on is read from its own, for what is of later.
      const beginning = isFirst ? null : noPadCursor(threadId);
      const isNew = age < performance.now() - (this.#began?.at ?? 0);
      void this.#follow(threadId, this.#reached.get(threadId) ?? beginning, isNew);
    }
  }

  async #follow(threadId: string, after: string | null, isNew: boolean): Promise<void> {
    const { participantId } = this.#inbox;
    const isOfBefore = (change: ScratchpadChange): boolean =>
      !isNew && (change.kind === 'CREATED' || timeOf(change) < (this.#began?.time ?? 0));
    this.#followed.add(threadId);
    try {
      const input = { threadId, as: participantId, after };
      const following = await this.#deps.followScratchpad(this.#session, input, this.#gone.signal);
      for await (const delivery of following) {
        const { change, ended, cursor } = delivery;
        // What is gone cannot be shown any more.
        if (change?.kind === 'DELETED' || ended !== null)
          this.#dropWhere((other) => other.threadId === threadId);
        if (change !== null && authorOf(change) !== participantId && !isOfBefore(change))
          await this.#keep(delivery);
        this.#reached.set(threadId, cursor);
      }
      this.#reached.delete(threadId);
    } catch (error) {
      const code = error instanceof DomainError ? error.code : null;
      if (code === null) log.warn({ err: error }, 'A scratchpad cannot be observed for an inbox just now.');
      // Where its store is away it goes on from there, and where it is another by now from its beginning; what is gone, or
      // may not be seen, is told of no more.
      if (code !== null && code !== 'UNAVAILABLE') this.#reached.delete(threadId);
      if (code === null || code === 'UNAVAILABLE' || code === 'INVALID_CURSOR') this.#changed.add(threadId);
    } finally {
      this.#followed.delete(threadId);
    }
  }

  /** Waits while there is much. */
  async #keep(delivery: ScratchpadDelivery): Promise<void> {
    const isFull = (): boolean =>
      this.#changes.length >= MOST_CHANGES || (this.#bytes > 0 && this.#bytes >= this.#mostBytes);
    while (isFull() && !this.#gone.signal.aborted)
      await new Promise<void>((resolve) => this.#room.push(resolve));
    this.#changes.push(delivery);
    this.#bytes += bytesOf(delivery);
  }

  #dropWhere(isGone: (waiting: ScratchpadDelivery) => boolean): void {
    this.#changes = this.#changes.filter((waiting) => !isGone(waiting));
    this.#bytes = this.#changes.reduce((sum, change) => sum + bytesOf(change), 0);
  }
}
