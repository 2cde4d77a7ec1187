import { unavailable } from '../shared/errors.ts';
import { type Database, statement } from '../storage/database.ts';
import type { MemberState } from '../timeline/events.ts';
import { type Look, readLooks } from '../timeline/look.ts';
import type { Grant, Pad } from './pad.ts';
import { TTL_VERSION } from './rows.ts';

/** Who wants to write to which pad; the owner where `participantId` is null. */
export interface WantedAccess {
  readonly ownerId: string;
  /** The pad, by its own id or by its thread's. */
  readonly scratchpadId?: string | undefined;
  readonly threadId?: string | undefined;
  readonly participantId: string | null;
  /** The run in which it wants to: then only the run's pad, as far as the run and whom it sees it through may. */
  readonly runId?: string | null;
}

/** What one authorising statement saw, all as of one moment. */
export interface PadAccess {
  readonly pad: Pad;
  readonly participantId: string | null;
  /**
   * The participant's state in the pad's thread; null: the owner. In a run that of whom the run sees the pad through.
   * Only an active one may write.
   */
  readonly state: MemberState | null;
  /** Whether the run is open and its deadline not over; true without a run. */
  readonly isOpen: boolean;
  /** What the data plane is to be told; good for 10 s. */
  readonly grant: Grant;
}

export interface Access {
  /**
   * One statement, shared by those who ask in the same turn of the event loop and never used again after it. Null: no
   * such pad, or none that this participant may know of.
   */
  grant(wanted: WantedAccess): Promise<PadAccess | null>;
  /**
   * As `grant`, once every change of membership that was under way is decided: what a command that was refused
   * with the fence's `mark` goes on with. Errors: UNAVAILABLE.
   */
  settled(wanted: WantedAccess & { readonly threadId: string }, mark: string): Promise<PadAccess | null>;
  /** A look that waits in the same way: for a read that met a position above what it was authorised for. */
  settledLook(wanted: {
    readonly ownerId: string;
    readonly threadId: string;
    readonly viewerId: string | null;
  }): Promise<Look | null>;
}

interface GrantRow {
  ordinal: number;
  id: string;
  owner_id: string;
  thread_id: string;
  ttl_seconds: number | null;
  ttl_version: number;
  legacy_pending: boolean;
  last_seq: number;
  state: MemberState | null;
  is_open: boolean | null;
}

/** The LIMITs keep the planner from joining whole tables, or all members of a thread: each row is looked up by its key. */
export const GRANT = statement<GrantRow>(
  'scratchpad_grant',
  `SELECT u.ordinal::int AS ordinal, s.id, s.owner_id, s.thread_id, s.ttl_seconds, s.ttl_version, s.legacy_pending, h.last_seq, m.state::text AS state, r.is_open
   FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
     WITH ORDINALITY AS u(owner_id, scratchpad_id, thread_id, participant_id, run_id, ordinal)
   LEFT JOIN LATERAL (
     SELECT r.scratchpad_id, r.pad_viewer_id,
       r.finished_at IS NULL AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp()) AS is_open
     FROM runs r WHERE r.owner_id = u.owner_id AND r.id = u.run_id LIMIT 1
   ) r ON true
   JOIN LATERAL (
     SELECT p.id, p.owner_id, p.thread_id, p.ttl_seconds, ${TTL_VERSION('p')} AS ttl_version, p.legacy_checked_at IS NULL AS legacy_pending
     FROM scratchpads p WHERE p.owner_id = u.owner_id AND p.id = u.scratchpad_id
     UNION ALL
     SELECT p.id, p.owner_id, p.thread_id, p.ttl_seconds, ${TTL_VERSION('p')}, p.legacy_checked_at IS NULL
     FROM scratchpads p WHERE p.owner_id = u.owner_id AND p.thread_id = u.thread_id AND u.scratchpad_id IS NULL
     LIMIT 1
   ) s ON true
   JOIN thread_heads h ON h.owner_id = s.owner_id AND h.thread_id = s.thread_id
   LEFT JOIN LATERAL (
     SELECT m.state FROM thread_members m
     WHERE m.owner_id = s.owner_id AND m.thread_id = s.thread_id AND m.participant_id = CASE WHEN u.run_id IS NULL THEN u.participant_id ELSE r.pad_viewer_id END LIMIT 1
   ) m ON true
   WHERE CASE WHEN u.run_id IS NULL THEN u.participant_id IS NULL OR m.state IS NOT NULL
     ELSE r.scratchpad_id = s.id AND (r.pad_viewer_id IS NULL OR m.state IS NOT NULL) END`,
);

/** Waits for whoever holds the thread's row, which a change of membership does until it is decided. */
const SETTLE = statement(
  'scratchpad_settle',
  'SELECT 1 AS held FROM thread_heads h WHERE h.owner_id = $1 AND h.thread_id = $2 FOR SHARE',
);

const MOST_AT_ONCE = 500;
/** What was authorised before a run ended lands no later than this after its ending. */
const RUN_GRANT_MS = 800;
const PATIENCE_MS = 5_000;

interface Waiting {
  readonly wanted: WantedAccess;
  resolve(access: PadAccess | null): void;
  reject(error: unknown): void;
}

export const createAccess = ({
  database,
  ttlSeconds,
}: {
  database: Database;
  /** Of pads that have none of their own. */
  ttlSeconds: number;
}): Access => {
  let waiting: Waiting[] = [];

  const flush = async (batch: readonly Waiting[]): Promise<void> => {
    const byKey = new Map<string, { readonly wanted: WantedAccess; readonly waiting: Waiting[] }>();
    for (const one of batch) {
      const key = keyOf(one.wanted);
      const same = byKey.get(key);
      if (same === undefined) byKey.set(key, { wanted: one.wanted, waiting: [one] });
      else same.waiting.push(one);
    }
    const distinct = [...byKey.values()];
    const readAt = performance.now();
    try {
      const rows = await database.query(GRANT, [
        distinct.map(({ wanted }) => wanted.ownerId),
        distinct.map(({ wanted }) => wanted.scratchpadId ?? null),
        distinct.map(({ wanted }) => wanted.threadId ?? null),
        distinct.map(({ wanted }) => wanted.participantId),
        distinct.map(({ wanted }) => wanted.runId ?? null),
      ]);
      const found = new Map(rows.map((row) => [row.ordinal, row]));
      distinct.forEach(({ wanted, waiting: those }, index) => {
        const row = found.get(index + 1);
        const access = row === undefined ? null : accessOf(row, wanted, readAt);
        for (const { resolve } of those) resolve(access);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  const accessOf = (row: GrantRow, { participantId, runId }: WantedAccess, readAt: number): PadAccess => ({
    pad: {
      ownerId: row.owner_id,
      threadId: row.thread_id,
      scratchpadId: row.id,
      ttlSeconds: row.ttl_seconds ?? ttlSeconds,
      ttlVersion: row.ttl_version,
      legacyPending: row.legacy_pending,
    },
    participantId,
    state: row.state,
    isOpen: row.is_open ?? true,
    grant: { threadSeq: row.last_seq, readAt, settles: null, ...(runId ? { goodForMs: RUN_GRANT_MS } : {}) },
  });

  const grant: Access['grant'] = (wanted) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0)
        setImmediate(() => {
          const batch = waiting;
          waiting = [];
          for (let start = 0; start < batch.length; start += MOST_AT_ONCE)
            void flush(batch.slice(start, start + MOST_AT_ONCE));
        });
      waiting.push({ wanted, resolve, reject });
    });

  const settle = createSettling(database);

  return {
    grant,
    async settled(wanted, mark) {
      await settle(wanted.ownerId, wanted.threadId);
      const access = await grant(wanted);
      return access && { ...access, grant: { ...access.grant, settles: mark } };
    },
    async settledLook(wanted) {
      await settle(wanted.ownerId, wanted.threadId);
      const [answer] = await readLooks(database, [wanted]);
      return answer?.look ?? null;
    },
  };
};

const keyOf = ({ ownerId, scratchpadId = '', threadId = '', participantId, runId }: WantedAccess): string =>
  `${ownerId} ${scratchpadId} ${threadId} ${participantId ?? ''} ${runId ?? ''}`;

/**
 * Waits until no change of membership that had begun before the call is still under way. Of one thread one statement
 * waits at a time, and one more for all who came after it began, so that a held lock does not take all connections.
 */
const createSettling = (database: Database): ((ownerId: string, threadId: string) => Promise<void>) => {
  const running = new Map<string, { readonly now: Promise<void>; next: Promise<void> | undefined }>();

  const begin = (key: string, ownerId: string, threadId: string): Promise<void> => {
    const now = database.query(SETTLE, [ownerId, threadId]).then(() => undefined);
    const entry = { now, next: undefined };
    running.set(key, entry);
    const done = (): void => {
      if (running.get(key) === entry) running.delete(key);
    };
    now.then(done, done);
    return now;
  };

  return (ownerId, threadId) => {
    const key = `${ownerId} ${threadId}`;
    const entry = running.get(key);
    if (entry === undefined) return patient(begin(key, ownerId, threadId));
    const after = (): Promise<void> => begin(key, ownerId, threadId);
    entry.next ??= entry.now.then(after, after);
    return patient(entry.next);
  };
};

const patient = (work: Promise<void>): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(unavailable('This thread is busy. Try again.')), PATIENCE_MS);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
