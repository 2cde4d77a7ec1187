import { once } from 'node:events';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Services } from '../../src/services.ts';
import { newId } from '../../src/shared/ids.ts';
import { createApi } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';
import { createWorld, rowsOf, type World } from '../support/world.ts';

/** Somebody with a console on the database: what the services would never do. */
let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let services: Services;
let console_: pg.Client;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  services = api.services;
  console_ = new pg.Client({ connectionString: db.url });
  await console_.connect();
});
afterAll(async () => {
  await console_.end();
  await api.close();
  await db.drop();
});

const sql = (text: string, values: readonly unknown[] = []) => console_.query(text, [...values]);
const refused = (text: string, values: readonly unknown[] = []) => expect(sql(text, values)).rejects;

describe('the record refuses to be rewritten', () => {
  let world: World;
  let before: Record<string, string[]>;
  beforeAll(async () => {
    world = await createWorld(services, 'record');
    await services.credentials.revoke(world.owner, { credentialId: world.people.lil.credentialId });
  });
  beforeEach(async () => {
    before = await rowsOf(services, null);
  });

  test.for([
    ['events', `SET at = now()`],
    ['events', `SET seq = seq + 100`],
    ['events', `SET reason = 'other'`],
    ['message_bodies', `SET seq = seq + 1`],
    ['retracted_messages', `SET retraction_seq = 1`],
    ['audit_log', `SET act = 'nothing'`],
    ['revocation_log', `SET credential_id = 'x'`],
  ])('UPDATE %s %s', async ([table, set]) => {
    await refused(`UPDATE ${table} ${set}`).toThrow(/append-only/);
    expect(await rowsOf(services, null)).toEqual(before);
  });

  test('a body’s text is emptied only by erasure', async () => {
    await refused(`UPDATE message_bodies SET content = 'something else'`).toThrow(/append-only/);
    expect(await rowsOf(services, null)).toEqual(before);
  });

  test.for([
    'events',
    'message_bodies',
    'retracted_messages',
    'thread_members',
    'visibility_windows',
    'audit_log',
  ])('DELETE FROM %s', async (table) => {
    await refused(`DELETE FROM ${table}`).toThrow(/append-only/);
    await refused(`DELETE FROM ${table} WHERE owner_id = $1`, [world.userId]).toThrow(/append-only/);
    expect(await rowsOf(services, null)).toEqual(before);
  });

  test.for([
    'users',
    'threads',
    'thread_heads',
    'thread_members',
    'visibility_windows',
    'events',
    'message_bodies',
    'retracted_messages',
    'revocation_log',
    'audit_log',
    'participants',
    'credentials',
    'thread_links',
    'idempotency_records',
  ])('TRUNCATE %s', async (table) => {
    await refused(`TRUNCATE ${table} CASCADE`).toThrow(/TRUNCATE is refused/);
    expect(await rowsOf(services, null)).toEqual(before);
  });

  test('a head is not moved but by an event', async () => {
    for (const set of ['last_seq = last_seq + 1', 'last_seq = 1', `last_at = now()`, 'message_count = 0'])
      await refused(`UPDATE thread_heads SET ${set} WHERE thread_id = $1`, [world.threadId]).toThrow();
    await refused('DELETE FROM thread_heads WHERE thread_id = $1', [world.threadId]).toThrow();
    expect(await rowsOf(services, null)).toEqual(before);
  });
});

describe('a timeline has no gap', () => {
  const insert = (world: World, seq: number, changes: Readonly<Record<string, unknown>> = {}) => {
    const row: Record<string, unknown> = {
      owner_id: world.userId,
      thread_id: world.threadId,
      seq,
      id: newId('Event'),
      type: 'SYSTEM',
      at: new Date(),
      message_no: 3,
      kind: 'BY_HAND',
      mention_ids: [],
      source_ids: [],
      hidden_from: [],
      ...changes,
    };
    const names = Object.keys(row);
    return sql(
      `INSERT INTO events (${names.join(', ')}) VALUES (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
      Object.values(row),
    );
  };

  test('whoever inserts, and whatever', async () => {
    const world = await createWorld(services, 'gapless');
    const { rows } = await sql('SELECT last_seq, message_count FROM thread_heads WHERE thread_id = $1', [
      world.threadId,
    ]);
    const { last_seq: last, message_count: count } = rows[0] as { last_seq: number; message_count: number };
    const before = await rowsOf(services, world.userId);
    for (const seq of [last + 2, last, 1, 0, -1, last + 100])
      await expect(insert(world, seq, { message_no: count })).rejects.toThrow();
    // The right number, and something else that is not right.
    for (const changes of [
      { message_no: count + 1 },
      { message_no: count - 1 },
      { at: new Date(0) },
      { type: 'MESSAGE', message_no: count },
      { id: world.message.id },
      { thread_id: newId('Thread') },
    ])
      await expect(insert(world, last + 1, { message_no: count, ...changes })).rejects.toThrow();
    expect(await rowsOf(services, world.userId)).toEqual(before);
    await insert(world, last + 1, { message_no: count });
    const { event } = await services.timeline.post(world.owner, {
      threadId: world.threadId,
      as: world.people.ada.id,
      content: 'after it',
    });
    expect(event.seq).toBe(last + 2);
  });
});

describe('a row does not point into another tenant', () => {
  test('by any foreign key there is', async () => {
    const [ours, theirs] = [await createWorld(services, 'ours'), await createWorld(services, 'theirs')];
    const { rows: keys } = await sql(`
      SELECT c.conrelid::regclass::text AS "table", c.confrelid::regclass::text AS target,
        ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY AS k(n, o)
          JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.n ORDER BY k.o) AS columns
      FROM pg_constraint c WHERE c.contype = 'f' AND c.connamespace = 'public'::regnamespace`);
    const found = keys as { table: string; target: string; columns: string[] }[];
    // Each names the owner, so that a row and what it points at are of one tenant.
    for (const { table, target, columns } of found)
      expect([table, target, columns]).toEqual([table, target, expect.arrayContaining(['owner_id'])]);
    expect(found.length).toBeGreaterThan(15);
    const before = await rowsOf(services, null);
    const [ada, stranger] = [ours.people.ada.id, theirs.people.ada.id];
    const head = `SELECT $1, $2, last_seq + 1, $3, 'PARTICIPANT_STATE_CHANGED', now(), message_count`;
    for (const [text, values] of [
      [
        `UPDATE credentials SET participant_id = $2 WHERE owner_id = $1 AND participant_id IS NOT NULL`,
        [ours.userId, stranger],
      ],
      [`UPDATE thread_members SET participant_id = $2 WHERE owner_id = $1`, [ours.userId, stranger]],
      [`UPDATE thread_members SET thread_id = $2 WHERE owner_id = $1`, [ours.userId, theirs.threadId]],
      [`UPDATE threads SET owner_id = $2 WHERE id = $1`, [ours.threadId, theirs.userId]],
      [`UPDATE participants SET owner_id = $2 WHERE id = $1`, [ada, theirs.userId]],
      [
        `INSERT INTO thread_members (owner_id, thread_id, participant_id, since_at) VALUES ($1, $2, $3, now())`,
        [ours.userId, ours.threadId, stranger],
      ],
      [
        `INSERT INTO thread_members (owner_id, thread_id, participant_id, since_at) VALUES ($1, $2, $3, now())`,
        [ours.userId, theirs.threadId, ada],
      ],
      [
        `INSERT INTO visibility_windows (owner_id, thread_id, participant_id, after_seq, after_no, visible_before) VALUES ($1, $2, $3, 0, 0, 0)`,
        [ours.userId, theirs.threadId, stranger],
      ],
      [
        `INSERT INTO thread_links (owner_id, earlier_id, later_id, earlier_seq, later_seq) VALUES ($1, $2, $3, 1, 1)`,
        [ours.userId, ours.threadId, theirs.threadId],
      ],
      [
        `INSERT INTO tickets (hash, owner_id, credential_id, operation_hash, expires_at) VALUES ('h', $1, $2, 'o', now())`,
        [ours.userId, theirs.owner.credentialId],
      ],
      [
        `INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result, thread_id) VALUES ($1, 'x', '', '', 'k', 'h', '{}', $2)`,
        [ours.userId, theirs.threadId],
      ],
      [
        `INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, subject_id, to_state, mention_ids, source_ids, hidden_from)
         ${head}, $4, 'REMOVED', '{}', '{}', '{}' FROM thread_heads WHERE thread_id = $2`,
        [ours.userId, ours.threadId, newId('Event'), stranger],
      ],
      [
        `INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, actor_id, mention_ids, source_ids, hidden_from)
         ${head}, $4, '{}', '{}', '{}' FROM thread_heads WHERE thread_id = $2`,
        [ours.userId, ours.threadId, newId('Event'), stranger],
      ],
      [
        `INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, sender_id, mention_ids, source_ids, hidden_from)
         ${head}, $4, '{}', '{}', '{}' FROM thread_heads WHERE thread_id = $2`,
        [ours.userId, ours.threadId, newId('Event'), stranger],
      ],
      [
        `INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, mention_ids, source_ids, hidden_from)
         SELECT $1, $2, last_seq + 1, $3, 'SYSTEM', now(), message_count, '{}', '{}', '{}' FROM thread_heads WHERE thread_id = $2`,
        [ours.userId, theirs.threadId, newId('Event')],
      ],
    ] as const)
      await refused(text, values).toThrow(/foreign key|violates|append-only|does not (follow|change)/);
    expect(await rowsOf(services, null)).toEqual(before);
  });
});

const rowsLeft = async (userId: string): Promise<Record<string, number>> => {
  const { audit_log: _, ...rows } = await rowsOf(services, userId);
  return Object.fromEntries(
    Object.entries(rows).flatMap(([table, { length }]) => (length === 0 ? [] : [[table, length]])),
  );
};

describe('what is deleted is gone', () => {
  test('a thread, with DELETE typed into a console', async () => {
    const [world, other] = [await createWorld(services, 'typed'), await createWorld(services, 'untouched')];
    const theirs = await rowsOf(services, other.userId);
    await sql('DELETE FROM threads WHERE id = $1', [world.threadId]);
    // Inboxes are told of a thread that is gone, memory and runs keep what they were stamped with.
    const stamped = ['audit_log', 'events', 'inbox_controls', 'memory_scopes', 'memory_entries', 'runs'];
    for (const [table, rows] of Object.entries(await rowsOf(services, world.userId)))
      if (!stamped.includes(table))
        expect([table, rows.filter((row) => row.includes(world.threadId))]).toEqual([table, []]);
    // What else names it is a value, not a reference.
    const { rows } = await sql('SELECT count(*)::int AS count FROM events WHERE thread_id = $1', [
      world.threadId,
    ]);
    expect(rows).toEqual([{ count: 0 }]);
    const runs = await sql('SELECT status, conversation_thread_id FROM runs WHERE id = $1', [world.runId]);
    expect(runs.rows).toEqual([{ status: 'CANCELLED', conversation_thread_id: null }]);
    // The other one goes on, its link to what is gone shows nothing.
    const { event } = await services.timeline.post(world.owner, {
      threadId: world.laterThreadId,
      as: world.people.ada.id,
      content: 'still here',
    });
    expect(event.seq).toBeGreaterThan(1);
    // And the set is free again.
    const { people } = world;
    const opened = await services.threads.open(world.owner, {
      participantIds: [people.ada.id, people.scout.id, people.rex.id],
    });
    expect(opened.created).toBe(true);
    expect(await rowsOf(services, other.userId)).toEqual(theirs);
  });

  test('a user, with DELETE typed into a console', async () => {
    const [world, other] = [await createWorld(services, 'typed-user'), await createWorld(services, 'next')];
    const theirs = await rowsOf(services, other.userId);
    await sql('DELETE FROM users WHERE id = $1', [world.userId]);
    expect(await rowsLeft(world.userId)).toEqual({});
    expect(await rowsOf(services, other.userId)).toEqual(theirs);
  });

  test('a user by itself: at once for everybody, then row by row', async () => {
    const [world, other] = [await createWorld(services, 'left'), await createWorld(services, 'stayed')];
    const theirs = await rowsOf(services, other.userId);
    await services.users.remove(world.owner, { confirmName: 'left company' });
    await expect(
      api.authentication.authenticate({ authorization: `Bearer ${world.apiKey}` }),
    ).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    });
    await until(async () => Object.keys(await rowsLeft(world.userId)).length === 0, 50);
    expect(await rowsOf(services, other.userId)).toEqual(theirs);
    const { rows } = await sql(`SELECT act FROM audit_log WHERE owner_id = $1 AND act = 'user.deleted'`, [
      world.userId,
    ]);
    expect(rows).toHaveLength(1);
  });
});

describe('an operation that is under way while its user is deleted', () => {
  test.for([
    ['is about to be emptied', `UPDATE users SET deleted_at = now() WHERE id = $1`],
    ['is gone', `DELETE FROM users WHERE id = $1`],
  ] as const)('ends as one without a credential, or finds nothing, where the user %s', async ([, text]) => {
    const world = await createWorld(services, 'meanwhile');
    const { owner, userId, threadId, people } = world;
    await sql(text, [userId]);
    const id = people.ada.id;
    const acts: Record<string, () => Promise<unknown>> = {
      createApiKey: () => services.credentials.createApiKey(owner, {}),
      createParticipantToken: () => services.credentials.createParticipantToken(owner, { participantId: id }),
      createParticipant: () => services.participants.create(owner, { kind: 'AGENT', handle: 'late' }),
      cloneParticipant: () =>
        services.participants.clone(owner, { participantId: people.scout.id, handle: 'late' }),
      deleteUser: () => services.users.remove(owner, { confirmName: 'meanwhile company' }),
    };
    if (text.startsWith('DELETE'))
      Object.assign(acts, {
        createTicket: () => services.credentials.createTicket(owner, { query: '{ x }' }),
        revoke: () => services.credentials.revoke(owner, { credentialId: people.ada.credentialId }),
        revokeAll: () => services.credentials.revokeParticipantCredentials(owner, { participantId: id }),
        update: () => services.participants.update(owner, { participantId: id, listed: true }),
        open: () => services.threads.open(owner, { participantIds: [id, people.lil.id] }),
        extend: () => services.threads.extend(owner, { threadId, participantIds: [people.nora.id] }),
        post: () => services.timeline.post(owner, { threadId, as: id, content: 'late' }),
        retract: () => services.timeline.retract(owner, { messageId: world.late.id, as: id }),
        updateThread: () => services.threads.update(owner, { threadId, metaData: {} }),
        deleteThread: () => services.threads.delete(owner, { threadId }),
      });
    for (const [name, act] of Object.entries(acts)) {
      const code = await act().then(
        () => 'OK',
        (error: { code?: string }) => error.code,
      );
      expect([name, code]).toEqual([
        name,
        expect.stringMatching(/^(UNAUTHENTICATED|NOT_FOUND|BAD_USER_INPUT)$/),
      ]);
    }
  });
});

describe('a large thread', () => {
  test('is invisible at once, and emptied in batches that nobody waits for', async () => {
    const world = await createWorld(services, 'large');
    const { owner, threadId, people } = world;
    // Longer than a few batches; each row goes through the same triggers as any other.
    await sql(
      `DO $$ DECLARE h thread_heads; BEGIN
         FOR i IN 1 .. 7000 LOOP
           SELECT * INTO h FROM thread_heads WHERE thread_id = '${threadId}';
           INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, kind, mention_ids, source_ids, hidden_from)
             VALUES (h.owner_id, h.thread_id, h.last_seq + 1, 'event_' || h.last_seq || '_large', 'SYSTEM', tp_next_at(h), h.message_count, 'FILLER', '{}', '{}', '{}');
           IF i % 20 = 0 THEN COMMIT; END IF;
         END LOOP;
       END $$`,
    );
    const countEvents = async (): Promise<number> => {
      const { rows } = await sql('SELECT count(*)::int AS count FROM events WHERE thread_id = $1', [
        threadId,
      ]);
      return (rows[0] as { count: number }).count;
    };
    expect(await countEvents()).toBeGreaterThan(7_000);
    const startedAt = performance.now();
    await services.threads.delete(owner, { threadId });
    const took = performance.now() - startedAt;
    const read = await api.run(
      { authorization: `Bearer ${world.apiKey}` },
      `query($id: ID!, $event: ID!, $later: ID!) {
         thread(id: $id) { id } node(id: $event) { id } engagement(threadId: $id) { id }
         threads { nodes { id } }
         later: thread(id: $later) { timeline { events(first: 200) { nodes { ... on SystemEvent { relatedThread { id } } } } } } }`,
      { id: threadId, event: world.message.id, later: world.laterThreadId },
    );
    expect(JSON.parse(JSON.stringify(read.data))).toMatchObject({
      thread: null,
      node: null,
      engagement: null,
      threads: { nodes: [{ id: world.laterThreadId }] },
    });
    expect(JSON.stringify(read.data)).not.toContain(threadId);
    for (const attempt of [
      () => services.timeline.post(owner, { threadId, as: people.ada.id, content: 'late' }),
      () => services.timeline.retract(owner, { messageId: world.late.id, as: people.ada.id }),
      () => services.threads.changeState(owner, { threadId, participantId: people.scout.id }, 'REMOVED'),
      () => services.threads.extend(owner, { threadId, participantIds: [people.nora.id] }),
      () => services.threads.delete(owner, { threadId }),
    ])
      await expect(attempt()).rejects.toMatchObject({ code: 'NOT_FOUND' });
    // The set is free at once, while the old rows are still on their way out.
    const participantIds = [people.ada.id, people.scout.id, people.rex.id];
    const again = await services.threads.open(owner, { participantIds });
    expect(again).toMatchObject({ created: true });
    expect(again.threadId).not.toBe(threadId);
    await until(async () => (await sql('SELECT FROM threads WHERE id = $1', [threadId])).rowCount === 0, 20);
    expect(await countEvents()).toBe(0);
    expect(took).toBeLessThan(1_000);
  });

  test('is emptied a bounded number of rows at a time, also after a crash in between', async () => {
    const world = await createWorld(services, 'crashed');
    const { owner, threadId } = world;
    await sql(
      `INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result, thread_id)
       SELECT $1, 'x', $2, '', n::text, '', '{}', $2 FROM generate_series(1, 7) n`,
      [world.userId, threadId],
    );
    const keys = async (): Promise<number> =>
      (await sql('SELECT FROM idempotency_records WHERE thread_id = $1', [threadId])).rowCount ?? 0;
    const all = await keys();
    // No worker of a process that has died: only what is in the database.
    await sql(`SELECT delete_thread($1, $2, $3, $4)`, [
      world.userId,
      threadId,
      newId('Audit'),
      owner.credentialId,
    ]);
    // Of a call's results there may be as many as of events: they do not go with the thread's commit either.
    let left = await keys();
    expect(left).toBe(all);
    const steps: number[] = [];
    for (;;) {
      const { rows } = await sql('SELECT empty_deleted(2) AS count');
      const { count } = rows[0] as { count: number };
      if (count === 0) break;
      expect(count).toBeLessThanOrEqual(2);
      const now = await keys();
      expect(left - now).toBeLessThanOrEqual(2);
      left = now;
      steps.push(count);
    }
    expect(steps.length).toBeGreaterThan(6);
    const rest = await rowsOf(services, world.userId);
    expect(rest.threads?.filter((row) => row.includes(threadId))).toEqual([]);
  });
});

describe('a deleted user', () => {
  test('has its runs emptied a bounded number at a time, those of a run before it', async () => {
    const { userId, people } = await createWorld(services, 'many-runs');
    const worker = people.nora.id;
    const ids = Array.from({ length: 6 }, () => newId('Run')).sort();
    for (const id of ids)
      await sql(
        `INSERT INTO runs (id, owner_id, participant_id, parent_run_id, root_run_id, access, max_tool_calls)
         VALUES ($1, $2, $3, nullif($4, $1), $4, 'WRITE', 1)`,
        [id, userId, worker, ids[0]],
      );
    const count = async (): Promise<number> =>
      (await sql('SELECT FROM runs WHERE owner_id = $1', [userId])).rowCount ?? 0;
    // No worker of a process has heard of it: each step is seen.
    const left = [await count()];
    await sql('UPDATE users SET deleted_at = now() WHERE id = $1', [userId]);
    while ((await sql('SELECT FROM users WHERE id = $1', [userId])).rowCount === 1) {
      await sql('SELECT empty_deleted(2)');
      left.push(await count());
    }
    // And the one that is there in every world.
    expect(left[0]).toBe(ids.length + 1);
    for (const [index, now] of left.entries()) expect((left[index - 1] ?? now) - now).toBeLessThanOrEqual(2);
  });
});

describe('a credential that is ended by hand', () => {
  test.for([
    ['revoked', `UPDATE credentials SET revoked_at = now() WHERE id = $1`],
    ['expired', `UPDATE credentials SET expires_at = now() - interval '1 second' WHERE id = $1`],
    ['deleted', `DELETE FROM credentials WHERE id = $1`],
    [
      'deleted with its participant',
      `DELETE FROM participants WHERE id = (SELECT participant_id FROM credentials WHERE id = $1)`,
    ],
    [
      'deleted with its user',
      `DELETE FROM users WHERE id = (SELECT owner_id FROM credentials WHERE id = $1)`,
    ],
  ] as const)('%s: is dead in every process, also where it is remembered', async ([, text]) => {
    const world = await createWorld(services, 'by-hand');
    // In no thread: who is a member cannot be deleted while the thread is there.
    const { token, credentialId } = world.people.nora;
    const presented = { authorization: `Bearer ${token}` };
    await api.authentication.authenticate(presented);
    const session = await api.authentication.openSession(presented);
    await session.cleared();
    await sql(text, [credentialId]);
    const endedAt = performance.now();
    if (!session.ended.aborted) await once(session.ended, 'abort', { signal: AbortSignal.timeout(10_000) });
    expect(performance.now() - endedAt).toBeLessThan(1_000);
    await expect(session.cleared()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    await expect(api.authentication.authenticate(presented)).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    });
  });
});

describe('the audit log', () => {
  const entriesOf = async (userId: string): Promise<string[]> => {
    const { rows } = await sql(
      `SELECT act || ' ' || coalesce(subject_id, '') AS entry FROM audit_log WHERE owner_id = $1 ORDER BY at, id`,
      [userId],
    );
    return (rows as { entry: string }[]).map(({ entry }) => entry);
  };

  test('has an entry for each act of administration, and none for what failed', async () => {
    const world = await createWorld(services, 'audited');
    const { owner, userId, threadId, people } = world;
    const before = (await entriesOf(userId)).length;
    const added: string[] = [];
    const expectAdded = async (...entries: string[]): Promise<void> => {
      added.push(...entries);
      expect((await entriesOf(userId)).slice(before).sort()).toEqual([...added].sort());
    };
    const key = await services.credentials.createApiKey(owner, {});
    await expectAdded(`credential.created ${key.credential.id}`);
    const token = await services.credentials.createParticipantToken(owner, { participantId: people.ada.id });
    await expectAdded(`credential.created ${token.credential.id}`);
    await services.credentials.revoke(owner, { credentialId: key.credential.id });
    await expectAdded(`credential.revoked ${key.credential.id}`);
    const runTokens = await sql("SELECT id FROM credentials WHERE owner_id = $1 AND kind = 'RUN_TOKEN'", [
      userId,
    ]);
    await services.credentials.revokeParticipantCredentials(owner, { participantId: people.ada.id });
    await expectAdded(
      `credential.revoked ${token.credential.id}`,
      `credential.revoked ${people.ada.credentialId}`,
      ...runTokens.rows.map(({ id }) => `credential.revoked ${id}`),
    );
    const made = await services.participants.create(owner, { kind: 'AGENT', handle: 'made' });
    await expectAdded(`participant.created ${made.id}`);
    await services.participants.update(owner, { participantId: made.id, listed: true });
    await expectAdded(`participant.updated ${made.id}`);
    await services.threads.changeState(owner, { threadId, participantId: people.scout.id }, 'REMOVED');
    await expectAdded(`participant.removed ${people.scout.id}`);
    await services.threads.changeState(owner, { threadId, participantId: people.scout.id }, 'ACTIVE');
    await expectAdded(`participant.readded ${people.scout.id}`);
    await services.threads.leave(owner, { threadId, as: people.scout.id });
    await expectAdded(`participant.removed ${people.scout.id}`);
    await services.threads.delete(owner, { threadId });
    await expectAdded(`thread.deleted ${threadId}`);
    for (const failing of [
      () => services.credentials.revoke(owner, { credentialId: newId('Credential') }),
      () => services.participants.create(owner, { kind: 'AGENT', handle: 'made' }),
      () => services.participants.update(owner, { participantId: newId('Participant'), listed: true }),
      () => services.threads.changeState(owner, { threadId, participantId: people.scout.id }, 'REMOVED'),
      () => services.threads.delete(owner, { threadId }),
      () => services.users.remove(owner, { confirmName: 'another' }),
    ])
      await expect(failing()).rejects.toMatchObject({ code: expect.any(String) });
    await expectAdded();
    await services.users.remove(owner, { confirmName: 'audited company' });
    expect(await entriesOf(userId)).toContain(`user.deleted ${userId}`);
  });

  test('is written in the transaction of the act: without it there is no act', async () => {
    const world = await createWorld(services, 'atomic');
    const { owner, userId, threadId, people } = world;
    await sql(`
      CREATE FUNCTION no_more_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.owner_id = '${userId}' THEN RAISE EXCEPTION 'the log is full'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER no_more_audit BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION no_more_audit()`);
    const before = await rowsOf(services, userId);
    for (const act of [
      () => services.credentials.createApiKey(owner, {}),
      () => services.credentials.createParticipantToken(owner, { participantId: people.ada.id }),
      () => services.credentials.revoke(owner, { credentialId: people.ada.credentialId }),
      () => services.credentials.revokeParticipantCredentials(owner, { participantId: people.ada.id }),
      () => services.participants.create(owner, { kind: 'AGENT', handle: 'atomic' }),
      () => services.participants.update(owner, { participantId: people.ada.id, displayName: 'x' }),
      () => services.participants.clone(owner, { participantId: people.scout.id, handle: 'copy' }),
      () => services.threads.changeState(owner, { threadId, participantId: people.scout.id }, 'REMOVED'),
      () => services.threads.leave(owner, { threadId, as: people.scout.id }),
      () => services.threads.delete(owner, { threadId }),
      () => services.users.remove(owner, { confirmName: 'atomic company' }),
    ])
      await expect(act()).rejects.toThrow();
    await sql('DROP TRIGGER no_more_audit ON audit_log; DROP FUNCTION no_more_audit()');
    expect(await rowsOf(services, userId)).toEqual(before);
    await api.authentication.authenticate({ authorization: `Bearer ${world.people.ada.token}` });
  });
});
