import type { LogSource, Notice } from '../live/source.ts';
import type { Database } from '../storage/database.ts';
import type { TimelineEvent } from './events.ts';
import { readEventsAfter, readHeads } from './reads.ts';

/** Channels carry wake-ups only; a lost one costs latency, never an event. */
export const threadChannel = (threadId: string): string => `live:thread:${threadId}`;
/** Says which thread of a tenant changed, for lists that follow all of them (best effort). */
export const userChannel = (userId: string): string => `live:user:${userId}`;

/** Says that a participant's inboxes have something new, or that a stream let one go. */
export const inboxChannel = (participantId: string): string => `live:inbox:${participantId}`;
/** What is said there by a stream that ends: streams in standby hear nothing else. */
export const INBOX_FREE = 'free';

/** An event travels with its wake-up while it is small; larger ones are read from the log. */
const CARRIED = 16 * 1024;

/** Says that the thread has reached the event's position, with the event itself while it is small. */
export const encodeEvent = (event: TimelineEvent): string => {
  const whole = JSON.stringify({ position: event.seq, item: event } satisfies Notice<TimelineEvent>);
  return whole.length <= CARRIED ? whole : encodePosition(event.seq);
};

export const encodePosition = (seq: number): string =>
  JSON.stringify({ position: seq } satisfies Notice<TimelineEvent>);
export const GONE = JSON.stringify({ gone: true } satisfies Notice<TimelineEvent>);

const decode = (message: string): Notice<TimelineEvent> | null => {
  const notice = JSON.parse(message) as { position?: unknown; gone?: unknown; item?: TimelineEvent };
  if (notice.gone === true) return { gone: true };
  if (typeof notice.position !== 'number') return null;
  return { position: notice.position, item: notice.item === undefined ? undefined : delivered(notice.item) };
};

/** What lists of threads are told: which thread, and what of it. */
export interface ThreadNotice {
  readonly threadId: string;
  /** Events were appended, from here to `last`; absent: something else changed. */
  readonly seq?: number;
  readonly last?: number;
  /** It concerns this member only. */
  readonly participantId?: string;
  /** The thread is gone; these were its members. */
  readonly deletedFor?: readonly string[];
}

export const encodeThreadNotice = (notice: ThreadNotice): string => JSON.stringify(notice);

export const decodeThreadNotice = (message: string): ThreadNotice => JSON.parse(message) as ThreadNotice;

/** A followed thread's key: tenant and thread. */
export const logKey = (ownerId: string, threadId: string): string => `${ownerId} ${threadId}`;

const splitKey = (key: string): { ownerId: string; threadId: string } => {
  const [ownerId = '', threadId = ''] = key.split(' ');
  return { ownerId, threadId };
};

/** The timeline as a log that `live/` can follow. */
export const timelineSource = (database: Database): LogSource<TimelineEvent> => ({
  name: 'timeline',
  channel: (key) => threadChannel(splitKey(key).threadId),
  read: async (key, after, limit) => {
    const { ownerId, threadId } = splitKey(key);
    return (await readEventsAfter(database, ownerId, threadId, after, limit)).map(delivered);
  },
  decode,
  size: (event) => 512 + (event.type === 'MESSAGE' ? 2 * event.content.length + dataSize(event.data) : 512),
  heads: async (keys) => {
    const split = keys.map(splitKey);
    const heads = await readHeads(database, split);
    return new Map(
      split.flatMap(({ ownerId, threadId }) => {
        const seq = heads.get(threadId);
        return seq === undefined ? [] : [[logKey(ownerId, threadId), seq] as const];
      }),
    );
  },
});

/** A delivered event may be old when it is looked at: whether it is retracted is read then, not now. */
const delivered = (event: TimelineEvent): TimelineEvent =>
  event.type === 'MESSAGE' ? { ...event, retractionSeq: undefined } : event;

const dataSize = (data: unknown): number => (data === null ? 0 : JSON.stringify(data).length);
