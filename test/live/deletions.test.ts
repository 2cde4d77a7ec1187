import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Answer, type Server, startApp, startProcess } from '../support/app.ts';
import { type Proxy as Link, startProxy } from '../support/proxy.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { createWorld } from '../support/world.ts';

/** Threads are deleted `here`, and followed `there`, in another process, with and without its link to Redis. */
let here: Awaited<ReturnType<typeof startApp>>;
let there: Server;
let link: Link;
beforeAll(async () => {
  here = await startApp();
  link = await startProxy(inject('redisUrl').replace('unix://', ''));
  there = await startProcess({ ...here.stores, redisUrl: `unix://${link.path}` });
});
afterAll(async () => {
  await there.close();
  await here.close();
  await link[Symbol.asyncDispose]();
});

/** Asks for all that is read anew at each delivery. */
const WHOLE = `subscription($id: ID!) {
  timeline(threadId: $id) {
    cursor ended deletedThreadId
    event {
      seq
      thread { id updatedAt participantCount participants { state participant { handle } } lastMessage { content } timeline { end windows { after } events(last: 3) { nodes { seq } } } }
      ... on Message { content sender { handle } isRetracted retraction { reason } }
      ... on ParticipantStateChanged { member { state } }
    }
  }
}`;

interface Delivery {
  readonly cursor: string;
  readonly ended: string | null;
  readonly deletedThreadId: string | null;
  readonly event: { readonly seq: number } | null;
}

/** Every payload up to the end of the stream, as the client gets them. */
const followAll = async (token: string, threadId: string) => {
  const socket = await openRawSocket(there.socketUrl);
  await socket.init({ authorization: `Bearer ${token}` });
  socket.subscribe('all', WHOLE, { id: threadId });
  const first = await socket.nextOf('all');
  expect(first).toMatchObject({
    type: 'next',
    payload: { data: { timeline: { event: null, ended: null } } },
  });
  const rest = async (): Promise<Delivery[]> => {
    const deliveries: Delivery[] = [];
    for (;;) {
      const { type, payload } = await socket.nextOf('all');
      if (type === 'complete') return deliveries;
      const { data, errors } = payload as Answer<{ timeline: Delivery }>;
      expect(errors).toBeUndefined();
      if (data) deliveries.push(data.timeline);
    }
  };
  return { rest: rest(), close: socket.close };
};

describe.each(['with Redis', 'with the link to Redis cut'])('a thread that is deleted, %s', (state) => {
  beforeAll(() => {
    if (state !== 'with Redis') link.blackHole();
  });
  afterAll(() => {
    link.thaw();
    link.cut();
  });

  test('ends its followers’ streams with its id, the removed ones’ too, whatever was on its way', async () => {
    for (let round = 0; round < 4; round += 1) {
      const world = await createWorld(here.services, 'deleted');
      const { owner, threadId, people } = world;
      const tokens = [world.apiKey, people.ada.token, people.scout.token, people.rex.token];
      const followers = await Promise.all(tokens.map((token) => followAll(token, threadId)));
      for (let count = 0; count < 5 * round; count += 1)
        await here.services.timeline.post(owner, { threadId, as: people.ada.id, content: `${count}` });
      await here.services.threads.delete(owner, { threadId });
      const deletedAt = performance.now();
      for (const [index, { rest, close }] of followers.entries()) {
        const deliveries = await rest;
        const last = deliveries.at(-1);
        expect(last).toMatchObject({ ended: 'THREAD_DELETED', deletedThreadId: threadId, event: null });
        const seqs = deliveries.slice(0, -1).map(({ event }) => event?.seq);
        const [from = 0] = seqs;
        expect(seqs).toEqual(seqs.map((_, offset) => Number(from) + offset));
        if (tokens[index] === people.rex.token) expect(seqs).toEqual([]);
        // Where the reader stands is where its last event was.
        const reached = deliveries.at(-2);
        if (reached !== undefined) expect(last?.cursor).toBe(reached.cursor);
        await close();
      }
      expect(performance.now() - deletedAt).toBeLessThan(3_000);
    }
  });

  test('also one that was deleted at a console', async () => {
    const world = await createWorld(here.services, 'console');
    const followers = await Promise.all(
      [world.people.ada.token, world.people.rex.token].map((token) => followAll(token, world.threadId)),
    );
    await here.services.database.query({ name: 'by_hand', text: 'DELETE FROM threads WHERE id = $1' }, [
      world.threadId,
    ]);
    for (const { rest, close } of followers) {
      expect(await rest).toMatchObject([{ ended: 'THREAD_DELETED', deletedThreadId: world.threadId }]);
      await close();
    }
  });

  test('is told to those who follow their lists, the removed too, and to nobody else', async () => {
    const world = await createWorld(here.services, 'lists');
    const { owner, threadId, people } = world;
    const query = 'subscription { threads { deletedThreadId ended thread { id } } }';
    const open = async (token: string) => {
      const socket = await openRawSocket(there.socketUrl);
      await socket.init({ authorization: `Bearer ${token}` });
      socket.subscribe('list', query);
      await socket.nextOf('list', 'next');
      return socket;
    };
    const [member, removed, nobody] = [
      await open(people.ada.token),
      await open(people.rex.token),
      await open(people.nora.token),
    ];
    await here.services.threads.delete(owner, { threadId });
    /** What was said just before may be told first. */
    const deletion = async ({ nextOf }: typeof member): Promise<unknown> => {
      for (;;) {
        const { payload } = await nextOf('list', 'next');
        const { threads } = (payload as { data: { threads: { deletedThreadId: string | null } } }).data;
        if (threads.deletedThreadId !== null) return threads;
      }
    };
    if (state === 'with Redis')
      for (const socket of [member, removed])
        expect(await deletion(socket)).toEqual({ deletedThreadId: threadId, ended: null, thread: null });
    expect(nobody.messages.filter(({ type }) => type === 'next')).toHaveLength(1);
    for (const socket of [member, removed, nobody]) await socket.close();
  });
});
