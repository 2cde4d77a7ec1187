import pg from 'pg';
import { expect, test } from 'vitest';
import { RETRACTION_EVERY, seedThread } from '../../bench/support/seed.ts';
import { newId } from '../../src/shared/ids.ts';
import { createTestDatabase } from '../support/database.ts';

const EVENTS = 250;
const SPEAKERS = ['part_a', 'part_b', 'part_c'];
const GOERS = [
  { participantId: 'part_y', at: [20, 48, 60, 110, 140] },
  { participantId: 'part_z', at: [30, 99, 200, 201] },
];

const openThread = async (client: pg.Client, ownerId: string): Promise<string> => {
  const members = [...SPEAKERS, ...GOERS.map(({ participantId }) => participantId)];
  const ids = members.map((id) => `${id}_${ownerId}`);
  await client.query(`INSERT INTO users (id, name) VALUES ($1, 'Tenant')`, [ownerId]);
  for (const id of ids)
    await client.query(
      `INSERT INTO participants (id, owner_id, kind, handle, display_name) VALUES ($1, $2, 'HUMAN', $1, $1)`,
      [id, ownerId],
    );
  const threadId = newId('Thread');
  await client.query('SELECT open_thread($1, $2, $3, $4, NULL, NULL, $5, NULL, NULL)', [
    ownerId,
    ids,
    threadId,
    newId('Event'),
    '',
  ]);
  return threadId;
};

/** The same history by the product's own functions, one event after the other. */
const append = async (client: pg.Client, ownerId: string, threadId: string): Promise<void> => {
  const own = (id: string): string => `${id}_${ownerId}`;
  const changes = new Map(
    GOERS.flatMap(({ participantId, at }) =>
      at.map((seq, index) => [seq, { participantId, to: index % 2 === 0 ? 'REMOVED' : 'ACTIVE' }] as const),
    ),
  );
  const speakerAt = (seq: number): string => own(SPEAKERS[seq % SPEAKERS.length] ?? '');
  let last = '';
  for (let seq = 2; seq <= EVENTS; seq++) {
    const id = newId('Event');
    const change = changes.get(seq);
    if (change !== undefined)
      await client.query('SELECT change_state($1, $2, NULL, $3, $4, NULL, $5, $6, NULL)', [
        ownerId,
        threadId,
        own(change.participantId),
        change.to,
        id,
        newId('Audit'),
      ]);
    else if (seq % RETRACTION_EVERY === 50 && !changes.has(seq - 1))
      await client.query('SELECT retract_message($1, $2, $3, $4, NULL)', [
        ownerId,
        last,
        speakerAt(seq - 1),
        id,
      ]);
    else
      await client.query(
        `SELECT append_message($1, $2, $3, $4, 'x', NULL, NULL, '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, 0)`,
        [ownerId, threadId, speakerAt(seq), id],
      );
    last = id;
  }
};

/** Everything but what differs between any two threads: ids, times, texts. */
const rowsOf = async (client: pg.Client, ownerId: string): Promise<Record<string, unknown[]>> => {
  const tables = {
    events: `seq, type, message_no, sender_id, sender_no, agent_hops, subject_id, to_state, actor_id, target_seq,
             mention_ids, source_ids, hidden_from, seq = 1 OR at > (SELECT at FROM events p WHERE p.owner_id = t.owner_id
             AND p.thread_id = t.thread_id AND p.seq = t.seq - 1) AS later`,
    message_bodies: 'seq',
    retracted_messages: 'message_seq, retraction_seq, sender_id',
    visibility_windows: 'participant_id, after_seq, end_seq, after_no, visible_before',
    thread_heads: 'last_seq, message_count, tail_hidden, agent_hops, activity IS NOT NULL AS active',
    thread_members: `participant_id, state, since_seq, frozen_activity IS NULL AS moving, closed_visible, open_after_no,
                     sent_count, ack_seq, ack_visible, ack_sent, unread_retracted`,
  };
  const result: Record<string, unknown[]> = {};
  for (const [table, columns] of Object.entries(tables)) {
    const { rows } = await client.query<Record<string, unknown>>(
      `SELECT ${columns} FROM ${table} t WHERE owner_id = $1`,
      [ownerId],
    );
    result[table] = rows.map((row) => JSON.stringify(row).replaceAll(`_${ownerId}`, '')).sort();
  }
  return result;
};

test('a thread that is seeded in bulk has the rows that the product itself would have written', async () => {
  await using database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const written = await openThread(client, 'user_written');
    await append(client, 'user_written', written);
    const seeded = await openThread(client, 'user_seeded');
    await seedThread(client, {
      ownerId: 'user_seeded',
      threadId: seeded,
      speakerIds: SPEAKERS.map((id) => `${id}_user_seeded`),
      comings: GOERS.map(({ participantId, at }) => ({ participantId: `${participantId}_user_seeded`, at })),
      events: EVENTS,
    });
    const rows = await rowsOf(client, 'user_seeded');
    expect(rows.events).toHaveLength(EVENTS);
    expect(rows.retracted_messages).toHaveLength(3);
    expect(rows).toEqual(await rowsOf(client, 'user_written'));
  } finally {
    await client.end();
  }
});
