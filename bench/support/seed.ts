import type pg from 'pg';

export interface Coming {
  readonly participantId: string;
  /** Positions at which it is removed, re-added, removed … in turn; ascending. */
  readonly at: readonly number[];
}

export interface SeedOptions {
  readonly ownerId: string;
  readonly threadId: string;
  /** Members who are always there, and write in turn. */
  readonly speakerIds: readonly string[];
  readonly comings: readonly Coming[];
  /** The thread's length afterwards. It was opened and nothing more. */
  readonly events: number;
}

/** Every so many positions a message is taken back. */
export const RETRACTION_EVERY = 97;

/**
 * Writes a long thread past the triggers, in bulk, and leaves the rows that the product's own functions would have:
 * events with their running numbers, bodies, retractions, windows, the head and what members have counted.
 */
export const seedThread = async (client: pg.Client, options: SeedOptions): Promise<void> => {
  const { ownerId, threadId, speakerIds, comings, events } = options;
  const changes = comings.flatMap(({ participantId, at }) =>
    at.map((seq, index) => ({ seq, participantId, to: index % 2 === 0 ? 'REMOVED' : 'ACTIVE' })),
  );
  const values = [ownerId, threadId];
  await client.query('BEGIN');
  try {
    await client.query('SET LOCAL session_replication_role = replica');
    await client.query(
      `CREATE TEMP TABLE changes (seq int PRIMARY KEY, subject text, state text) ON COMMIT DROP`,
    );
    await client.query('INSERT INTO changes SELECT * FROM unnest($1::int[], $2::text[], $3::text[])', [
      changes.map(({ seq }) => seq),
      changes.map(({ participantId }) => participantId),
      changes.map(({ to }) => to),
    ]);
    await client.query(EVENTS, [...values, speakerIds, events, RETRACTION_EVERY]);
    await client.query(BODIES, values);
    await client.query(RETRACTED, values);
    await client.query(HEAD, values);
    await client.query(WINDOWS, values);
    await client.query(MEMBERS, values);
    await client.query(UNREAD, values);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
};

const EVENTS = `
INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, sender_id, sender_no, agent_hops, actor_id,
                    subject_id, to_state, target_seq, mention_ids, source_ids, hidden_from)
SELECT $1, $2, p.seq, 'event_0' || lpad(to_hex(p.seq), 9, '0') || left(md5($2 || p.seq), 16),
  p.type::timeline_event_types,
  (SELECT at FROM events WHERE owner_id = $1 AND thread_id = $2 AND seq = 1) + p.seq * interval '1 microsecond',
  count(*) FILTER (WHERE p.type = 'MESSAGE') OVER (ORDER BY p.seq),
  CASE WHEN p.type = 'MESSAGE' THEN p.speaker END,
  CASE WHEN p.type = 'MESSAGE' THEN row_number() OVER (PARTITION BY p.type, p.speaker ORDER BY p.seq) END,
  CASE WHEN p.type = 'MESSAGE' THEN 0 END,
  CASE WHEN p.type = 'RETRACTION' THEN p.previous_speaker END,
  p.subject, p.state::participant_states,
  CASE WHEN p.type = 'RETRACTION' THEN p.seq - 1 END,
  '{}', '{}', '{}'
FROM (
  SELECT n AS seq, c.subject, c.state,
    ($3::text[])[1 + n % cardinality($3::text[])] AS speaker,
    ($3::text[])[1 + (n - 1) % cardinality($3::text[])] AS previous_speaker,
    CASE WHEN c.seq IS NOT NULL THEN 'PARTICIPANT_STATE_CHANGED'
         WHEN n % $5::int = 50 AND NOT EXISTS (SELECT 1 FROM changes b WHERE b.seq = n - 1) THEN 'RETRACTION'
         ELSE 'MESSAGE' END AS type
  FROM generate_series(2, $4::int) n LEFT JOIN changes c ON c.seq = n
) p`;

const BODIES = `
INSERT INTO message_bodies (owner_id, thread_id, seq, content)
SELECT owner_id, thread_id, seq, 'Message ' || seq || repeat(' and what else there is to say', 9)
FROM events WHERE owner_id = $1 AND thread_id = $2 AND type = 'MESSAGE'`;

const RETRACTED = `
INSERT INTO retracted_messages (owner_id, thread_id, message_seq, retraction_seq, sender_id)
SELECT owner_id, thread_id, target_seq, seq, actor_id
FROM events WHERE owner_id = $1 AND thread_id = $2 AND type = 'RETRACTION'`;

const HEAD = `
UPDATE thread_heads h SET last_seq = e.seq, last_at = e.at, message_count = e.message_no,
  activity = (extract(epoch FROM e.at) * 1000000)::bigint
FROM (SELECT * FROM events WHERE owner_id = $1 AND thread_id = $2 ORDER BY seq DESC LIMIT 1) e
WHERE h.owner_id = $1 AND h.thread_id = $2`;

const WINDOWS = `
WITH bounds AS (
  SELECT subject, 0 AS after_seq, min(seq) AS end_seq FROM changes GROUP BY subject
  UNION ALL
  SELECT subject, seq, next FROM (
    SELECT subject, seq, state, lead(seq) OVER (PARTITION BY subject ORDER BY seq) AS next FROM changes) c
  WHERE state = 'ACTIVE'
), numbered AS (
  SELECT b.*, coalesce(a.message_no, 0) AS after_no, z.message_no AS end_no
  FROM bounds b
  LEFT JOIN events a ON a.owner_id = $1 AND a.thread_id = $2 AND a.seq = b.after_seq
  LEFT JOIN events z ON z.owner_id = $1 AND z.thread_id = $2 AND z.seq = b.end_seq
)
INSERT INTO visibility_windows (owner_id, thread_id, participant_id, after_seq, end_seq, after_no, visible_before)
SELECT $1, $2, subject, after_seq, end_seq, after_no,
  coalesce(sum(end_no - after_no) OVER (PARTITION BY subject ORDER BY after_seq
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
FROM numbered
ON CONFLICT (owner_id, thread_id, participant_id, after_seq) DO UPDATE SET end_seq = EXCLUDED.end_seq`;

const MEMBERS = `
UPDATE thread_members m SET
  sent_count = (SELECT count(*) FROM events e WHERE e.owner_id = $1 AND e.thread_id = $2 AND e.sender_id = m.participant_id),
  state = coalesce(c.state, 'ACTIVE')::participant_states,
  since_seq = coalesce(c.seq, 1),
  since_at = coalesce(e.at, m.since_at),
  frozen_activity = CASE WHEN c.state = 'REMOVED' THEN (extract(epoch FROM e.at) * 1000000)::bigint END,
  closed_visible = coalesce(w.closed, 0),
  open_after_no = coalesce(w.open_after_no, 0)
FROM thread_members o
LEFT JOIN LATERAL (SELECT * FROM changes c WHERE c.subject = o.participant_id ORDER BY c.seq DESC LIMIT 1) c ON true
LEFT JOIN events e ON e.owner_id = $1 AND e.thread_id = $2 AND e.seq = c.seq
LEFT JOIN LATERAL (
  SELECT sum(z.message_no - v.after_no) FILTER (WHERE v.end_seq IS NOT NULL) AS closed,
         max(v.after_no) AS open_after_no
  FROM visibility_windows v LEFT JOIN events z ON z.owner_id = $1 AND z.thread_id = $2 AND z.seq = v.end_seq
  WHERE v.owner_id = $1 AND v.thread_id = $2 AND v.participant_id = o.participant_id) w ON true
WHERE m.owner_id = $1 AND m.thread_id = $2 AND o.owner_id = $1 AND o.thread_id = $2
  AND o.participant_id = m.participant_id`;

const UNREAD = `
UPDATE thread_members m SET unread_retracted = tp_count_retracted($1, $2, m.participant_id, 1, h.last_seq, 0,
  CASE WHEN m.state = 'REMOVED' THEN m.since_seq END)
FROM thread_heads h
WHERE m.owner_id = $1 AND m.thread_id = $2 AND h.owner_id = $1 AND h.thread_id = $2`;
