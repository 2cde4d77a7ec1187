import type pg from 'pg';

export interface SeedPadsOptions {
  readonly ownerId: string;
  /** Is in every thread; the others are nobody's. */
  readonly readerId: string;
  readonly pads: number;
  /** Of each thread. */
  readonly members: number;
}

/** Writes threads past the triggers, in bulk, each with members and a scratchpad, and nothing in them. */
export const seedPads = async (client: pg.Client, options: SeedPadsOptions): Promise<void> => {
  const { ownerId, readerId, pads, members } = options;
  await client.query('BEGIN');
  try {
    await client.query('SET LOCAL session_replication_role = replica');
    await client.query(THREADS, [ownerId, pads]);
    await client.query(HEADS, [ownerId, pads]);
    await client.query(MEMBERS, [ownerId, pads, readerId, members]);
    await client.query(PADS, [ownerId, pads]);
    await client.query(VIEWERS, [ownerId]);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
};

const idOf = (kind: string): string => `'${kind}_' || left(md5($1 || n), 26)`;

const THREADS = `INSERT INTO threads (id, owner_id) SELECT ${idOf('thread')}, $1 FROM generate_series(1, $2::int) n`;
const HEADS = `INSERT INTO thread_heads (owner_id, thread_id, last_seq, last_at, activity)
  SELECT $1, ${idOf('thread')}, 1, now(), n FROM generate_series(1, $2::int) n`;
const MEMBERS = `INSERT INTO thread_members (owner_id, thread_id, participant_id, since_at)
  SELECT $1, ${idOf('thread')}, CASE m WHEN 1 THEN $3 ELSE 'part_' || left(md5($1 || m), 26) END, now()
  FROM generate_series(1, $2::int) n, generate_series(1, $4::int) m`;
const PADS = `INSERT INTO scratchpads (id, owner_id, thread_id, created_at)
  SELECT ${idOf('sp')}, $1, ${idOf('thread')}, now() - n * interval '1 second' FROM generate_series(1, $2::int) n`;
const VIEWERS = `INSERT INTO scratchpad_viewers (owner_id, participant_id, created_at, scratchpad_id)
  SELECT s.owner_id, m.participant_id, s.created_at, s.id
  FROM scratchpads s JOIN thread_members m ON m.owner_id = s.owner_id AND m.thread_id = s.thread_id
  WHERE s.owner_id = $1 ON CONFLICT DO NOTHING`;
