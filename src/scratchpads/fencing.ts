import type { Logger } from '../shared/log.ts';
import { type Database, required, statement } from '../storage/database.ts';
import type { Prisma } from '../storage/generated/prisma/client.ts';
import type { MemberState, TimelineRow } from '../timeline/events.ts';
import type { PadAddress } from './keys.ts';
import type { Outbox } from './outbox.ts';
import type { Plane } from './plane.ts';

/** A change of a member's state, as `change_state` takes it. */
export interface MemberChange {
  readonly ownerId: string;
  readonly threadId: string;
  /** To whom the thread must be visible; null: the owner. */
  readonly memberId: string | null;
  readonly participantId: string;
  readonly to: MemberState;
  readonly actorId: string | null;
  readonly eventId: string;
  readonly auditId: string;
  readonly credentialId: string;
}

/** Writes the change and answers its event. Errors: NOT_FOUND, INVALID_TRANSITION. */
export type ChangeMember = (change: MemberChange) => Promise<TimelineRow>;

const CHANGE = statement<TimelineRow>(
  'change_state',
  'SELECT * FROM change_state($1, $2, $3, $4, $5, $6, $7, $8, $9, false)',
);

/** How long a change of membership waits for Redis, holding the thread's row. */
const RAISE_MS = 400;
/** For the whole transaction: waiting for the thread's row is most of it. */
const TRANSACTION_MS = 12_000;
const CONNECTION_MS = 1_500;

/**
 * Changes of membership. A thread without a pad needs one statement. With a pad, its fence in Redis is raised
 * while the thread's row is held and before the change commits, so that no write that was authorised before it lands after
 * it; with Redis away the change commits all the same and an outbox raises the fence as soon as it can.
 */
export const createMemberChanges = ({
  database,
  plane,
  outbox,
  log,
}: {
  database: Database;
  plane: Pick<Plane, 'raise'>;
  outbox: { wake(): void };
  log: Logger;
}): ChangeMember => {
  const raise = (pad: PadAddress, seq: number): Promise<boolean> =>
    new Promise((resolve) => {
      let isMissed = false;
      const missed = (error: unknown): void => {
        if (isMissed) return;
        isMissed = true;
        log.warn({ err: error }, 'Redis did not take a fence in time; it is raised as soon as it can be.');
        resolve(false);
      };
      const timer = setTimeout(() => missed(new Error('No answer in time.')), RAISE_MS);
      plane
        .raise(pad, seq, () => !isMissed)
        .then(() => resolve(true), missed)
        .finally(() => clearTimeout(timer));
    });

  const changeFenced = async (change: MemberChange): Promise<{ row: TimelineRow; isRaised: boolean }> =>
    database.prisma.$transaction(
      async (tx) => {
        const row = await writeChange(tx, change);
        const pad = await padOf(tx, change);
        if (pad === null) return { row, isRaised: true };
        const isRaised = await raise(pad, row.seq);
        if (!isRaised) await promiseFence(tx, pad, row.seq);
        return { row, isRaised };
      },
      { maxWait: CONNECTION_MS, timeout: TRANSACTION_MS },
    );

  return async (change) => {
    const [row] = await database.query(CHANGE, [
      change.ownerId,
      change.threadId,
      change.memberId,
      change.participantId,
      change.to,
      change.actorId,
      change.eventId,
      change.auditId,
      change.credentialId,
    ]);
    if (row !== undefined) return row;
    const fenced = await changeFenced(change);
    if (!fenced.isRaised) outbox.wake();
    return fenced.row;
  };
};

type Transaction = Prisma.TransactionClient;

const writeChange = async (tx: Transaction, change: MemberChange): Promise<TimelineRow> => {
  const { ownerId, threadId, memberId, participantId, to, actorId, eventId, auditId, credentialId } = change;
  const [row] = await tx.$queryRaw<TimelineRow[]>`SELECT * FROM change_state(
    ${ownerId}, ${threadId}, ${memberId}, ${participantId}, ${to}::participant_states, ${actorId}, ${eventId},
    ${auditId}, ${credentialId}, true)`;
  return required(row);
};

/** Under the thread's lock, so that a pad that was made meanwhile is seen. */
const padOf = async (
  tx: Transaction,
  { ownerId, threadId }: { readonly ownerId: string; readonly threadId: string },
): Promise<PadAddress | null> => {
  const pad = await tx.scratchpad.findUnique({
    where: { ownerId_threadId: { ownerId, threadId } },
    select: { id: true },
  });
  return pad && { ownerId, threadId, scratchpadId: pad.id };
};

const promiseFence = async (tx: Transaction, pad: PadAddress, seq: number): Promise<void> => {
  // The first attempt has just failed.
  await tx.$executeRaw`INSERT INTO scratchpad_fences (scratchpad_id, seq, owner_id, thread_id, due_at)
    VALUES (${pad.scratchpadId}, ${seq}, ${pad.ownerId}, ${pad.threadId}, clock_timestamp() + interval '250 milliseconds')`;
};

interface FenceRow {
  scratchpad_id: string;
  seq: number;
  owner_id: string;
  thread_id: string;
  /** The pad still exists; else nobody can write to it. */
  is_there: boolean;
}

const CLAIM = statement<FenceRow>(
  'scratchpad_fences_claim',
  `UPDATE scratchpad_fences f SET due_at = now() + interval '30 seconds', attempts = f.attempts + 1
   WHERE f.ctid = ANY (ARRAY(
     SELECT d.ctid FROM scratchpad_fences d WHERE d.due_at <= now() ORDER BY d.due_at LIMIT $1 FOR UPDATE SKIP LOCKED))
   RETURNING f.scratchpad_id, f.seq, f.owner_id, f.thread_id,
     EXISTS (SELECT 1 FROM scratchpads s WHERE s.id = f.scratchpad_id) AS is_there`,
);
const RAISED = statement(
  'scratchpad_fences_raised',
  `DELETE FROM scratchpad_fences f USING unnest($1::text[], $2::int[]) AS u(scratchpad_id, seq)
   WHERE f.scratchpad_id = u.scratchpad_id AND f.seq = u.seq`,
);
const LATER = statement(
  'scratchpad_fences_later',
  `UPDATE scratchpad_fences f SET due_at = now() + least(2, 0.1 * 2 ^ least(f.attempts, 10)) * interval '1 second'
   FROM unnest($1::text[], $2::int[]) AS u(scratchpad_id, seq)
   WHERE f.scratchpad_id = u.scratchpad_id AND f.seq = u.seq`,
);

const keysOf = (rows: readonly FenceRow[]): [string[], number[]] => [
  rows.map((row) => row.scratchpad_id),
  rows.map((row) => row.seq),
];

/** Raises the fences of changes that were committed while Redis was away. */
export const fenceOutbox = (plane: Pick<Plane, 'raise'>): Outbox<FenceRow> => ({
  name: 'fence',
  claim: CLAIM,
  perform: async (row) => {
    if (row.is_there)
      await plane.raise(
        { ownerId: row.owner_id, threadId: row.thread_id, scratchpadId: row.scratchpad_id },
        row.seq,
      );
  },
  done: async (database, rows) => void (await database.query(RAISED, keysOf(rows))),
  failed: async (database, rows) => void (await database.query(LATER, keysOf(rows))),
});
