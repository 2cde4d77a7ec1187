import { type Database, statement } from '../storage/database.ts';
import { PAD_COLUMNS, type ScratchpadRow } from './rows.ts';

export const CREATE = statement<ScratchpadRow>(
  'create_scratchpad',
  `SELECT ${PAD_COLUMNS} FROM create_scratchpad($1, $2, $3, $4, $5::jsonb, $6, $7, $8, $9) s`,
);

/** Redis is told of a new `ttlSeconds` until it knows. `$4` is another each time. */
const RETIMED = `, retimed AS (
   INSERT INTO scratchpad_retimes (scratchpad_id, version, due_at)
   SELECT s.id, $4, now() + interval '250 milliseconds' FROM s WHERE $7::int IS NOT NULL
   ON CONFLICT (scratchpad_id) DO UPDATE SET version = excluded.version, due_at = excluded.due_at, told_at = NULL, attempts = 0
 )`;

/** The act and its row in the audit log are one. `$3`: the member as whom the owner acts, to whom the pad must be known. */
const ADMINISTERED = (
  act: string,
  also = '',
): string => `s.owner_id = $1 AND s.id = $2 AND ($3::text IS NULL OR EXISTS (
     SELECT 1 FROM thread_members m
     WHERE m.owner_id = s.owner_id AND m.thread_id = s.thread_id AND m.participant_id = $3))
   RETURNING s.*
 ), audited AS (
   INSERT INTO audit_log (id, owner_id, act, credential_id, actor_id, subject_id, details)
   SELECT $4, s.owner_id, '${act}', $5, $3, s.id, jsonb_build_object('threadId', s.thread_id) FROM s
 )${also}
 SELECT ${PAD_COLUMNS} FROM s`;

export const UPDATE = statement<ScratchpadRow>(
  'scratchpad_update',
  `WITH s AS (
   UPDATE scratchpads s SET meta_data = coalesce($6::jsonb, s.meta_data), ttl_seconds = coalesce($7::int, s.ttl_seconds)
   WHERE ${ADMINISTERED('scratchpad.updated', RETIMED)}`,
);
export const DELETE = statement<ScratchpadRow>(
  'scratchpad_delete',
  `WITH s AS (DELETE FROM scratchpads s WHERE ${ADMINISTERED('scratchpad.deleted')}`,
);

const KNOWN = statement<{ known: boolean }>(
  'scratchpad_thread_known',
  `SELECT EXISTS (SELECT 1 FROM thread_heads h WHERE h.owner_id = $1 AND h.thread_id = $2)
     AND ($3::text IS NULL OR EXISTS (
       SELECT 1 FROM thread_members m WHERE m.owner_id = $1 AND m.thread_id = $2 AND m.participant_id = $3)) AS known`,
);

/** Whether the thread exists, and the viewer, if one is given, is or was a member. */
export const isKnown = async (
  database: Database,
  ownerId: string,
  threadId: string,
  viewerId: string | null,
): Promise<boolean> => (await database.query(KNOWN, [ownerId, threadId, viewerId]))[0]?.known === true;
