import { randomUUID } from 'node:crypto';
import type { Database } from '../storage/database.ts';
import { statement } from '../storage/database.ts';

/** What this needs of Redis. */
interface PresenceStore {
  zadd(key: string, score: number, member: string): Promise<unknown>;
  zrem(key: string, member: string): Promise<unknown>;
  zcount(key: string, min: number, max: string): Promise<number>;
  pexpire(key: string, milliseconds: number): Promise<unknown>;
  set(key: string, value: string, mode: 'PX', milliseconds: number): Promise<unknown>;
  exists(key: string): Promise<number>;
}

export type Activity = 'OFFLINE' | 'IDLE' | 'WORKING';

export interface Presence {
  /**
   * A stream of the participant is open on this process, until the returned function is called. That it is one of this
   * tenant is the caller's to know.
   */
  hold(ownerId: string, participantId: string): () => void;
  /** The participant, a member of this thread, said that it works there. */
  works(ownerId: string, threadId: string, participantId: string): void;
  /** In the order of the members. Throws UNAVAILABLE while Redis is away. */
  activities(
    ownerId: string,
    members: readonly { readonly threadId: string; readonly participantId: string }[],
  ): Promise<Activity[]>;
  /** This process is about to stop: nobody is there on it any more. */
  close(): void;
}

/** A stream counts so long after the last sign of its process. */
const HELD_MS = 30_000;
const RENEW_MS = 10_000;
/** A signal `working` counts so long. */
const WORKING_MS = 15_000;

const SEATS = statement<{ member: number; listens: boolean; works: boolean }>(
  'member_seats',
  `SELECT u.member::int AS member,
     EXISTS (SELECT 1 FROM inboxes i WHERE i.owner_id = $1 AND i.participant_id = u.participant_id
       AND i.holder IS NOT NULL AND i.held_until > now()) AS listens,
     EXISTS (SELECT 1 FROM inbox_threads t WHERE t.owner_id = $1 AND t.thread_id = u.thread_id AND t.participant_id = u.participant_id
       AND t.delivery_id IS NOT NULL AND t.leased_until > now()) AS works
   FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS u(thread_id, participant_id, member)`,
);

/** Who is there, and who works: in keys that expire, so that a process that dies leaves nobody behind for long. */
export const createPresence = ({
  redis,
  database,
}: {
  redis: PresenceStore;
  database: Database;
}): Presence => {
  const self = randomUUID();
  /** How many streams of each, by key. */
  const held = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  const keyOf = (ownerId: string, participantId: string): string => `presence:${ownerId}:${participantId}`;
  const workKey = (ownerId: string, threadId: string, participantId: string): string =>
    `working:${ownerId}:${threadId}:${participantId}`;
  /** A lost sign costs a while of being taken for away. */
  const quietly = (...commands: Promise<unknown>[]): void => void Promise.allSettled(commands);

  const renew = (key: string): void =>
    quietly(redis.zadd(key, Date.now() + HELD_MS, self), redis.pexpire(key, 2 * HELD_MS));

  const leave = (key: string): void => {
    held.delete(key);
    quietly(redis.zrem(key, self));
    if (held.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    hold(ownerId, participantId) {
      const key = keyOf(ownerId, participantId);
      const count = held.get(key) ?? 0;
      held.set(key, count + 1);
      if (count === 0) renew(key);
      timer ??= setInterval(() => {
        for (const one of held.keys()) renew(one);
      }, RENEW_MS).unref();
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        const left = (held.get(key) ?? 1) - 1;
        if (left === 0) leave(key);
        else held.set(key, left);
      };
    },
    works: (ownerId, threadId, participantId) =>
      quietly(redis.set(workKey(ownerId, threadId, participantId), '1', 'PX', WORKING_MS)),
    async activities(ownerId, members) {
      const now = Date.now();
      const [seats, listening, working] = await Promise.all([
        database.query(SEATS, [
          ownerId,
          members.map(({ threadId }) => threadId),
          members.map(({ participantId }) => participantId),
        ]),
        Promise.all(
          members.map(({ participantId }) => redis.zcount(keyOf(ownerId, participantId), now, '+inf')),
        ),
        Promise.all(
          members.map(({ threadId, participantId }) =>
            redis.exists(workKey(ownerId, threadId, participantId)),
          ),
        ),
      ]);
      const byMember = new Map(seats.map((seat) => [seat.member, seat]));
      return members.map((_, index) => {
        const seat = byMember.get(index + 1);
        if (seat?.listens !== true && (listening[index] ?? 0) === 0) return 'OFFLINE';
        return seat?.works === true || (working[index] ?? 0) > 0 ? 'WORKING' : 'IDLE';
      });
    },
    close() {
      for (const key of [...held.keys()]) leave(key);
    },
  };
};
