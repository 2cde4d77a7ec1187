import type pg from 'pg';

/**
 * What many other tenants' agents did, past all triggers and in bulk: so many rows of each table of the agents' side, so that
 * plans are those for tables of which one tenant has little. A hundred agents to a tenant, each in one thread.
 */
export const seedOthers = async (client: pg.Client, rows: number): Promise<void> => {
  await client.query('BEGIN');
  try {
    await client.query('SET LOCAL session_replication_role = replica');
    for (const statement of STATEMENTS) await client.query(statement, [rows]);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
};

const OWNER = `'user_other' || n / 100`;
const AGENT = `'part_other' || n`;
const THREAD = `'thread_other' || n`;
const RUN = `'run_0' || lpad(to_hex(n), 9, '0') || left(md5('other' || n), 16)`;
const FROM = 'FROM generate_series(1, $1::int) n';

const STATEMENTS = [
  `INSERT INTO participants (id, owner_id, kind, handle, display_name) SELECT ${AGENT}, ${OWNER}, 'AGENT', ${AGENT}, 'Other' ${FROM}`,
  `INSERT INTO credentials (id, owner_id, kind, participant_id, run_id, prefix, hash, revoked_at)
   SELECT 'cred_other' || n, ${OWNER}, 'RUN_TOKEN', ${AGENT}, ${RUN}, 'seeded', md5('other' || n), now() ${FROM}`,
  `INSERT INTO thread_members (owner_id, thread_id, participant_id, since_at) SELECT ${OWNER}, ${THREAD}, ${AGENT}, now() ${FROM}`,
  `INSERT INTO thread_heads (owner_id, thread_id, last_seq, last_at, activity) SELECT ${OWNER}, ${THREAD}, 1, now(), n ${FROM}`,
  `INSERT INTO runs (id, owner_id, participant_id, root_run_id, conversation_thread_id, access, status, max_tool_calls, started_at, finished_at, expires_at)
   SELECT ${RUN}, ${OWNER}, ${AGENT}, ${RUN}, ${THREAD}, 'WRITE', 'COMPLETED', 100, now(), now(), now() ${FROM}`,
  `INSERT INTO inboxes (owner_id, participant_id, run_id, thread_id, held_until) SELECT ${OWNER}, ${AGENT}, '', NULL, now() ${FROM}`,
  `INSERT INTO inbox_threads (owner_id, thread_id, participant_id, pending_seq, pending_since, delivery_id, leased_until)
   SELECT ${OWNER}, ${THREAD}, ${AGENT}, 1, n, CASE WHEN n % 2 = 0 THEN 'delivery_other' || n END, CASE WHEN n % 2 = 0 THEN now() END ${FROM}`,
  `INSERT INTO inbox_controls (owner_id, participant_id, kind, thread_id, at, told_at)
   SELECT ${OWNER}, ${AGENT}, 'MEMORY_POLICY_CHANGED', ${THREAD}, now(), CASE WHEN n % 2 = 0 THEN now() END ${FROM}`,
  `INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result, thread_id)
   SELECT ${OWNER}, 'executeTool', ${THREAD}, ${AGENT}, 'call', 'hash', '{}', ${THREAD} ${FROM}`,
  `INSERT INTO memory_entries (owner_id, participant_id, number, id, "timestamp", scope, scope_no, payload, bytes, source_ids, words)
   SELECT ${OWNER}, ${AGENT}, 1, 'mem_other' || n, now(), '', 1, '{"text": "review"}', 20, '{}',
     (tp_place_marks(tp_memory_list(${AGENT}, ''), 1) || ' ' || tp_owned(${AGENT}) || 'review')::tsvector ${FROM}`,
];
