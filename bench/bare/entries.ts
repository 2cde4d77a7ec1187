import { Redis } from 'ioredis';
import pg from 'pg';
import { padChannel, padKeys } from '../../src/scratchpads/keys.ts';
import { ttlOf } from '../../src/scratchpads/pad.ts';
import { SCRIPTS } from '../../src/scratchpads/scripts.ts';
import { newEpoch } from '../../src/shared/ids.ts';
import { serve } from './serve.ts';

/** What an append to a scratchpad is compared with: a bare handler around the same SELECT and the same script, and one RPUSH. */
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: 20,
  options: '-c TimeZone=UTC -c DateStyle=ISO',
});
const redis = new Redis(process.env.REDIS_PATH ?? '');

interface Input {
  readonly ownerId: string;
  readonly scratchpadId: string;
  readonly participantId: string;
  readonly content: string;
}

const GRANT = { name: 'scratchpad_grant', text: process.env.GRANT ?? '' };

const append = async ({ ownerId, scratchpadId, participantId, content }: Input): Promise<string> => {
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

const push = async ({ scratchpadId, content }: Input): Promise<string> =>
  String(await redis.rpush(`bench:${scratchpadId}`, content));

serve<Input>({ '/append': append, '/push': push });
