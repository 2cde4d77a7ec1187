import { statement } from '../storage/database.ts';
import type { Outbox } from './outbox.ts';
import type { Plane } from './plane.ts';
import { TTL_VERSION } from './rows.ts';

interface RetimeRow {
  scratchpad_id: string;
  version: string;
  /** Redis was told before; this is the last time. */
  is_last: boolean;
  /** Null, as what follows, where the pad is gone. */
  owner_id: string | null;
  thread_id: string | null;
  ttl_seconds: number | null;
  ttl_version: number | null;
}

const CLAIM = statement<RetimeRow>(
  'scratchpad_retimes_claim',
  `WITH claimed AS (
     UPDATE scratchpad_retimes r SET due_at = now() + interval '30 seconds', attempts = r.attempts + 1
     WHERE r.scratchpad_id = ANY (ARRAY(
       SELECT d.scratchpad_id FROM scratchpad_retimes d WHERE d.due_at <= now() ORDER BY d.due_at LIMIT $1 FOR UPDATE SKIP LOCKED))
     RETURNING r.scratchpad_id, r.version, r.told_at IS NOT NULL AS is_last
   )
   SELECT c.*, s.owner_id, s.thread_id, s.ttl_seconds, ${TTL_VERSION('s')} AS ttl_version FROM claimed c LEFT JOIN scratchpads s ON s.id = c.scratchpad_id`,
);
const TOLD = statement(
  'scratchpad_retimes_told',
  `UPDATE scratchpad_retimes r SET told_at = now(), due_at = now() + interval '15 seconds', attempts = 0
   FROM unnest($1::text[], $2::text[]) AS u(scratchpad_id, version)
   WHERE r.scratchpad_id = u.scratchpad_id AND r.version = u.version`,
);
const OVER = statement(
  'scratchpad_retimes_over',
  `DELETE FROM scratchpad_retimes r USING unnest($1::text[], $2::text[]) AS u(scratchpad_id, version)
   WHERE r.scratchpad_id = u.scratchpad_id AND r.version = u.version`,
);
const LATER = statement(
  'scratchpad_retimes_later',
  `UPDATE scratchpad_retimes r SET due_at = now() + least(2, 0.1 * 2 ^ least(r.attempts, 10)) * interval '1 second'
   FROM unnest($1::text[], $2::text[]) AS u(scratchpad_id, version)
   WHERE r.scratchpad_id = u.scratchpad_id AND r.version = u.version`,
);

const keysOf = (rows: readonly RetimeRow[]): [string[], string[]] => [
  rows.map((row) => row.scratchpad_id),
  rows.map((row) => row.version),
];

/**
 * Tells Redis when pads whose `ttlSeconds` was set expire: at once, and once more when no write that was authorised
 * before the change can land any more: where Redis lost what it was told, such a write set the time it knew.
 */
export const retimeOutbox = (plane: Pick<Plane, 'retime'>): Outbox<RetimeRow> => ({
  name: 'retime',
  claim: CLAIM,
  perform: async ({ owner_id, thread_id, scratchpad_id, ttl_seconds, ttl_version }) => {
    if (owner_id === null || thread_id === null || ttl_seconds === null || ttl_version === null) return;
    const pad = { ownerId: owner_id, threadId: thread_id, scratchpadId: scratchpad_id };
    await plane.retime({ ...pad, ttlSeconds: ttl_seconds, ttlVersion: ttl_version });
  },
  async done(database, rows) {
    const [last, first] = [rows.filter((row) => row.is_last), rows.filter((row) => !row.is_last)];
    if (first.length > 0) await database.query(TOLD, keysOf(first));
    if (last.length > 0) await database.query(OVER, keysOf(last));
  },
  failed: async (database, rows) => void (await database.query(LATER, keysOf(rows))),
});
