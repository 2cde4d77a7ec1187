import type pg from 'pg';
import type { Tenant } from './world.ts';

/** An agent with so many threads, each with another person who has said so many things that nobody read. */
export const seedBacklog = async (
  client: pg.Client,
  { userId }: Tenant,
  name: string,
  threads: number,
  messages: number,
): Promise<string> => {
  const id = (prefix: string, of: string): string => `'${prefix}_0' || left(md5('${name}' || ${of}), 25)`;
  await client.query(
    `INSERT INTO participants (id, owner_id, kind, handle, display_name)
     SELECT ${id('part', 'n')}, $1, (CASE WHEN n = 0 THEN 'AGENT' ELSE 'HUMAN' END)::participant_kinds, '${name}-' || n, 'Somebody'
     FROM generate_series(0, $2::int) n`,
    [userId, threads],
  );
  await client.query(
    `SELECT count(*) FROM generate_series(1, $2::int) n, LATERAL open_thread($1,
       ARRAY[${id('part', '0')}, ${id('part', 'n')}], ${id('thread', 'n')}, ${id('event', "n || ' 0'")}, NULL, NULL, '', NULL, NULL)`,
    [userId, threads],
  );
  await say(client, userId, name, threads, messages, 0);
  const { rows } = await client.query<{ id: string }>(`SELECT ${id('part', '0')} AS id`);
  return rows[0]?.id ?? '';
};

/** One message in each of so many threads, so many times over. */
export const say = async (
  client: pg.Client,
  userId: string,
  name: string,
  threads: number,
  messages: number,
  since: number,
): Promise<void> => {
  const id = (prefix: string, of: string): string => `'${prefix}_0' || left(md5('${name}' || ${of}), 25)`;
  for (let message = since + 1; message <= since + messages; message += 1)
    await client.query(
      `SELECT count(*) FROM generate_series(1, $2::int) n, LATERAL append_message($1, ${id('thread', 'n')}, ${id('part', 'n')},
         ${id('event', "n || ' ' || $3::text")}, 'What do you make of this?', NULL, NULL, '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, 0)`,
      [userId, threads, String(message)],
    );
};
