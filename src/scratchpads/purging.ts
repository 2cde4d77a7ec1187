import { statement } from '../storage/database.ts';
import type { Outbox } from './outbox.ts';
import type { Plane } from './plane.ts';

interface PurgeRow {
  scratchpad_id: string;
  owner_id: string;
  thread_id: string;
  /** Redis was emptied before; this is the last pass. */
  is_last: boolean;
}

const CLAIM = statement<PurgeRow>(
  'scratchpad_purges_claim',
  `UPDATE scratchpad_purges p SET due_at = now() + interval '30 seconds', attempts = p.attempts + 1
   WHERE p.scratchpad_id = ANY (ARRAY(
     SELECT d.scratchpad_id FROM scratchpad_purges d WHERE d.due_at <= now() ORDER BY d.due_at LIMIT $1 FOR UPDATE SKIP LOCKED))
   RETURNING p.scratchpad_id, p.owner_id, p.thread_id, p.emptied_at IS NOT NULL AS is_last`,
);
const EMPTIED = statement(
  'scratchpad_purges_emptied',
  `UPDATE scratchpad_purges SET emptied_at = now(), due_at = now() + interval '1 minute', attempts = 0
   WHERE scratchpad_id = ANY ($1::text[]) AND emptied_at IS NULL`,
);
const OVER = statement(
  'scratchpad_purges_over',
  'DELETE FROM scratchpad_purges WHERE scratchpad_id = ANY ($1::text[]) AND emptied_at IS NOT NULL',
);
const LATER = statement(
  'scratchpad_purges_later',
  `UPDATE scratchpad_purges SET due_at = now() + least(30, 0.25 * 2 ^ least(attempts, 10)) * interval '1 second'
   WHERE scratchpad_id = ANY ($1::text[])`,
);

const idsOf = (rows: readonly PurgeRow[]): string[] => rows.map((row) => row.scratchpad_id);

/**
 * Takes the state of deleted pads from Redis: at once, and once more a minute later for what a command that was already
 * under way may have left. A tombstone, set first, keeps later ones out.
 */
export const purgeOutbox = (plane: Pick<Plane, 'purge'>): Outbox<PurgeRow> => ({
  name: 'purge',
  claim: CLAIM,
  perform: (row) =>
    plane.purge({ ownerId: row.owner_id, threadId: row.thread_id, scratchpadId: row.scratchpad_id }),
  async done(database, rows) {
    const [last, first] = [rows.filter((row) => row.is_last), rows.filter((row) => !row.is_last)];
    if (first.length > 0) await database.query(EMPTIED, [idsOf(first)]);
    if (last.length > 0) await database.query(OVER, [idsOf(last)]);
  },
  failed: async (database, rows) => void (await database.query(LATER, [idsOf(rows)])),
});
