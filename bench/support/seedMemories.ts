import type pg from 'pg';

interface Memories {
  readonly userId: string;
  readonly agentId: string;
  readonly threadId: string;
  readonly entries: number;
}

/**
 * So many entries of an agent that has none, in its thread: as the product makes them, but in bulk. What they are found by
 * is put together of what their texts have in common and what is each one's own, and indexed in the end.
 */
export const seedMemories = async (
  client: pg.Client,
  { userId, agentId, threadId, entries }: Memories,
): Promise<void> => {
  const { rows } = await client.query<{ definition: string }>(
    `SELECT indexdef AS definition FROM pg_indexes WHERE indexname = 'memory_entries_words_idx'`,
  );
  await client.query('DROP INDEX memory_entries_words_idx');
  const batch = 50_000;
  for (let from = 1; from <= entries; from += batch)
    await client.query(SEED, [
      userId,
      agentId,
      threadId,
      from,
      Math.min(entries, from + batch - 1),
      entries / 20,
    ]);
  await client.query(`SET maintenance_work_mem = '1GB'`);
  await client.query(rows[0]?.definition ?? '');
  await client.query('INSERT INTO memory_heads VALUES ($1, $2, $3, clock_timestamp())', [
    userId,
    agentId,
    entries,
  ]);
  await client.query('INSERT INTO memory_scopes VALUES ($1, $2, $3, $4)', [
    userId,
    agentId,
    threadId,
    entries,
  ]);
};

/** Some words are in every entry, some in one of fifty, some in one of five thousand, some in twenty of all. */
const SEED = `
WITH common AS MATERIALIZED (
  SELECT tp_vector_text($2, 'task The weekly review of was held with and the plan number was agreed upon 周会') AS words
), special AS MATERIALIZED (
  SELECT s.text, tp_vector_text($2, s.text) AS words FROM (VALUES (' 预算'), (' rare3 迁移三号'), (' needle 罕见')) AS s(text)
)
INSERT INTO memory_entries (owner_id, participant_id, number, id, "timestamp", scope, scope_no, payload, bytes, thread_id, thread_only, thread_seq, source_ids, words)
SELECT $1, $2, n.n, 'mem_' || md5($2 || n.n), '2026-01-01'::timestamptz + n.n * interval '1 second', $3, n.n,
  jsonb_build_object('type', 'task', 'ticket', n.ticket, 'text', n.text), 200, $3, true, 1, '{}',
  concat_ws(' ', tp_place_marks(tp_memory_list($2, $3), n.n),
    format('''/=%s'' ''/=%s'' ''/=%s''', left(md5($2 || '/type="task"'), 8), left(md5($2 || '/ticket=' || n.ticket), 8), left(md5($2 || '/text=' || to_json(n.text)), 8)),
    format('%1$stopic%2$s %1$steam%3$s %1$s%4$s', tp_owned($2), n.n % 50, n.n % 211, n.n), common.words, n.words)::tsvector
FROM common, (
  SELECT i AS n, CASE WHEN i % 1000 = 500 THEN 4711 ELSE i END AS ticket, s.words,
    format('The weekly review of topic%s was held with team%s, and the plan number %s was agreed upon. 周会%s', i % 50, i % 211, i, s.text) AS text
  FROM generate_series($4::int, $5::int) i LEFT JOIN special s ON s.text = CASE WHEN i % 50 = 7 THEN ' 预算' WHEN i % 5000 = 77 THEN ' rare3 迁移三号' WHEN i % $6::int = 3 THEN ' needle 罕见' END) n`;
