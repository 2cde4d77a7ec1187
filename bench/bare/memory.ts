import pg from 'pg';
import { newId } from '../../src/shared/ids.ts';
import { serve } from './serve.ts';

/** What the product's storeMemory is compared with: a bare handler around the very same SQL. */
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: 20,
  options: '-c TimeZone=UTC -c DateStyle=ISO',
});

const STORE = {
  name: 'store_memory',
  text: 'SELECT * FROM store_memory($1, $2, $3, $4, $5::jsonb, $6, $7::text[], $8, $9, $10, $11)',
};

interface Input {
  readonly ownerId: string;
  readonly threadId: string;
  readonly agentId: string;
  readonly payload: object;
}

const store = async ({ ownerId, threadId, agentId, payload }: Input): Promise<string> => {
  const text = JSON.stringify(payload);
  const values = [
    ownerId,
    agentId,
    threadId,
    newId('MemoryEntry'),
    text,
    text.length,
    [],
    true,
    null,
    null,
    null,
  ];
  const { rows } = await pool.query<{ id: string }>({ ...STORE, values });
  return rows[0]?.id ?? '';
};

serve<Input>({ '/store': store });
