import type { Bus, Logger } from '../live/bus.ts';
import { type Database, statement } from '../storage/database.ts';

/** Whose hand. */
interface Holder {
  readonly ownerId: string;
  readonly participantId: string;
}

interface Watcher extends Holder {
  /** Undefined: nobody has looked yet. */
  seen: string | null | undefined;
  readonly told: (threadId: string | null) => void;
}

/**
 * In which thread the message is that an agent has in hand, for those who follow it: told when it changes, whichever process and
 * door changed it. One statement a second for everybody in this process, and none while nobody follows; whoever changes a hand
 * by a tool says so, which only makes it sooner.
 */
export interface Hands {
  /** `told` is called with the thread (null: nothing is in hand) once it was looked at, and whenever it is another. */
  watch(holder: Holder, told: (threadId: string | null) => void): () => void;
  /** A tool may have changed what this agent has in hand. */
  moved(participantId: string): void;
  close(): void;
}

const POLL_MS = 1_000;

/** As `message_in_hand`, outside of runs, for many. */
const HANDS = statement<{ thread_id: string | null }>(
  'messages_in_hand',
  `SELECT h.thread_id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u(owner_id, participant_id, place)
   LEFT JOIN LATERAL (
     SELECT i.thread_id FROM inbox_threads i
     WHERE i.owner_id = u.owner_id AND i.participant_id = u.participant_id AND i.run_id = ''
       AND i.delivery_id IS NOT NULL AND i.holder IS NULL
     ORDER BY i.taken_at DESC LIMIT 1) h ON true
   ORDER BY u.place`,
);

const channelOf = (participantId: string): string => `hand:${participantId}`;

export const createHands = ({ database, bus, log }: { database: Database; bus: Bus; log: Logger }): Hands => {
  const watchers = new Set<Watcher>();
  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;
  let isAgain = false;

  const look = async (): Promise<void> => {
    const asking = [...watchers];
    if (asking.length === 0) return;
    const rows = await database.query(HANDS, [
      asking.map(({ ownerId }) => ownerId),
      asking.map(({ participantId }) => participantId),
    ]);
    asking.forEach((watcher, index) => {
      const threadId = rows[index]?.thread_id ?? null;
      if (watcher.seen === threadId || !watchers.has(watcher)) return;
      watcher.seen = threadId;
      watcher.told(threadId);
    });
  };

  /** One look at a time; what is said meanwhile is looked for once more. */
  const wake = async (): Promise<void> => {
    isAgain = true;
    if (isLooking) return;
    isLooking = true;
    while (isAgain) {
      isAgain = false;
      await look().catch((error: unknown) => log.warn({ err: error }, 'What is in hand cannot be seen now.'));
    }
    isLooking = false;
  };

  const close = (): void => {
    clearInterval(timer);
    timer = undefined;
  };

  return {
    watch({ ownerId, participantId }, told) {
      const watcher: Watcher = { ownerId, participantId, seen: undefined, told };
      watchers.add(watcher);
      const look = (): void => void wake();
      timer ??= setInterval(look, POLL_MS).unref();
      // Listening begins with a look, whatever the bus does.
      const leave = bus.subscribe(channelOf(participantId), look, look);
      look();
      return () => {
        leave();
        watchers.delete(watcher);
        if (watchers.size === 0) close();
      };
    },
    moved: (participantId) => void bus.publish(channelOf(participantId), ''),
    close,
  };
};
