import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DomainError } from '../../../src/shared/errors.ts';
import { newId } from '../../../src/shared/ids.ts';
import type { PageArgs } from '../../../src/shared/paging.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { ADMIN } from '../../support/identity.ts';
import { found, type Question, type Remembered, recalled, type Said } from './model.ts';

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

/** Whole words; and of scripts without spaces characters and pairs, since a longer word may be met where its pairs stand apart. */
const WORDS = ['red', 'green', 'blue', '数据', '迁移', '移', '会議', 'ที่', 'กา', '고양'] as const;
/** Who is in which thread: agents 0 and 1, a unit 2. */
const SETS = [
  [0, 1],
  [0, 1, 2],
  [0, 2],
] as const;

const agents = fc.nat(2);
const threads = fc.nat(SETS.length - 1);
const words = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 4 });
const payload = fc.record({
  note: words.map((some) => some.join(' ')),
  list: fc.array(
    fc.record({ text: words.map((some) => some.join('，')), n: fc.nat(2) }, { requiredKeys: ['n'] }),
    {
      maxLength: 2,
    },
  ),
  done: fc.boolean(),
});
const match = fc.oneof(
  fc.constant(null),
  fc.constant({}),
  fc.record({ done: fc.boolean() }),
  fc.record({ list: fc.array(fc.record({ n: fc.nat(2) }), { minLength: 1, maxLength: 2 }) }),
);
const question = fc.record({ words: fc.oneof(fc.constant([]), words), match });

const act = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      kind: fc.constant('store' as const),
      agent: agents,
      thread: fc.option(threads, { nil: null, freq: 4 }),
      payload,
    }),
  },
  {
    weight: 25,
    arbitrary: fc.record({ kind: fc.constant('post' as const), agent: agents, thread: threads, words }),
  },
  {
    weight: 10,
    arbitrary: fc.record({ kind: fc.constant('change' as const), agent: agents, thread: threads }),
  },
  {
    weight: 10,
    arbitrary: fc.record({ kind: fc.constant('policy' as const), thread: threads, only: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), thread: threads }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clone' as const), agent: agents }) },
  {
    weight: 20,
    arbitrary: fc.record({
      kind: fc.constant('recall' as const),
      agent: agents,
      thread: threads,
      question,
      size: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      kind: fc.constant('search' as const),
      viewer: fc.option(agents, { nil: null }),
      thread: fc.option(threads, { nil: null }),
      words,
      size: fc.integer({ min: 1, max: 4 }),
    }),
  },
);
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

interface Listed {
  readonly edges: readonly { readonly cursor: string; readonly node: { readonly id: string } }[];
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly endCursor: string | null;
    readonly startCursor: string | null;
  };
}

/** All at once, and the same page by page in both directions. */
const readAll = async (read: (args: PageArgs) => Promise<Listed>, size: number): Promise<string[]> => {
  const whole = await read({ first: 200 });
  expect(whole.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: false });
  const ids = whole.edges.map(({ node }) => node.id);
  const there: string[] = [];
  for (let after: string | null = null; ; ) {
    const { edges, pageInfo } = await read({ first: size, after });
    there.push(...edges.map(({ node }) => node.id));
    expect(pageInfo.hasPreviousPage).toBe(after !== null && ids.length > 0);
    if (!pageInfo.hasNextPage) break;
    after = pageInfo.endCursor;
  }
  const back: string[] = [];
  for (let before: string | null = null; ; ) {
    const { edges, pageInfo } = await read({ last: size, before });
    back.unshift(...edges.map(({ node }) => node.id));
    expect(pageInfo.hasNextPage).toBe(before !== null && ids.length > 0);
    if (!pageInfo.hasPreviousPage) break;
    before = pageInfo.startCursor;
  }
  expect(there).toEqual(ids);
  expect(back).toEqual(ids);
  return ids;
};

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return 'OK';
  } catch (error) {
    if (error instanceof DomainError) return error.code;
    throw error;
  }
};

const createRoom = async () => {
  const { services } = api;
  const { user, credential } = await services.users.create(ADMIN, { name: newId('User') });
  const owner = { kind: 'API_KEY', userId: user.id, credentialId: credential.id, actAs: null } as const;
  const people = await Promise.all(
    (['AGENT', 'AGENT', 'UNIT'] as const).map((kind, index) =>
      services.participants.create(owner, { kind, handle: `p${index}` }),
    ),
  );
  const ids = people.map(({ id }) => id);
  const idOf = (index: number): string => ids[index] ?? '';
  const rooms = await Promise.all(
    SETS.map((set) => services.threads.open(owner, { participantIds: set.map(idOf) })),
  );
  const threadIds = rooms.map(({ threadId }) => threadId);
  return { services, owner, idOf, threadOf: (index: number): string => threadIds[index] ?? '' };
};

const play = async (acts: readonly Act[]): Promise<void> => {
  const { services, owner, idOf, threadOf } = await createRoom();
  const entries: Remembered[] = [];
  let messages: Said[] = [];
  const active = SETS.map((set) => new Set<number>(set));
  const policies = SETS.map(() => true);
  const deleted = new Set<number>();
  const isIn = (agent: number, thread: number): boolean =>
    !deleted.has(thread) && (SETS[thread] as readonly number[]).includes(agent);

  /** Whether one may act there, and what the answer is if not. */
  const answerTo = (agent: number, thread: number): string => {
    if (!isIn(agent, thread)) return 'NOT_FOUND';
    return active[thread]?.has(agent) ? 'OK' : 'PARTICIPANT_NOT_ACTIVE';
  };

  for (const one of acts) {
    switch (one.kind) {
      case 'store': {
        const { agent, thread, payload } = one;
        const storing = services.memories.store(owner, {
          as: idOf(agent),
          payload,
          ...(thread === null ? {} : { threadId: threadOf(thread) }),
        });
        const expected = thread === null ? 'OK' : answerTo(agent, thread);
        expect(await codeOf(storing)).toBe(expected);
        if (expected !== 'OK') break;
        const { entry } = await storing;
        const only = thread === null ? null : (policies[thread] ?? true);
        expect(entry).toMatchObject({
          threadId: thread === null ? null : threadOf(thread),
          threadOnly: only,
        });
        entries.push({ id: entry.id, agent, thread, only, payload });
        break;
      }
      case 'post': {
        const { agent, thread, words } = one;
        const text = words.join(' ');
        const posting = services.timeline.post(owner, {
          threadId: threadOf(thread),
          as: idOf(agent),
          content: text,
        });
        const expected = answerTo(agent, thread);
        expect(await codeOf(posting)).toBe(expected);
        if (expected !== 'OK') break;
        const { event } = await posting;
        messages.push({ id: event.id, thread, text, seenBy: new Set(active[thread]) });
        break;
      }
      case 'change': {
        const { agent, thread } = one;
        if (!isIn(agent, thread)) break;
        const there = active[thread];
        const to = there?.has(agent) ? 'REMOVED' : 'ACTIVE';
        const input = { threadId: threadOf(thread), participantId: idOf(agent) };
        await services.threads.changeState(owner, input, to);
        if (to === 'ACTIVE') there?.add(agent);
        else there?.delete(agent);
        break;
      }
      case 'policy':
        if (deleted.has(one.thread)) break;
        await services.threads.setMemoryPolicy(owner, {
          threadId: threadOf(one.thread),
          threadOnly: one.only,
        });
        policies[one.thread] = one.only;
        break;
      case 'delete':
        if (deleted.has(one.thread)) break;
        await services.threads.delete(owner, { threadId: threadOf(one.thread) });
        deleted.add(one.thread);
        messages = messages.filter(({ thread }) => thread !== one.thread);
        break;
      case 'clone': {
        const { id } = await services.participants.clone(owner, {
          participantId: idOf(one.agent),
          handle: newId('Participant').toLowerCase(),
        });
        const list = async (participantId: string) => {
          const page = await services.memories.pageOf(owner, participantId, { first: 200 });
          return page?.edges.map(({ node: { id: _, participantId: __, ...rest } }) => rest);
        };
        expect(await list(id)).toEqual(await list(idOf(one.agent)));
        break;
      }
      case 'recall': {
        const { agent, thread, question, size } = one;
        await compareRecall(agent, thread, question, size);
        break;
      }
      case 'search': {
        const { viewer, thread, words, size } = one;
        const read = (args: PageArgs) =>
          services.search.messages(owner, {
            query: words.join(' '),
            as: viewer === null ? null : idOf(viewer),
            threadId: thread === null ? null : threadOf(thread),
            ...args,
          });
        const isHidden =
          thread !== null && (deleted.has(thread) || (viewer !== null && !isIn(viewer, thread)));
        if (isHidden) expect(await codeOf(read({}))).toBe('NOT_FOUND');
        else
          expect([...(await readAll(read, size))].sort()).toEqual(
            found(messages, viewer, thread, words)
              .map(({ id }) => id)
              .sort(),
          );
        break;
      }
      default:
        one satisfies never;
    }
  }

  async function compareRecall(agent: number, thread: number, { words, match }: Question, size: number) {
    const read = (args: PageArgs) =>
      services.memories.recall(owner, {
        as: idOf(agent),
        threadId: threadOf(thread),
        query: words.join(' '),
        ...(match === null ? {} : { match }),
        ...args,
      });
    if (!isIn(agent, thread)) {
      expect(await codeOf(read({}))).toBe('NOT_FOUND');
      return;
    }
    const ids = await readAll(read, size);
    const expected = recalled(entries, agent, thread, { words, match }).map(({ id }) => id);
    if (words.length === 0) expect(ids).toEqual(expected);
    else expect([...ids].sort()).toEqual([...expected].sort());
  }

  // By id, without a thread: what is recalled everywhere, and that for its agent alone.
  for (const viewer of [0, 1, 2]) {
    const loaders = services.createLoaders(owner);
    const seen = await Promise.all(
      entries.map(({ id }) => loaders.memory.load({ id, viewerId: idOf(viewer), threadId: null })),
    );
    expect(seen.flatMap((entry) => (entry === null ? [] : [entry.id]))).toEqual(
      entries.filter(({ agent, only }) => agent === viewer && only !== true).map(({ id }) => id),
    );
  }
};

const RUNS = Number(process.env.TEST_MEMORY_HISTORIES ?? 8);

test('recall and search answer as the plain models do, on generated histories', async () => {
  await fc.assert(fc.asyncProperty(fc.array(act, { minLength: 30, maxLength: 60, size: 'max' }), play), {
    numRuns: RUNS,
    interruptAfterTimeLimit: 60_000,
    endOnFailure: true,
  });
}, 120_000);
