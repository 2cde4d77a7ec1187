import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StoreInput } from '../../../src/memory/memories.ts';
import { newId } from '../../../src/shared/ids.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';
import { createWorld, type World } from '../../support/world.ts';

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let world: World;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  world = await createWorld(api.services, 'recall');
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const newAgent = async (): Promise<string> =>
  (await api.services.participants.create(world.owner, { kind: 'AGENT', handle: newId('Participant') })).id;

/** A thread of a new agent with ada. */
const newThread = async (agent: string): Promise<string> => {
  const other = await newAgent();
  const { threadId } = await api.services.threads.open(world.owner, { participantIds: [agent, other] });
  return threadId;
};

const store = async (as: string, payload: StoreInput['payload'], more: Partial<StoreInput> = {}) =>
  (await api.services.memories.store(world.owner, { as, payload, ...more })).entry;

const recall = async (as: string, threadId: string, more: object = {}) => {
  const { edges, pageInfo } = await api.services.memories.recall(world.owner, { as, threadId, ...more });
  return { payloads: edges.map(({ node }) => node.payload), pageInfo };
};

describe('words', () => {
  const TEXTS = {
    english: 'The deployments of Ada’s service run at midnight.',
    german: 'Die Straße zum Café ist gesperrt.',
    chinese: '我们决定把数据库迁移到新的服务器。',
    japanese: '来週の会議は東京で行います。ｶﾀｶﾅも',
    korean: '내일 서울에서 만나요',
    thai: 'วันนี้เราจะประชุมที่กรุงเทพมหานคร',
    lao: 'ພາສາລາວ',
    khmer: 'ភាសាខ្មែរ',
    russian: 'Ключ лежит под ковриком',
    arabic: 'المفتاح تحت السجادة، غدا',
    greek: 'Η ΑΘΗΝΑ είναι μεγάλη',
    code: 'call foo_bar(baz) in src/main.ts at v1.2.3',
  } as const;
  let agent: string;
  let threadId: string;
  beforeAll(async () => {
    agent = await newAgent();
    threadId = await newThread(agent);
    for (const [language, text] of Object.entries(TEXTS))
      await store(agent, { language, inside: [{ text }] }, { threadId });
  });

  test.each([
    ['deployment', 'english'],
    ['ADA midnight', 'english'],
    ['when does the deployment run', null],
    ['strasse', null],
    ['straße', 'german'],
    ['cafe', 'german'],
    ['数据库', 'chinese'],
    ['服务器 迁移', 'chinese'],
    ['库', 'chinese'],
    ['東京', 'japanese'],
    ['会議は東京', 'japanese'],
    ['カタカナ', 'japanese'],
    ['서울', 'korean'],
    ['กรุงเทพ', 'thai'],
    ['ประชุม', 'thai'],
    ['ລາວ', 'lao'],
    ['ខ្មែរ', 'khmer'],
    ['ключ', 'russian'],
    ['السجادة', 'arabic'],
    ['غدا', 'arabic'],
    ['αθηνα', 'greek'],
    ['foo_bar', 'code'],
    ['main.ts', 'code'],
  ] as const)('%s', async (query, language) => {
    const { payloads } = await recall(agent, threadId, { query });
    const found = payloads.map((payload) => (payload as { language: string }).language);
    if (language === null) expect(found.slice(0, 1)).toEqual(query === 'strasse' ? [] : ['english']);
    else expect(found).toEqual([language]);
  });
});

describe('an entry', () => {
  test('is the same again with its key, whatever changed meanwhile, and another with another input', async () => {
    const agent = await newAgent();
    const threadId = await newThread(agent);
    const more = { threadId, idempotencyKey: 'k' };
    const first = await store(agent, { a: 1, b: [2] }, more);
    await api.services.threads.setMemoryPolicy(world.owner, { threadId, threadOnly: false });
    await api.services.threads.changeState(world.owner, { threadId, participantId: agent }, 'REMOVED');
    expect(await store(agent, { b: [2], a: 1 }, more)).toEqual(first);
    expect(first).toMatchObject({ threadOnly: true, threadId, threadSeq: 1 });
    await expect(store(agent, { a: 2 }, more)).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    await expect(store(agent, { a: 2 }, { threadId })).rejects.toMatchObject({
      code: 'PARTICIPANT_NOT_ACTIVE',
    });
    expect((await recall(agent, threadId)).payloads).toEqual([{ a: 1, b: [2] }]);
  });

  test('is an agent’s or a unit’s, never a person’s', async () => {
    const { ada, lil } = world.people;
    await expect(store(ada.id, 1)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(store(newId('Participant'), 1)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await store(lil.id, 'a text alone')).toMatchObject({ payload: 'a text alone', threadOnly: null });
    const token = {
      kind: 'PARTICIPANT_TOKEN',
      userId: world.userId,
      credentialId: lil.credentialId,
      participantId: lil.id,
    } as const;
    await expect(api.services.memories.store(token, { payload: 1 })).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
    });
  });

  test('names only what its agent may see, also among its own memories', async () => {
    const [agent, stranger] = [await newAgent(), await newAgent()];
    const [here, there] = [await newThread(agent), await newThread(agent)];
    const [local, known, foreign] = [
      await store(agent, 'here', { threadId: here }),
      await store(agent, 'everywhere'),
      await store(stranger, 'no'),
    ];
    const naming = (threadId: string, ...sourceIds: string[]) => store(agent, 'x', { threadId, sourceIds });
    expect((await naming(here, local.id, known.id)).sourceIds).toEqual([local.id, known.id]);
    expect((await naming(there, known.id)).sourceIds).toEqual([known.id]);
    for (const [threadId, id] of [
      [there, local.id],
      [here, foreign.id],
      [here, world.late.id],
    ] as const)
      await expect(naming(threadId, id)).rejects.toMatchObject({
        code: 'NOT_FOUND',
        facts: { field: 'sourceIds' },
      });
    const post = (threadId: string, id: string) =>
      api.services.timeline.post(world.owner, { threadId, as: agent, content: 'x', sourceIds: [id] });
    expect((await post(here, local.id)).event.sourceIds).toEqual([local.id]);
    await expect(post(there, local.id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test.each([
    ['numbers', Array.from({ length: 40_000 }, (_, i) => 10_000 + i), { match: [49_999] }],
    [
      'short words',
      Array.from({ length: 43_000 }, (_, i) => i.toString(36).padStart(3, 'z')),
      { query: 'zzz' },
    ],
    [
      'characters',
      String.fromCodePoint(...Array.from({ length: 87_000 }, (_, i) => 0x4e00 + ((i * 7_919) % 20_000))),
      { query: String.fromCodePoint(0x4e00, 0x4e00 + 7_919) },
    ],
    ['one word', 'x'.repeat(200_000), { query: 'x'.repeat(70) }],
    ['depth', JSON.parse(`${'{"a":'.repeat(31)}["deep"]${'}'.repeat(31)}`), { query: 'deep' }],
  ] as const)('of 256 KiB of %s is stored and found', async (_, payload, question) => {
    const agent = await newAgent();
    const threadId = await newThread(agent);
    await store(agent, payload, { threadId });
    expect((await recall(agent, threadId, question)).payloads).toHaveLength(1);
  });
});

test('a page is bounded by size too, and goes on from its cursor', async () => {
  const agent = await newAgent();
  const threadId = await newThread(agent);
  const text = 'word '.repeat(50_000);
  for (let n = 0; n < 6; n += 1) await store(agent, { n, text }, { threadId });
  for (const query of ['', 'word']) {
    const seen: number[] = [];
    let pages = 0;
    for (let after: string | null = null; ; pages += 1) {
      const { payloads, pageInfo } = await recall(agent, threadId, { query, after });
      seen.push(...payloads.map((payload) => (payload as { n: number }).n));
      if (!pageInfo.hasNextPage) break;
      after = pageInfo.endCursor;
    }
    expect(pages).toBe(1);
    expect(seen).toEqual([5, 4, 3, 2, 1, 0]);
  }
});

test('what is stored later moves no page of an earlier cursor', async () => {
  const agent = await newAgent();
  const threadId = await newThread(agent);
  for (let n = 0; n < 4; n += 1) await store(agent, { n, text: 'tea' }, { threadId });
  const first = await recall(agent, threadId, { query: 'tea', first: 2 });
  await store(agent, { n: 4, text: 'tea tea tea' }, { threadId });
  const rest = await recall(agent, threadId, { query: 'tea', after: first.pageInfo.endCursor });
  const numbers = [...first.payloads, ...rest.payloads].map((payload) => (payload as { n: number }).n);
  expect(numbers).toEqual([3, 2, 1, 0]);
  expect((await recall(agent, threadId, { query: 'tea' })).payloads[0]).toMatchObject({ n: 4 });
});

test('a cursor is good for what it was made for alone', async () => {
  const [agent, another] = [await newAgent(), await newAgent()];
  const { threadId } = await api.services.threads.open(world.owner, { participantIds: [agent, another] });
  const elsewhere = await newThread(agent);
  for (const as of [agent, another])
    for (const n of [1, 2]) await store(as, { n, text: 'tea and milk' }, { threadId });
  const match = { text: 'tea and milk' };
  const asked = { query: 'tea', match, first: 1 };
  const { pageInfo } = await recall(agent, threadId, asked);
  const after = pageInfo.endCursor;
  expect((await recall(agent, threadId, { ...asked, after })).payloads).toMatchObject([{ n: 1 }]);
  for (const [as, thread, more] of [
    [another, threadId, asked],
    [agent, elsewhere, asked],
    [agent, threadId, { ...asked, query: 'milk' }],
    [agent, threadId, { ...asked, query: null }],
    [agent, threadId, { ...asked, match: { n: 2 } }],
    [agent, threadId, { ...asked, match: null }],
  ] as const)
    for (const place of [{ after }, { before: after }])
      await expect(recall(as, thread, { ...more, ...place })).rejects.toMatchObject({
        code: 'INVALID_CURSOR',
      });

  for (const content of ['tea', 'tea and milk'])
    await api.services.timeline.post(world.owner, { threadId, as: agent, content });
  const search = (more: object) =>
    api.services.search.messages(world.owner, { query: 'tea', threadId, as: agent, first: 1, ...more });
  const found = await search({});
  const next = { after: found.pageInfo.endCursor };
  expect((await search(next)).edges).toHaveLength(1);
  for (const more of [{ query: 'milk' }, { threadId: null }, { as: another }, { as: null }])
    await expect(search({ ...more, ...next })).rejects.toMatchObject({ code: 'INVALID_CURSOR' });
});

test('a memory that is longer than a step of the walk is found to its end', async () => {
  const agent = await newAgent();
  const threadId = await newThread(agent);
  await store(agent, { text: 'first' }, { threadId });
  await db.database.query(
    {
      name: 'many_memories',
      text: `INSERT INTO memory_entries (owner_id, participant_id, number, id, "timestamp", scope, scope_no, payload, bytes, thread_id, thread_only, thread_seq, source_ids, words)
        SELECT $1, $2, i, $2 || i, now(), $3, i, p.payload, 50, $3, true, 1, '{}', tp_memory_words($2, $3, i, p.payload)
        FROM generate_series(2, 9000) i CROSS JOIN LATERAL (SELECT jsonb_build_object('n', i, 'text', CASE WHEN i % 1500 = 0 THEN 'rare' ELSE 'common' END) AS payload) p`,
    },
    [world.userId, agent, threadId],
  );
  await db.database.script(
    `UPDATE memory_heads SET last_number = 9000 WHERE participant_id = '${agent}'; UPDATE memory_scopes SET last_no = 9000 WHERE participant_id = '${agent}'`,
  );
  expect((await recall(agent, threadId, { query: 'first' })).payloads).toEqual([{ text: 'first' }]);
  const rare = await recall(agent, threadId, { query: 'rare' });
  expect(rare.payloads).toMatchObject([9000, 7500, 6000, 4500, 3000, 1500].map((n) => ({ n })));
  expect((await recall(agent, threadId, { match: { n: 2 } })).payloads).toHaveLength(1);
  const oldest = await recall(agent, threadId, { match: { text: 'rare' }, last: 2 });
  expect(oldest.payloads).toMatchObject([{ n: 3000 }, { n: 1500 }]);
  expect(oldest.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: true });
  // Of common words the newest 2,000 are ranked, and no more are there to be paged through.
  const last = await recall(agent, threadId, { query: 'common', last: 1 });
  expect(last.payloads).toMatchObject([{ n: 9000 - 2_001 }]);
});

describe('a clone', () => {
  /** Stored in one statement, so that there may be many. */
  const storeMany = (ownerId: string, agent: string, count: number, words: number) =>
    db.database.prisma.$executeRaw`
      SELECT store_memory(${ownerId}, ${agent}, NULL,
        'mem_' || substr(md5(${agent} || ${words}::text || g::text), 1, 26),
        jsonb_build_object('n', g, 'text', repeat('word ', ${words}::int)), ${5 * words}::int, '{}', true, NULL, NULL, NULL)
      FROM generate_series(1, ${count}::int) g`;
  const copy = async (
    ownerId: string,
    from: string,
    to: string,
    count: number,
  ): Promise<number | undefined> => {
    const ids = Array.from({ length: count }, () => newId('MemoryEntry'));
    const [row] = await db.database.prisma.$queryRaw<{ last: number }[]>`
      SELECT copy_memory(${ownerId}, ${from}, ${to}, 0, 100000, 200000, ${ids}::text[]) AS last`;
    return row?.last;
  };
  const all = async (agent: string) => {
    const entries: unknown[] = [];
    for (let after: string | null | undefined; after !== null; ) {
      const page = await api.services.memories.pageOf(world.owner, agent, {
        first: 200,
        after: after ?? null,
      });
      for (const { node } of page?.edges ?? []) {
        const { id: _, participantId: __, ...rest } = node;
        entries.push(rest);
      }
      after = page?.pageInfo.hasNextPage === true ? page.pageInfo.endCursor : null;
    }
    return entries;
  };

  test('has all of a memory of many and of large entries, copied in stretches that are bounded by both', async () => {
    const agent = await newAgent();
    const ownerId = world.owner.userId;
    await storeMany(ownerId, agent, 8, 12_000);
    await storeMany(ownerId, agent, 1_300, 4);
    const { id } = await api.services.participants.clone(world.owner, {
      participantId: agent,
      handle: newId('Participant'),
    });
    const [mine, its] = [await all(agent), await all(id)];
    expect(its).toHaveLength(1_308);
    expect(its).toEqual(mine);
    // 60,000 bytes each, of 200,000 at once; of fewer entries where there are fewer ids.
    expect(await copy(ownerId, agent, await newAgent(), 1_000)).toBe(3);
    expect(await copy(ownerId, agent, await newAgent(), 2)).toBe(2);
    const entry = await store(id, 'its own');
    expect(entry.number).toBe(1_309);
    expect(await all(agent)).toEqual(mine);
  });

  test('keeps nobody from deleting the user while it is made, and is not there then', async () => {
    const gone = await createWorld(api.services, 'gone');
    const { prisma } = db.database;
    const owned = { ownerId: gone.owner.userId };
    const source = await api.services.participants.create(gone.owner, { kind: 'AGENT', handle: 'source' });
    await storeMany(gone.owner.userId, source.id, 50, 4);
    const counts = async () => [
      await prisma.participant.count({ where: owned }),
      await prisma.memoryEntry.count({ where: owned }),
    ];
    const before = await counts();
    const clone = await prisma.$transaction(async (tx) => {
      await tx.user.update({ where: { id: gone.owner.userId }, data: { deletedAt: new Date() } });
      const cloning = api.services.participants.clone(gone.owner, {
        participantId: source.id,
        handle: 'clone',
      });
      const refused = expect(cloning).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
      // It copies, and then waits for what becomes of the user.
      await until(async () => {
        const [row] = await prisma.$queryRaw<{ waiting: bigint }[]>`
          SELECT count(*) AS waiting FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FROM users%FOR SHARE%'`;
        return Number(row?.waiting) > 0;
      });
      return { refused };
    });
    await clone.refused;
    expect(await counts()).toEqual(before);
  });
});
