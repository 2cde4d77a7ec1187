import pg from 'pg';
import { newId } from '../../src/shared/ids.ts';
import { serve } from './serve.ts';

/** What the product's append is compared with: a bare handler around the very same SQL, and around one INSERT. */
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: 20,
  options: '-c TimeZone=UTC -c DateStyle=ISO',
});

const APPEND = {
  name: 'append_message',
  text: 'SELECT * FROM append_message($1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8::text[], $9::text[], $10, $11, $12, $13, $14, $15, $16)',
};
const INSERT = {
  name: 'insert',
  text: 'INSERT INTO bench_messages (id, thread_id, sender_id, content) VALUES ($1, $2, $3, $4) RETURNING id',
};

interface Input {
  readonly ownerId: string;
  readonly threadId: string;
  readonly senderId: string;
  readonly content: string;
}

const append = async ({ ownerId, threadId, senderId, content }: Input): Promise<string> => {
  const none = null;
  const values = [
    ownerId,
    threadId,
    senderId,
    newId('Event'),
    content,
    none,
    none,
    [],
    [],
    none,
    none,
    none,
    none,
    none,
    none,
    0,
  ];
  const { rows } = await pool.query<{ id: string }>({ ...APPEND, values });
  return rows[0]?.id ?? '';
};

const insert = async ({ threadId, senderId, content }: Input): Promise<string> => {
  const { rows } = await pool.query<{ id: string }>({
    ...INSERT,
    values: [newId('Event'), threadId, senderId, content],
  });
  return rows[0]?.id ?? '';
};

serve<Input>({ '/append': append, '/insert': insert });
