import { Redis } from 'ioredis';
import pg from 'pg';
import { padChannel, padKeys } from '../../src/scratchpads/keys.ts';
import { ttlOf } from '../../src/scratchpads/pad.ts';
import { SCRIPTS } from '../../src/scratchpads/scripts.ts';
import { newEpoch } from '../../src/shared/ids.ts';
import { serve } from './serve.ts';

/** What a tool call that appends is compared with: a bare handler around the same three statements and the same script. */
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: 20,
  options: '-c TimeZone=UTC -c DateStyle=ISO',
});
const redis = new Redis(process.env.REDIS_PATH ?? '');

interface Input {
  readonly ownerId: string;
  readonly threadId: string;
  readonly participantId: string;
  readonly content: string;
}

const BEGIN = { name: 'begin_tool_call', text: process.env.BEGIN ?? '' };
const PADS = { name: 'scratchpads_of_threads', text: process.env.PADS ?? '' };
const GRANT = { name: 'scratchpad_grant', text: process.env.GRANT ?? '' };

const append = async ({ ownerId, threadId, participantId, content }: Input): Promise<string> => {
  await pool.query({ ...BEGIN, values: [ownerId, threadId, participantId, null, null, 'hash', '{}', false] });
  const pads = await pool.query<{ id: string }>({ ...PADS, values: [ownerId, [threadId], participantId] });
  const scratchpadId = pads.rows[0]?.id ?? '';
  const values = [[ownerId], [scratchpadId], [null], [participantId], [null]];
  const { rows } = await pool.query<{ last_seq: number; ttl_version: number }>({ ...GRANT, values });
  const args = [
    newEpoch() + newEpoch(),
    '',
    '',
    rows[0]?.last_seq ?? 0,
    '',
    ttlOf({ ttlSeconds: 0, ttlVersion: rows[0]?.ttl_version ?? 0 }),
    padChannel(scratchpadId),
    Buffer.byteLength(content),
    `"author":${JSON.stringify(participantId)},"run":null,"sources":[]`,
    1,
    0,
    JSON.stringify(content),
  ];
  const keys = padKeys({ ownerId, scratchpadId });
  const reply = await redis.evalsha(SCRIPTS.append.digest, keys.length, ...keys, ...args);
  const [kind] = reply as string[];
  if (kind !== 'DONE') throw new Error(`The script answered ${kind}.`);
  return kind;
};

serve<Input>({ '/append': append });
