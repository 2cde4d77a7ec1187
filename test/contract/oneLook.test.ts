import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readMembers } from '../../src/threads/members.ts';
import { type Look, readLooks } from '../../src/timeline/look.ts';
import { createApi } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { bearer } from '../support/identity.ts';
import { createWorld, type Name, type World } from '../support/world.ts';

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let world: World;
let threadId: string;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  world = await createWorld(api.services, 'look');
  const { ada, scout, rex, nora } = world.people;
  ({ threadId } = await api.services.threads.open(world.owner, {
    participantIds: [ada.id, scout.id, rex.id, nora.id],
  }));
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const lookOf = async (name: Name): Promise<Look> => {
  const wanted = { ownerId: world.userId, threadId, viewerId: world.people[name].id };
  const [answer] = await readLooks(db.database, [wanted]);
  if (!answer) throw new Error('No look.');
  return answer.look;
};
const sinceOf = async (look: Look, name: Name): Promise<string | undefined> => {
  const [members = []] = await readMembers(db.database, [look]);
  return members.find(({ participantId }) => participantId === world.people[name].id)?.since;
};
const change = async (name: Name, to: 'ACTIVE' | 'REMOVED'): Promise<string> => {
  const input = { threadId, participantId: world.people[name].id };
  return (await api.services.threads.changeState(world.owner, input, to)).event.at;
};

describe('since', () => {
  test('is as of the look: what came after it is not told, also where the viewer was removed before it', async () => {
    const before = await lookOf('ada');
    const opened = await sinceOf(before, 'scout');
    const leaving = await change('scout', 'REMOVED');
    const seen = await lookOf('ada');
    await change('ada', 'REMOVED');
    await change('scout', 'ACTIVE');
    expect(await sinceOf(before, 'scout')).toBe(opened);
    expect(await sinceOf(seen, 'scout')).toBe(leaving);
    expect(await sinceOf(await lookOf('ada'), 'scout')).toBe(leaving);
  });

  test('is the last change in one of the windows of a removed viewer, however often others came and went', async () => {
    // ada is away; what happens now it never sees.
    for (let round = 0; round < 3; round += 1) {
      await change('rex', 'REMOVED');
      await change('rex', 'ACTIVE');
    }
    await change('ada', 'ACTIVE');
    const last = await change('nora', 'REMOVED');
    const own = await change('ada', 'REMOVED');
    await change('nora', 'ACTIVE');
    const look = await lookOf('ada');
    const [members = []] = await readMembers(db.database, [look]);
    const opened = look.createdAt.slice(0, 19);
    expect((await sinceOf(look, 'rex'))?.slice(0, 19)).toBe(opened);
    expect(await sinceOf(look, 'nora')).toBe(last);
    expect(await sinceOf(look, 'ada')).toBe(own);
    expect(members.map(({ state }) => state).sort()).toEqual(['ACTIVE', 'ACTIVE', 'ACTIVE', 'REMOVED']);
  });
});

test('a thread that is looked at before the list is read has one end in both', async () => {
  const { people } = world;
  const { threadId: other } = await api.services.threads.open(world.owner, {
    participantIds: [people.ada.id, people.nora.id],
  });
  const { database } = db;
  let posted = false;
  /** Between the two statements of the operation somebody speaks. */
  const interrupted = {
    ...database,
    query: async (...[statement, values]: Parameters<typeof database.query>) => {
      if (statement.name.startsWith('threads_of') && !posted) {
        posted = true;
        await api.services.timeline.post(world.owner, {
          threadId: other,
          as: people.nora.id,
          content: 'Now.',
        });
      }
      return database.query(statement, values);
    },
  } as typeof database;
  const second = createApi(interrupted);
  try {
    const query = /* GraphQL */ `query ($id: ID!) {
      thread(id: $id) { id timeline { end } }
      threads { nodes { id timeline { end } } }
    }`;
    const { data, errors } = await second.run(bearer(people.ada.token), query, { id: other });
    expect(errors).toBeUndefined();
    expect(posted).toBe(true);
    const answer = data as {
      readonly thread: { readonly id: string };
      readonly threads: { readonly nodes: readonly { readonly id: string }[] };
    };
    expect(answer.threads.nodes.find(({ id }) => id === other)).toEqual(answer.thread);
  } finally {
    await second.close();
  }
});
