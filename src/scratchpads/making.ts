import type { LogSource, Positioned } from '../live/source.ts';
import { type Database, statement } from '../storage/database.ts';
import { threadPadChannel } from './notices.ts';

/** That a thread has a scratchpad: the one item of the log that those follow who wait for it. */
export interface PadMade extends Positioned {
  readonly position: 1;
  readonly scratchpadId: string;
}

export const makingKey = (ownerId: string, threadId: string): string => `${ownerId} ${threadId}`;

const PADS = statement<{ key: string; scratchpad_id: string | null }>(
  'scratchpads_made',
  `SELECT u.key, s.id AS scratchpad_id FROM unnest($1::text[], $2::text[], $3::text[]) AS u(key, owner_id, thread_id)
   JOIN thread_heads h ON h.owner_id = u.owner_id AND h.thread_id = u.thread_id
   LEFT JOIN scratchpads s ON s.owner_id = u.owner_id AND s.thread_id = u.thread_id`,
);

/** Threads as logs of the scratchpads that are made of them: empty until there is one. */
export const makingSource = (database: Database): LogSource<PadMade> => {
  const read = (keys: readonly string[]) => {
    const split = keys.map((key) => key.split(' '));
    return database.urgent(PADS, [
      keys,
      split.map(([ownerId]) => ownerId),
      split.map(([, threadId]) => threadId),
    ]);
  };
  const made = (scratchpadId: string): PadMade => ({ position: 1, scratchpadId });
  return {
    name: 'scratchpads made',
    channel: (key) => threadPadChannel(key.split(' ')[1] ?? ''),
    read: async (key, after) => {
      const [row] = after < 1 ? await read([key]) : [];
      return row?.scratchpad_id ? [made(row.scratchpad_id)] : [];
    },
    heads: async (keys) =>
      new Map((await read(keys)).map((row) => [row.key, row.scratchpad_id === null ? 0 : 1])),
    decode: (message) => ({ position: 1, item: made(message) }),
    size: () => 64,
  };
};
