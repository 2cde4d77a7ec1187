import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PadAccess } from '../../../src/scratchpads/access.ts';
import type { Author } from '../../../src/scratchpads/pad.ts';
import type { ScratchpadWriting } from '../../../src/scratchpads/writing.ts';
import { newId } from '../../../src/shared/ids.ts';
import type { MemberState } from '../../../src/timeline/events.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { HoldingRedis } from '../../support/holdingRedis.ts';
import { padWriting } from '../../support/padWriting.ts';
import { createRandom } from '../../support/random.ts';
import { LOSES_NOTHING, type RedisServer, startRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { createWorld, type World } from '../../support/world.ts';

type Api = ReturnType<typeof createApi>;

let db: TestDatabase;
let server: RedisServer;
let held: HoldingRedis;
let probe: Redis;
/** Changes memberships. */
let changer: Api;
/** Writes; its commands to Redis can be held back. */
let writer: Api;
let writing: ScratchpadWriting;
beforeAll(async () => {
  db = await createTestDatabase();
  server = await startRedis(LOSES_NOTHING);
  held = new HoldingRedis(server.path);
  probe = new Redis(server.path);
  for (const link of [held, probe]) link.on('error', () => undefined);
  changer = createApi(db.database, { redisUrl: server.url });
  writer = createApi(db.database, { redisUrl: server.url, commands: held });
  writing = padWriting(writer);
});
afterAll(async () => {
  held.release();
  probe.disconnect();
  await changer.close();
  await writer.close();
  await server.stop();
  await db.drop();
});

/** A thread with a pad in which everybody is active. */
const newScene = async (): Promise<World> => {
  const world = await createWorld(changer.services, `w${randomUUID().slice(0, 8)}`);
  const { owner, threadId, people } = world;
  await changer.services.threads.changeState(owner, { threadId, participantId: people.rex.id }, 'ACTIVE');
  await changer.services.scratchpads.delete(owner, world);
  const { pad } = await changer.services.scratchpads.create(owner, { threadId });
  return { ...world, scratchpadId: pad.scratchpadId };
};
const change = async ({ owner, threadId, people }: World, to: MemberState): Promise<number> =>
  (await changer.services.threads.changeState(owner, { threadId, participantId: people.rex.id }, to)).event
    .seq;
const by = (authorId: string | null): Author => ({ authorId, runId: null, sourceIds: [] });
const append = ({ owner, scratchpadId }: World, as: string, content: string) =>
  writing.append(owner, { scratchpadId, as, content });
const listed = async ({ userId, scratchpadId }: World): Promise<{ content: string; author: string }[]> =>
  (await probe.lrange(`scratchpad:${userId}:{${scratchpadId}}:entries`, 0, -1)).map((json) =>
    JSON.parse(json),
  );
const grantOf = async ({ userId, scratchpadId }: World, participantId: string | null): Promise<PadAccess> => {
  const access = await writer.services.padAccess.grant({ ownerId: userId, scratchpadId, participantId });
  if (access === null) throw new Error('There is no such pad.');
  return access;
};
const fencesWaiting = async (): Promise<number> =>
  (
    await db.database.query<{ count: number }>(
      { name: '', text: 'SELECT count(*)::int AS count FROM scratchpad_fences' },
      [],
    )
  )[0]?.count ?? -1;

describe('a write that was authorised before a removal and runs after it', () => {
  test('never lands as the removed, also by the service, thousands of times', async () => {
    const scene = await newScene();
    const { rex } = scene.people;
    await append(scene, rex.id, 'while active');
    for (let round = 0; round < 700; round += 1) {
      held.hold();
      const late = [0, 1, 2].map((index) => append(scene, rex.id, `late ${round}.${index}`));
      const outcomes = Promise.allSettled(late);
      await until(() => Promise.resolve(held.waiting >= 3));
      await change(scene, 'REMOVED');
      held.release();
      for (const outcome of await outcomes)
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'PARTICIPANT_NOT_ACTIVE' } });
      await change(scene, 'ACTIVE');
    }
    expect((await listed(scene)).map(({ content }) => content)).toEqual(['while active']);
  }, 120_000);

  test('lands once it is authorised again, as somebody who stayed', async () => {
    const scene = await newScene();
    const { ada } = scene.people;
    await append(scene, ada.id, 'first');
    held.hold();
    const late = append(scene, ada.id, 'late');
    await until(() => Promise.resolve(held.waiting >= 1));
    const seq = await change(scene, 'REMOVED');
    held.release();
    expect((await late).entry).toMatchObject({ threadSeq: seq, seq: 2 });
  });

  test('is refused by the fence alone, whoever the changes are of', async () => {
    const scene = await newScene();
    const { ada, rex } = scene.people;
    await append(scene, ada.id, 'first');
    for (const participantId of [ada.id, rex.id, null]) {
      for (const to of ['REMOVED', 'ACTIVE'] as const) {
        const { pad, grant } = await grantOf(scene, participantId);
        await change(scene, to);
        const outcome = await writer.padUpkeep.plane.append(pad, grant, by(participantId), {
          contents: ['late'],
          key: null,
        });
        expect(outcome).toMatchObject({ kind: 'FENCED' });
      }
    }
    expect(await listed(scene)).toHaveLength(1);
  });
});

describe('a read that was begun before a removal and runs after it', () => {
  const READ = `query ($id: ID!, $as: ID) { scratchpad(id: $id, as: $as) {
    content { text } entries(last: 20) { nodes { content } } formattedView } }`;
  interface Told {
    readonly content: { readonly text: string } | null;
    readonly entries: { readonly nodes: readonly { readonly content: string }[] };
    readonly formattedView: string | null;
  }
  const ROUNDS = Number(process.env.HELD_READS ?? 130);
  const AT_ONCE = 16;

  test('never shows what came after it, thousands of times', async () => {
    const scene = await newScene();
    const { owner, scratchpadId, people, apiKey } = scene;
    const { ada, rex } = people;
    const read = async (as: string | null): Promise<Told | null> => {
      const { data, errors } = await writer.run({ apiKey }, READ, { id: scratchpadId, as });
      expect(errors).toBeUndefined();
      return (data?.scratchpad ?? null) as Told | null;
    };
    const write = async (text: string): Promise<void> => {
      const by = padWriting(changer);
      await by.append(owner, { scratchpadId, as: ada.id, content: text });
      await by.setContent(owner, { scratchpadId, as: ada.id, text });
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      await write(`before ${round}`);
      held.hold();
      const reads = Array.from({ length: AT_ONCE }, () => read(rex.id));
      const answers = Promise.all(reads);
      await until(() => Promise.resolve(held.waiting >= AT_ONCE));
      await change(scene, 'REMOVED');
      await write(`after ${round}`);
      held.release();
      for (const told of await answers) {
        expect(told?.entries.nodes.at(-1)).toEqual({ content: `before ${round}` });
        expect(JSON.stringify(told)).not.toContain('after');
        // Of the body nothing is left that it could be shown.
        expect(told).toMatchObject({ content: null, formattedView: null });
      }
      await change(scene, 'ACTIVE');
    }
    expect((await read(null))?.entries.nodes.at(-1)).toEqual({ content: `after ${ROUNDS - 1}` });
  }, 120_000);
});

describe('writers and changes that race freely', () => {
  test('leave each author’s entries within its own windows, and every other entry', async () => {
    const scene = await newScene();
    const { ada, rex } = scene.people;
    const changes: { seq: number; to: MemberState }[] = [];
    let isOver = false;
    const random = createRandom('Pauses of scripts and of changes');
    held.lateBy = () => random() * 12;
    const written: string[] = [];
    const write = async (as: string, name: string): Promise<void> => {
      for (let count = 0; !isOver; count += 1) {
        const content = `${name} ${count}`;
        const done = await append(scene, as, content).then(
          () => true,
          (error: { code?: string }) => {
            // UNAVAILABLE: overtaken by changes again and again, more often than it is tried.
            expect(['PARTICIPANT_NOT_ACTIVE', 'UNAVAILABLE']).toContain(error.code);
            return false;
          },
        );
        if (done) written.push(content);
      }
    };
    const writers = [0, 1, 2].flatMap((index) => [
      write(rex.id, `rex${index}`),
      write(ada.id, `ada${index}`),
    ]);
    for (let round = 0; round < 60; round += 1)
      for (const to of ['REMOVED', 'ACTIVE'] as const) {
        await new Promise((resolve) => setTimeout(resolve, random() * 8));
        changes.push({ seq: await change(scene, to), to });
      }
    isOver = true;
    await Promise.all(writers);
    held.lateBy = undefined;
    const raw = await probe.lrange(`scratchpad:${scene.userId}:{${scene.scratchpadId}}:entries`, 0, -1);
    const entries = raw.map(
      (json) => JSON.parse(json) as { author: string; content: string; thread_seq: number },
    );
    expect(entries.map(({ content }) => content).sort()).toEqual(written.sort());
    const stateAt = (threadSeq: number): MemberState =>
      changes.filter(({ seq }) => seq <= threadSeq).at(-1)?.to ?? 'ACTIVE';
    const misplaced = entries.filter(
      ({ author, thread_seq }) => author === rex.id && stateAt(thread_seq) === 'REMOVED',
    );
    expect(misplaced).toEqual([]);
    expect(entries.filter(({ author }) => author === rex.id).length).toBeGreaterThan(20);
    const positions = entries.map(({ thread_seq }) => thread_seq);
    expect(positions).toEqual([...positions].sort((one, other) => one - other));
  }, 60_000);
});

describe('a change of membership', () => {
  test('that is rolled back after its fence was raised stops nobody', async () => {
    const scene = await newScene();
    const { ada, rex } = scene.people;
    await append(scene, ada.id, 'first');
    const { pad, grant } = await grantOf(scene, ada.id);
    // As a process that dies between the two leaves it.
    await writer.padUpkeep.plane.raise(pad, grant.threadSeq + 1);
    expect((await append(scene, rex.id, 'second')).entry).toMatchObject({
      seq: 2,
      threadSeq: grant.threadSeq,
    });
    expect((await append(scene, ada.id, 'third')).entry).toMatchObject({
      seq: 3,
      threadSeq: grant.threadSeq,
    });
  });

  test('does not wait for a Redis that hangs; its fence is raised as soon as it answers', async () => {
    const scene = await newScene();
    const { ada, rex } = scene.people;
    await append(scene, ada.id, 'first');
    const before = await grantOf(scene, rex.id);
    server.pause();
    const began = performance.now();
    try {
      await change(scene, 'REMOVED');
      expect(performance.now() - began).toBeLessThan(1_200);
      expect(await fencesWaiting()).toBe(1);
    } finally {
      server.resume();
    }
    await until(async () => (await fencesWaiting()) === 0);
    const outcome = await writer.padUpkeep.plane.append(before.pad, before.grant, by(rex.id), {
      contents: ['late'],
      key: null,
    });
    expect(outcome).toMatchObject({ kind: 'FENCED' });
    await expect(append(scene, rex.id, 'later')).rejects.toMatchObject({ code: 'PARTICIPANT_NOT_ACTIVE' });
  });

  test('is committed while Redis is away, and another process raises its fence when it is back', async () => {
    const scene = await newScene();
    const { ada, rex } = scene.people;
    await append(scene, ada.id, 'first');
    const before = await grantOf(scene, rex.id);
    await server.kill9();
    await until(() => Promise.resolve(held.status !== 'ready'));
    const began = performance.now();
    await change(scene, 'REMOVED');
    expect(performance.now() - began).toBeLessThan(1_200);
    await server.restart();
    await until(async () => (await fencesWaiting()) === 0);
    await until(() => Promise.resolve(held.status === 'ready'));
    const outcome = await writer.padUpkeep.plane.append(before.pad, before.grant, by(rex.id), {
      contents: ['late'],
      key: null,
    });
    expect(outcome).toMatchObject({ kind: 'FENCED' });
  });

  test('of a thread without a pad never asks Redis', async () => {
    const world = await createWorld(changer.services, `w${randomUUID().slice(0, 8)}`);
    await changer.services.scratchpads.delete(world.owner, world);
    server.pause();
    try {
      // Each would wait for 400 ms.
      const took: number[] = [];
      for (const state of ['ACTIVE', 'REMOVED', 'ACTIVE', 'REMOVED'] as const) {
        const began = performance.now();
        await change(world, state);
        took.push(performance.now() - began);
      }
      expect(Math.min(...took)).toBeLessThan(300);
    } finally {
      server.resume();
    }
  });
});

describe('authorisation', () => {
  test('is one statement for all who ask in the same turn, and another for the next', async () => {
    const scene = await newScene();
    const { people, userId: ownerId, scratchpadId, threadId } = scene;
    const stranger = await newScene();
    const { padAccess } = writer.services;
    const asked = [
      { ownerId, scratchpadId, participantId: null },
      { ownerId, scratchpadId, participantId: people.ada.id },
      { ownerId, threadId, participantId: people.ada.id },
      { ownerId, scratchpadId, participantId: people.nora.id },
      { ownerId, scratchpadId, participantId: stranger.people.ada.id },
      { ownerId: stranger.userId, scratchpadId, participantId: null },
      { ownerId: stranger.userId, scratchpadId: stranger.scratchpadId, participantId: null },
    ];
    const found = await Promise.all(asked.map((wanted) => padAccess.grant(wanted)));
    expect(found.map((access) => access && [access.pad.scratchpadId, access.state])).toEqual([
      [scratchpadId, null],
      [scratchpadId, 'ACTIVE'],
      [scratchpadId, 'ACTIVE'],
      null,
      null,
      null,
      [stranger.scratchpadId, null],
    ]);
    const [one, same] = await Promise.all([1, 2].map(() => grantOf(scene, people.ada.id)));
    expect(same).toBe(one);
    const seq = await change(scene, 'REMOVED');
    expect(await grantOf(scene, people.rex.id)).toMatchObject({
      state: 'REMOVED',
      grant: { threadSeq: seq },
    });
  });

  test('that is to be settled waits for a change that is under way, and sees what became of it', async () => {
    for (const end of ['COMMIT', 'ROLLBACK'] as const) {
      const scene = await newScene();
      const { userId: ownerId, threadId, scratchpadId, people, owner } = scene;
      const participantId = people.rex.id;
      const { grant: before } = await grantOf(scene, participantId);
      const holder = new pg.Client({ connectionString: db.url });
      await holder.connect();
      try {
        await holder.query('BEGIN');
        const ids = [newId('Event'), newId('Audit'), owner.credentialId];
        await holder.query(`SELECT change_state($1, $2, NULL, $3, 'REMOVED', NULL, $4, $5, $6)`, [
          ownerId,
          threadId,
          participantId,
          ...ids,
        ]);
        const { padAccess } = writer.services;
        const settled = Array.from({ length: 8 }, () =>
          padAccess.settled({ ownerId, scratchpadId, threadId, participantId }, 'a mark'),
        );
        const look = padAccess.settledLook({ ownerId, threadId, viewerId: participantId });
        // Of the nine only one waits in the database, and none of them has answered.
        await until(async () => (await waitingIn(holder)) === 1);
        const isOpen = await Promise.race([Promise.any([...settled, look]).then(() => false), pause(100)]);
        expect(isOpen).toBe(true);
        await holder.query(end);
        const state = end === 'COMMIT' ? 'REMOVED' : 'ACTIVE';
        const threadSeq = before.threadSeq + (end === 'COMMIT' ? 1 : 0);
        for (const access of await Promise.all(settled))
          expect(access).toMatchObject({ state, grant: { threadSeq, settles: 'a mark' } });
        expect(await look).toMatchObject({ lastSeq: threadSeq, member: { state } });
      } finally {
        await holder.end();
      }
    }
  });
});

const pause = (milliseconds: number): Promise<true> =>
  new Promise((resolve) => setTimeout(() => resolve(true), milliseconds));

const waitingIn = async (client: pg.Client): Promise<number> => {
  const { rows } = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows[0]?.count ?? -1;
};
