import type { Member } from '../scripts/replay/members.ts';
import { timelineCursor } from '../src/shared/cursors.ts';
import type { Bench } from './support/bench.ts';
import { type Askable, exerciseAll } from './support/exercise.ts';
import { exerciseAgents } from './support/exerciseAgents.ts';
import { blocksOf, type ExplainedStatement, faultsOf, readPlans, shapeOf } from './support/plans.ts';
import { type Product, startProduct } from './support/product.ts';
import { seedThread } from './support/seed.ts';
import { type Busy, seedBusy } from './support/seedAgents.ts';
import { seedOthers } from './support/seedOthers.ts';
import { seedPads } from './support/seedPads.ts';
import { type Stores, startStores } from './support/stores.ts';
import { createTenant, openRoom, type Room, type Tenant } from './support/world.ts';

/** Every statement of every session is written down with its plan, also those inside functions. */
const SETTINGS = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_format': 'json',
  log_destination: 'stderr',
};

/** What a table must hold to count as big. */
const BIG_ROWS = 5_000;

/**
 * The plans of everything that the product asks of a database with a million events of several tenants. Flags whatever
 * reads a big table from end to end, or more rows than it could need.
 */
export const explain: Bench = async ({ smoke }) => {
  const scale = smoke ? 0.02 : 1;
  await using stores = await startStores({ durable: false, settings: SETTINGS });
  const { tenant, room, reader, working, busy } = await seedTenants(stores, scale);
  await stores.client.query('VACUUM ANALYZE');
  const bigTables = await tablesAbove(stores, BIG_ROWS);
  const record = await readRecord(stores, tenant, room);
  await stores.client.query(`ALTER SYSTEM SET "auto_explain.log_min_duration" = '0'`);
  await stores.client.query('SELECT pg_reload_conf()');

  await using product = await startProduct(stores);
  await exerciseAll(askableOf(product, tenant, room, reader, record));
  await exerciseAgents({ api: product.api, port: product.port, apiKey: working.apiKey, busy });
  return printPlans(await groupsOf(readPlans(stores.logLines()), bigTables));
};

const seedTenants = async (
  stores: Stores,
  scale: number,
): Promise<{
  readonly tenant: Tenant;
  readonly room: Room;
  readonly reader: Member;
  readonly working: Tenant;
  readonly busy: Busy;
}> => {
  await using product = await startProduct(stores);
  const seed = async (tenant: Tenant, name: string, size: number, events: number): Promise<Room> => {
    const room = await openRoom(product, tenant, name, size);
    const ids = room.members.map(({ id }) => id);
    const step = Math.floor(events / 100);
    await seedThread(stores.client, {
      ownerId: tenant.userId,
      threadId: room.threadId,
      speakerIds: ids.slice(0, -1),
      comings:
        step < 10
          ? []
          : [
              {
                participantId: ids.at(-1) ?? '',
                at: Array.from({ length: 198 }, (_, at) => (step / 2) * (at + 2)),
              },
            ],
      events,
    });
    return room;
  };
  const tenant = await createTenant(product, 'Large');
  const room = await seed(tenant, 'large', 8, 500_000 * scale);
  for (let index = 0; index < 10; index++) await seed(tenant, `middle${index}`, 4, 20_000 * scale);
  const other = await createTenant(product, 'Other');
  await seed(other, 'other', 8, 200_000 * scale);
  const many = await createTenant(product, 'Many');
  for (let index = 0; index < 200 * scale; index++) await seed(many, `small${index}`, 3, 500);
  const padded = await createTenant(product, 'Padded');
  const [reader] = (await openRoom(product, padded, 'padded', 2)).members;
  if (reader === undefined) throw new Error('Nobody is there.');
  await seedPads(stores.client, {
    ownerId: padded.userId,
    readerId: reader.id,
    pads: 5_000 * scale,
    members: 20,
  });
  await seedOthers(stores.client, 300_000 * scale);
  const working = await createTenant(product, 'Working');
  return { tenant, room, reader, working, busy: await seedBusy(product, stores.client, working) };
};

const tablesAbove = async ({ client }: Stores, rows: number): Promise<ReadonlySet<string>> => {
  const answer = await client.query<{ name: string; rows: string }>(
    `SELECT c.relname AS name, c.reltuples::bigint AS rows FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname = 'public' AND c.reltuples > $1 ORDER BY c.reltuples DESC`,
    [rows],
  );
  console.log(`Big tables: ${answer.rows.map((row) => `${row.name} ${row.rows}`).join(', ')}`);
  return new Set(answer.rows.map(({ name }) => name));
};

type Recorded = ReadonlyMap<number, { readonly id: string; readonly sender_id: string | null }>;

const readRecord = async ({ client }: Stores, { userId }: Tenant, { threadId }: Room): Promise<Recorded> => {
  const { rows } = await client.query<{ seq: number; id: string; sender_id: string | null }>(
    'SELECT seq, id, sender_id FROM events WHERE owner_id = $1 AND thread_id = $2',
    [userId, threadId],
  );
  return new Map(rows.map((row) => [row.seq, row]));
};

const askableOf = (
  { api, url, port }: Product,
  { apiKey }: Tenant,
  { threadId, members }: Room,
  reader: Member,
  at: Recorded,
): Askable => {
  return {
    api,
    url,
    port,
    apiKey,
    threadId,
    members,
    reader,
    length: at.size,
    cursorAt: (seq) => timelineCursor(threadId, seq, at.get(seq)?.id ?? ''),
    messageBy: (participantId, from) => {
      for (let seq = from; seq > 0; seq--)
        if (at.get(seq)?.sender_id === participantId) return at.get(seq)?.id ?? '';
      throw new Error('It has sent nothing.');
    },
  };
};

/**
 * Statements whose rows grow with what a caller passes over, and only with that, or not beyond a bound:
 * - Each retraction is counted once as a read position moves beyond it, or as its reader comes back. So over a viewer's life
 *   the cost of each is constant.
 * - An inbox that is opened finds which of its agent's threads moved since it was told of them, once; of these it reads a
 *   thousand at a time.
 * - A memory is searched in stretches, the newest first, until there is enough: of the first 4,096 entries or so, then of as
 *   many as hold what is still wanted. One that may hold far more is looked at before, up to 8,192 of it.
 */
const AMORTISED = [
  'FROM visibility_windows w CROSS JOIN LATERAL ( SELECT count(*) AS count FROM retracted_messages',
  'FROM tp_moved_threads(p_owner, p_participant, p_run, p_thread, p_since, v_end, p_mentions_only) c',
  'SELECT i.thread_id, i.observed_seq, i.messages_seq, t.seq, h.last_seq, h.activity FROM inbox_threads i JOIN thread_heads',
  'SELECT f.number, CASE WHEN p_rank IS NULL THEN 0',
  'WHERE m.words @@ v_query LIMIT c_many',
];

interface Group {
  readonly worst: ExplainedStatement;
  readonly times: number;
  readonly faults: ReadonlySet<string>;
}

/** By their text: there are many plans of each, and one is kept. */
const groupsOf = async (
  plans: AsyncIterable<ExplainedStatement>,
  bigTables: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Group>> => {
  const groups = new Map<string, Group>();
  for await (const statement of plans) {
    const text = statement.text.replaceAll(/\s+/g, ' ').trim();
    if (text.includes('auto_explain')) continue;
    const known = groups.get(text);
    const faults = new Set([...(known?.faults ?? []), ...faultsOf(statement, bigTables)]);
    const worst =
      known === undefined || blocksOf(statement.plan) > blocksOf(known.worst.plan) ? statement : known.worst;
    groups.set(text, { worst, times: (known?.times ?? 0) + 1, faults });
  }
  return groups;
};

const printPlans = (groups: ReadonlyMap<string, Group>): boolean => {
  const sorted = [...groups].sort(([, a], [, b]) => blocksOf(b.worst.plan) - blocksOf(a.worst.plan));
  for (const [text, { worst, times, faults }] of sorted) {
    console.log(`\n${faults.size > 0 ? `FLAGGED ${[...faults].join('; ')}\n` : ''}${text.slice(0, 240)}`);
    console.log(`${times} times, at worst ${worst.milliseconds} ms, ${blocksOf(worst.plan)} blocks`);
    console.log(shapeOf(worst.plan));
  }
  const flagged = sorted.filter(
    ([text, { faults }]) => faults.size > 0 && !AMORTISED.some((known) => text.includes(known)),
  );
  console.log(`\n${groups.size} statements, ${flagged.length} flagged.`);
  for (const [text, { faults }] of flagged) console.log(`  ${[...faults].join('; ')}: ${text.slice(0, 140)}`);
  return flagged.length === 0;
};
