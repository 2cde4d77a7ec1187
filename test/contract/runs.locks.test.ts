import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApi } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';
import { createWorld, type World } from '../support/world.ts';

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let world: World;
/** Somebody at a console, in a transaction that stays open. */
let holder: pg.Client;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  world = await createWorld(api.services, 'locks');
  holder = new pg.Client({ connectionString: db.url });
  await holder.connect();
});
afterAll(async () => {
  await holder.end();
  await api.close();
  await db.drop();
});

const waiting = async (): Promise<number> =>
  (
    await db.database.query(
      {
        name: 'waiting',
        text: `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      },
      [],
    )
  ).length;

/** While the row of this run is held: each begins once those before it wait. */
const behind = async (runId: string, begin: readonly (() => Promise<unknown>)[]): Promise<unknown[]> => {
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM runs WHERE id = $1 FOR UPDATE', [runId]);
  const begun: Promise<unknown>[] = [];
  try {
    for (const one of begin) {
      begun.push(one().catch((error: unknown) => error));
      await until(async () => (await waiting()) === begun.length);
    }
  } finally {
    await holder.query('COMMIT');
  }
  return Promise.all(begun);
};

test('a run is delegated into a conversation beside its deletion, and neither is a deadlock’s victim', async () => {
  const { runs, threads } = api.services;
  const { owner, people } = world;
  const { threadId } = await threads.open(owner, { participantIds: [people.scout.id, people.lil.id] });
  const parent = await runs.delegate(owner, { participantId: people.scout.id });
  const [delegated, deleted] = await behind(parent.run.id, [
    () =>
      runs.delegate(owner, {
        participantId: people.lil.id,
        parentRunId: parent.run.id,
        conversationThreadId: threadId,
      }),
    () => threads.delete(owner, { threadId }),
  ]);
  expect(deleted).not.toBeInstanceOf(Error);
  expect(delegated).toMatchObject({ run: { conversationThreadId: threadId } });
  const { run } = delegated as typeof parent;
  expect(await runs.find(owner, run.id)).toMatchObject({ status: 'CANCELLED' });
});

test('a scratchpad is deleted beside the end of a tree of runs on it, and neither is a deadlock’s victim', async () => {
  const { runs, scratchpads } = api.services;
  const { owner, people, scratchpadId } = world;
  const root = await runs.delegate(owner, { participantId: people.scout.id, scratchpadId });
  const child = await runs.delegate(owner, {
    participantId: people.scout.id,
    parentRunId: root.run.id,
    scratchpadId,
  });
  await runs.claim(owner, { runId: root.run.id, as: people.scout.id });
  // So few are read in the order in which they lie: what was changed last is last.
  await holder.query('ANALYZE runs');
  const done = await behind(child.run.id, [
    () => scratchpads.delete(owner, { scratchpadId }),
    () => runs.update(owner, { runId: root.run.id, status: 'CANCELLED' }),
  ]);
  expect(done.filter((one) => one instanceof Error)).toEqual([]);
  for (const id of [root.run.id, child.run.id])
    expect(await runs.find(owner, id)).toMatchObject({ status: 'CANCELLED', scratchpadId: null });
});

const newPad = async (...participantIds: string[]) => {
  const { threadId } = await api.services.threads.open(world.owner, { participantIds });
  return (await api.services.scratchpads.create(world.owner, { threadId })).pad;
};

test('work on a scratchpad is delegated further beside its deletion: it has none by then, or it is not found', async () => {
  const { runs, scratchpads } = api.services;
  const { owner, people } = world;
  for (const isFirst of [true, false]) {
    const { scratchpadId } = await newPad(people.nora.id, isFirst ? people.scout.id : people.lil.id);
    const root = await runs.delegate(owner, { participantId: people.scout.id, scratchpadId });
    const input = { participantId: people.lil.id, parentRunId: root.run.id };
    const acts = [() => runs.delegate(owner, input), () => scratchpads.delete(owner, { scratchpadId })];
    const done = await behind(root.run.id, isFirst ? acts : acts.reverse());
    if (!isFirst) {
      expect(done).toMatchObject([{ deletedId: scratchpadId }, { code: 'NOT_FOUND' }]);
      continue;
    }
    expect(done).toMatchObject([{ run: { scratchpadId } }, { deletedId: scratchpadId }]);
    const { run } = done[0] as typeof root;
    expect(await runs.find(owner, run.id)).toMatchObject({ status: 'QUEUED', scratchpadId: null });
  }
});

test('two threads are deleted in which runs on each other’s scratchpads go on', async () => {
  const { runs, threads } = api.services;
  const { owner, people } = world;
  const [one, other] = [
    await newPad(people.rex.id, people.nora.id),
    await newPad(people.rex.id, people.lil.id),
  ];
  const work = { participantId: people.rex.id };
  const ofOther = { ...work, scratchpadId: other.scratchpadId, conversationThreadId: one.threadId };
  const ofOne = { ...work, scratchpadId: one.scratchpadId, conversationThreadId: other.threadId };
  const first = await runs.delegate(owner, ofOther);
  const second = await runs.delegate(owner, ofOne);
  const below = await runs.delegate(owner, { ...work, parentRunId: second.run.id });
  const done = await behind(below.run.id, [
    () => threads.delete(owner, { threadId: one.threadId }),
    () => threads.delete(owner, { threadId: other.threadId }),
  ]);
  expect(done).toEqual([undefined, undefined]);
  for (const { run } of [first, second, below])
    expect(await runs.find(owner, run.id)).toMatchObject({ status: 'CANCELLED', scratchpadId: null });
});

test('a conversation is taken out of the runs that were in it beside the deletion of their scratchpad', async () => {
  const { runs, scratchpads } = api.services;
  const { owner, people } = world;
  const { threadId } = await api.services.threads.open(owner, {
    participantIds: [people.lil.id, people.rex.id],
  });
  const { scratchpadId } = await newPad(people.scout.id, people.rex.id);
  const work = { participantId: people.rex.id, scratchpadId, conversationThreadId: threadId };
  const ids: string[] = [];
  for (const _ of [1, 2]) {
    const { run } = await runs.delegate(owner, work);
    await runs.update(owner, { runId: run.id, status: 'CANCELLED' });
    ids.push(run.id);
  }
  const [first = '', second = ''] = ids.sort();
  // So few are read in the order in which they lie: the first by its id is last.
  await holder.query('UPDATE runs SET meta_data = meta_data WHERE id = $1', [first]);
  await holder.query('ANALYZE runs');
  const remover = new pg.Client({ connectionString: db.url });
  await remover.connect();
  const done = await behind(first, [
    () => scratchpads.delete(owner, { scratchpadId }),
    () => remover.query('DELETE FROM threads WHERE id = $1', [threadId]),
  ]);
  await remover.end();
  expect(done.filter((one) => one instanceof Error)).toEqual([]);
  for (const id of [first, second])
    expect(await runs.find(owner, id)).toMatchObject({ scratchpadId: null, conversationThreadId: null });
});
