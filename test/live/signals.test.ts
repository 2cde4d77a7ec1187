import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBuckets } from '../../src/signals/buckets.ts';
import { createTenant, startApp, type Tenant } from '../support/app.ts';
import { type Heard, subscribe } from '../support/subscribe.ts';

const FOLLOW = `subscription ($id: ID!) { signals(threadId: $id) { ended
  signal { kind clientKey offset text data participant { handle } run { id } } } }`;

interface Payload {
  signals: { ended: string | null; signal: { kind: string; text: string | null } | null };
}

let servers: readonly Awaited<ReturnType<typeof startApp>>[];
let tenant: Tenant;
const idOf = (handle: string): string => tenant.participants[handle]?.id ?? '';
const tokenOf = (handle: string): string => tenant.participants[handle]?.token ?? '';
const one: number = 0;
const other: number = 1;
const on = (index: number) => {
  const server = servers[index];
  if (server === undefined) throw new Error('There is no such server.');
  return server;
};

beforeAll(async () => {
  const first = await startApp();
  servers = [first, await startApp({ DATABASE_URL: first.stores.databaseUrl })];
  tenant = await createTenant(first, { ada: 'HUMAN', ben: 'HUMAN', cleo: 'AGENT', dora: 'AGENT' });
});
afterAll(async () => {
  for (const server of [...servers].reverse()) await server.close();
});

const ask = async <T>(token: string, source: string, variables: object, server = one): Promise<T> => {
  const { data, errors } = await on(server).graphql(token, source, { ...variables });
  if (errors) throw new Error(JSON.stringify(errors));
  return data as T;
};

const open = async (...handles: string[]): Promise<string> => {
  const { openThread } = await ask<{ openThread: { thread: { id: string } } }>(
    tenant.apiKey,
    'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
    { ids: handles.map(idOf) },
  );
  return openThread.thread.id;
};

const signal = (handle: string, threadId: string, input: object, server = one) =>
  ask(
    tokenOf(handle),
    'mutation ($input: SignalInput!) { signal(input: $input) { delivered } }',
    {
      input: { threadId, ...input },
    },
    server,
  );

const setState = (field: 'removeParticipant' | 'readdParticipant', handle: string, threadId: string) =>
  ask(tenant.apiKey, `mutation ($input: ParticipantStateInput!) { ${field}(input: $input) { cursor } }`, {
    input: { threadId, participantId: idOf(handle) },
  });

/** Its first payload says that it listens. */
const follow = async (handle: string, threadId: string, server: number): Promise<Heard<Payload>> => {
  const heard = subscribe<Payload>(on(server), tokenOf(handle), FOLLOW, { id: threadId });
  expect(await heard.until((payloads) => payloads.length > 0)).toEqual([
    { signals: { ended: null, signal: null } },
  ]);
  return heard;
};

const textsOf = (payloads: readonly Payload[]): (string | null)[] =>
  payloads.flatMap(({ signals }) => (signals.signal === null ? [] : [signals.signal.text]));

test('reach the members of the thread on another process, as they were sent', async () => {
  const threadId = await open('ada', 'ben');
  await using heard = await follow('ben', threadId, other);
  const sent = { kind: 'token', clientKey: 'answer-1', offset: 7, text: 'lo wo', data: { model: 'x' } };
  expect(await signal('ada', threadId, sent)).toEqual({ signal: { delivered: true } });
  const payloads = await heard.until((some) => textsOf(some).length > 0);
  expect(payloads.at(-1)?.signals).toEqual({
    ended: null,
    signal: { ...sent, participant: { handle: 'ada' }, run: null },
  });
});

test('go through the viewer’s window: nothing of the gap, and all that follows the return', async () => {
  const threadId = await open('ada', 'ben', 'cleo');
  await using ben = await follow('ben', threadId, other);
  await using cleo = await follow('cleo', threadId, one);
  await signal('ada', threadId, { kind: 'x', text: 'before' });
  await ben.until((some) => textsOf(some).includes('before'));
  await setState('removeParticipant', 'ben', threadId);
  await signal('ada', threadId, { kind: 'x', text: 'gap' });
  await cleo.until((some) => textsOf(some).includes('gap'));
  await expect(signal('ben', threadId, { kind: 'x' })).rejects.toThrow('PARTICIPANT_NOT_ACTIVE');
  await setState('readdParticipant', 'ben', threadId);
  await signal('ada', threadId, { kind: 'x', text: 'after' });
  expect(textsOf(await ben.until((some) => textsOf(some).includes('after')))).toEqual(['before', 'after']);
});

test('end with the thread', async () => {
  const threadId = await open('ada', 'dora');
  await using heard = await follow('dora', threadId, other);
  await ask(tenant.apiKey, 'mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedId } }', {
    id: threadId,
  });
  const payloads = await heard.until((some) => some.at(-1)?.signals.ended !== null);
  expect(payloads.at(-1)?.signals).toEqual({ ended: 'THREAD_DELETED', signal: null });
});

test('who is not in the thread sends and hears nothing', async () => {
  const threadId = await open('ada', 'cleo');
  await expect(signal('dora', threadId, { kind: 'typing' })).rejects.toThrow('NOT_FOUND');
  const heard = subscribe<Payload>(on(one), tokenOf('dora'), FOLLOW, { id: threadId });
  await expect(heard.until(() => false)).rejects.toThrow('NOT_FOUND');
  await heard[Symbol.asyncDispose]();
});

test('too many are refused, and say when to come back', () => {
  let now = 0;
  const buckets = createBuckets({ perSecond: 10, burst: 3 }, () => now);
  expect([1, 2, 3, 4].map(() => buckets.take('a'))).toEqual([0, 0, 0, 100]);
  expect(buckets.take('b')).toBe(0);
  now += 100;
  expect([buckets.take('a'), buckets.take('a')]).toEqual([0, 100]);
});

test('whoever follows something is there; whoever says so works', async () => {
  const threadId = await open('ben', 'cleo');
  const activities = async (handle: string, server: number): Promise<Record<string, string | null>> => {
    const { thread } = await ask<{
      thread: { participants: { activity: string | null; participant: { handle: string } }[] };
    }>(
      tokenOf(handle),
      'query ($id: ID!) { thread(id: $id) { participants { activity participant { handle } } } }',
      { id: threadId },
      server,
    );
    return Object.fromEntries(
      thread.participants.map(({ activity, participant }) => [participant.handle, activity]),
    );
  };
  const settled = async (expected: object): Promise<void> => {
    await expect.poll(() => activities('ben', one), { timeout: 5_000 }).toEqual(expected);
  };
  await settled({ ben: 'OFFLINE', cleo: 'OFFLINE' });
  {
    const timeline = 'subscription ($id: ID!) { timeline(threadId: $id) { cursor } }';
    await using stream = subscribe<object>(on(other), tokenOf('cleo'), timeline, { id: threadId });
    await stream.until((some) => some.length > 0);
    await settled({ ben: 'OFFLINE', cleo: 'IDLE' });
    await signal('cleo', threadId, { kind: 'working' });
    await settled({ ben: 'OFFLINE', cleo: 'WORKING' });
  }
  await settled({ ben: 'OFFLINE', cleo: 'OFFLINE' });
  await setState('removeParticipant', 'ben', threadId);
  expect(await activities('ben', other)).toEqual({ ben: null, cleo: null });
});

test('nobody is there, or works, by what another tenant says of them', async () => {
  const threadId = await open('ada', 'ben', 'dora');
  const stranger = await createTenant(on(one), { eve: 'AGENT' });
  const seen = async (): Promise<(string | null)[]> => {
    const { thread } = await ask<{ thread: { participants: { activity: string | null }[] } }>(
      tokenOf('ada'),
      'query ($id: ID!) { thread(id: $id) { participants { activity } } }',
      { id: threadId },
    );
    return thread.participants.map(({ activity }) => activity);
  };
  await expect.poll(seen, { timeout: 5_000 }).toEqual(['OFFLINE', 'OFFLINE', 'OFFLINE']);
  const theirs = idOf('dora');
  {
    const threads = 'subscription ($as: ID!) { threads(as: $as) { ended } }';
    await using stream = subscribe<object>(on(one), stranger.apiKey, threads, { as: theirs });
    await stream.until((some) => some.length > 0);
    expect(await seen()).toEqual(['OFFLINE', 'OFFLINE', 'OFFLINE']);
    const { redis } = on(one).services;
    expect((await redis.keys('*')).filter((key) => key.includes(theirs))).toEqual([]);
  }
  const working = 'mutation ($input: SignalInput!) { signal(input: $input) { delivered } }';
  const input = { threadId, as: theirs, kind: 'working' };
  await expect(ask(stranger.apiKey, working, { input })).rejects.toThrow('NOT_FOUND');
  await using stream = subscribe<object>(
    on(one),
    tokenOf('dora'),
    'subscription ($id: ID!) { timeline(threadId: $id) { cursor } }',
    { id: threadId },
  );
  await stream.until((some) => some.length > 0);
  expect((await seen()).toSorted()).toEqual(['IDLE', 'OFFLINE', 'OFFLINE']);
});

test('whoever was there on a server that stops is away at once', async () => {
  const threadId = await open('ada', 'ben', 'dora');
  const stopping = await startApp({ DATABASE_URL: on(one).stores.databaseUrl });
  const seen = async (): Promise<(string | null)[]> => {
    const { thread } = await ask<{ thread: { participants: { activity: string | null }[] } }>(
      tokenOf('ada'),
      'query ($id: ID!) { thread(id: $id) { participants { activity } } }',
      { id: threadId },
    );
    return thread.participants.map(({ activity }) => activity).toSorted();
  };
  await expect.poll(seen, { timeout: 5_000 }).toEqual(['OFFLINE', 'OFFLINE', 'OFFLINE']);
  // As of a stream that has not ended by then.
  stopping.services.presence.hold(tenant.userId, idOf('dora'));
  await expect.poll(seen, { timeout: 5_000 }).toEqual(['IDLE', 'OFFLINE', 'OFFLINE']);
  await stopping.close();
  expect(await seen()).toEqual(['OFFLINE', 'OFFLINE', 'OFFLINE']);
});
