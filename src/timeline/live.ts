import type { Database } from '../storage/database.ts';
import type { TimelineEvent } from './events.ts';
import { readEventsAfter, readHeads } from './reads.ts';

/** Channels carry wake-ups only; a lost one costs latency, never an event. */
export const threadChannel = (threadId: string): string => `live:thread:${threadId}`;
/** Says which thread of a tenant changed, for lists that follow all of them (best effort). */
export const userChannel = (userId: string): string => `live:user:${userId}`;

/** An event travels with its wake-up while it is small; larger ones are read from the log. */
const CARRIED_BYTES = 8 * 1024;

type Wake = { readonly seq: number; readonly event?: TimelineEvent } | { readonly gone: true };

export const encodeEvent = (event: TimelineEvent): string => {
  const carried =
    event.type === 'MESSAGE' && Buffer.byteLength(event.content) > CARRIED_BYTES
      ? null
      : JSON.stringify({ seq: event.seq, event } satisfies Wake);
  return carried === null || carried.length > CARRIED_BYTES * 2
    ? JSON.stringify({ seq: event.seq } satisfies Wake)
    : carried;
};

export const encodeGone = (): string => JSON.stringify({ gone: true } satisfies Wake);

/** What a wake-up says; null for what is none of ours. */
export const decodeWake = (message: string): Wake | null => {
  try {
    const wake = JSON.parse(message) as Wake;
    if ('gone' in wake) return wake;
    return typeof wake.seq === 'number' ? wake : null;
  } catch {
    return null;
  }
};

/** A followed thread's key: tenant and thread. */
export const logKey = (ownerId: string, threadId: string): string => `${ownerId} ${threadId}`;

const splitKey = (key: string): { ownerId: string; threadId: string } => {
  const [ownerId = '', threadId = ''] = key.split(' ');
  return { ownerId, threadId };
};

/** The timeline as a log that `live/` can follow. */
export const timelineSource = (database: Database) => ({
  name: 'timeline',
  channel: (key: string): string => threadChannel(splitKey(key).threadId),
  read: (key: string, after: number, limit: number): Promise<TimelineEvent[]> => {
    const { ownerId, threadId } = splitKey(key);
    return readEventsAfter(database, ownerId, threadId, after, limit);
  },
  heads: async (keys: readonly string[]): Promise<Map<string, number>> => {
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
