import type pg from 'pg';
import type { Product } from './product.ts';
import { seedBacklog } from './seedBacklog.ts';
import { seedMemories } from './seedMemories.ts';
import type { Tenant } from './world.ts';

/** An agent that has worked for long: what it did, what it remembers, what waits for it. */
export interface Busy {
  readonly agentId: string;
  readonly token: string;
  /** In one of its threads, with whoever delegated its runs on the thread's scratchpad. */
  readonly threadId: string;
  readonly scratchpadId: string;
  readonly delegatorId: string;
  readonly delegatorToken: string;
}

/** Above what counts as a big table. */
const ROWS = 6_000;
const OPEN_RUNS = 2_500;

export const seedBusy = async (product: Product, client: pg.Client, tenant: Tenant): Promise<Busy> => {
  const { api } = product;
  const agentId = await seedBacklog(client, tenant, 'busy', ROWS, 1);
  const { rows } = await client.query<{ thread_id: string; participant_id: string }>(
    `SELECT i.thread_id, m.participant_id FROM inbox_threads i
     JOIN thread_members m ON m.owner_id = i.owner_id AND m.thread_id = i.thread_id AND m.participant_id <> i.participant_id
     WHERE i.owner_id = $1 AND i.participant_id = $2 ORDER BY i.pending_since LIMIT 1`,
    [tenant.userId, agentId],
  );
  const [{ thread_id: threadId, participant_id: delegatorId } = { thread_id: '', participant_id: '' }] = rows;
  const { createScratchpad } = await api.ask<{ createScratchpad: { scratchpad: { id: string } } }>(
    tenant.apiKey,
    'mutation ($threadId: ID!) { createScratchpad(input: { threadId: $threadId }) { scratchpad { id } } }',
    { threadId },
  );
  const scratchpadId = createScratchpad.scratchpad.id;
  const tokenOf = async (participantId: string): Promise<string> => {
    const { createParticipantToken } = await api.ask<{ createParticipantToken: { token: string } }>(
      tenant.apiKey,
      'mutation ($participantId: ID!) { createParticipantToken(input: { participantId: $participantId }) { token } }',
      { participantId },
    );
    return createParticipantToken.token;
  };
  await seedMemories(client, { userId: tenant.userId, agentId, threadId, entries: ROWS });
  await client.query(RUNS, [tenant.userId, agentId, delegatorId, threadId, scratchpadId, ROWS, OPEN_RUNS]);
  await client.query(TOKENS, [tenant.userId]);
  await client.query(CONTROLS, [tenant.userId, agentId, threadId, ROWS]);
  await client.query(INBOXES, [tenant.userId, agentId, threadId]);
  await client.query(CALLS, [tenant.userId, agentId, threadId, ROWS]);
  return {
    agentId,
    token: await tokenOf(agentId),
    threadId,
    scratchpadId,
    delegatorId,
    delegatorToken: await tokenOf(delegatorId),
  };
};

/** The last of them are open and have a deadline that is far off; of those before, one in a thousand failed. */
const RUNS = `
INSERT INTO runs (id, owner_id, participant_id, delegator_id, root_run_id, conversation_thread_id, scratchpad_id, access,
                  pad_viewer_id, status, max_tool_calls, started_at, finished_at, expires_at)
SELECT n.id, $1, $2, CASE WHEN n.n % 3 > 0 THEN $3 END, n.id, CASE WHEN NOT n.open THEN $4 END, $5, 'WRITE', $2,
  (CASE WHEN n.open THEN 'QUEUED' WHEN n.n % 1000 = 1 THEN 'FAILED' ELSE 'COMPLETED' END)::run_statuses, 100,
  CASE WHEN NOT n.open THEN now() END, CASE WHEN NOT n.open THEN now() END, now() + interval '1 year'
FROM (SELECT i AS n, 'run_0' || lpad(to_hex(i), 9, '0') || left(md5($1 || i), 16) AS id, i > $6::int - $7::int AS open
  FROM generate_series(1, $6::int) i) n`;

const TOKENS = `
INSERT INTO credentials (id, owner_id, kind, participant_id, run_id, prefix, hash, expires_at, revoked_at)
SELECT 'cred_0' || left(md5(r.id), 25), r.owner_id, 'RUN_TOKEN', r.participant_id, r.id, 'seeded', md5(r.id), r.expires_at, r.finished_at
FROM runs r WHERE r.owner_id = $1`;

/** Half of them were told just now, the others not yet; a few long ago. */
const CONTROLS = `
INSERT INTO inbox_controls (owner_id, participant_id, kind, thread_id, at, told_at)
SELECT $1, $2, 'MEMORY_POLICY_CHANGED', $3, now(),
  CASE WHEN i <= 10 THEN now() - interval '2 days' WHEN i % 2 = 0 THEN now() END
FROM generate_series(1, $4::int) i`;

/** Of runs that were open until a moment ago. */
const INBOXES = `
INSERT INTO inboxes (owner_id, participant_id, run_id, thread_id, held_until)
SELECT r.owner_id, r.participant_id, r.id, $3, now() - interval '1 minute' FROM runs r WHERE r.owner_id = $1 AND r.participant_id = $2`;

const CALLS = `
INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result, thread_id)
SELECT $1, 'executeTool', $3, $2, 'call ' || i, 'hash', '{"output": "Done.", "isError": false}', $3
FROM generate_series(1, $4::int) i`;
