import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { resumable, steady } from '../../src/client/index.ts';
import { lapse } from '../contract/inbox/world.ts';
import { createTenant, type Server, startApp, startProcess, type Tenant } from '../support/app.ts';
import { changeMember, contentsOf, type Given, inboxApi, openInbox, openThread } from '../support/inbox.ts';
import { startTcpProxy } from '../support/tcpProxy.ts';
import { until } from '../support/until.ts';

let server: Awaited<ReturnType<typeof startApp>>;
/** On the same stores; its leases are short, for what is about their end or their renewal. */
let brief: Server;
beforeAll(async () => {
  server = await startApp({ INBOX_LEASE_SECONDS: '60', INBOX_DIGEST_SECONDS: '1' });
  brief = await startProcess(server.stores, { INBOX_LEASE_SECONDS: '2' });
});
afterAll(async () => {
  await brief.close();
  await server.close();
});

const newTenant = (): Promise<Tenant> =>
  createTenant(server, { ann: 'HUMAN', bob: 'HUMAN', bot: 'AGENT', unit: 'UNIT' });
const apiOf = (tenant: Tenant, handle: string) => inboxApi(server, tenant.participants[handle]?.token ?? '');
const tokenOf = (tenant: Tenant, handle: string): string => tenant.participants[handle]?.token ?? '';
const messages = (given: readonly Given[]): Given[] => given.filter(({ channel }) => channel === 'MESSAGE');

/** The stream that has an agent’s main inbox. */
const holderOf = async (tenant: Tenant, handle: string): Promise<string | null> => {
  const { prisma } = server.services.database;
  const where = { participantId: tenant.participants[handle]?.id ?? '', runId: '' };
  return (await prisma.inbox.findFirst({ where }))?.holder ?? null;
};

describe('a pull', () => {
  test('takes one message of a thread at a time, in order, the next once it is acknowledged', async () => {
    const tenant = await newTenant();
    const [ann, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot')];
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    for (const content of ['one', 'two', 'three']) await ann.post({ threadId, content });
    await bot.post({ threadId, content: 'my own' });
    expect(await bot.peek(threadId)).toEqual({ count: 3, contents: ['one', 'two', 'three'] });

    const [first, ...others] = await bot.take({ max: 5 });
    expect(others).toEqual([]);
    expect(contentsOf(first ? [first] : [])).toEqual(['one']);
    expect(first).toMatchObject({ attempt: 1, pendingCount: 3, thread: { id: threadId } });
    expect(await bot.take({ max: 5 })).toEqual([]);

    expect(await bot.acknowledge({ threadId, deliveryId: first?.deliveryId })).toBe('OK');
    const [second] = await bot.take();
    expect(contentsOf(second ? [second] : [])).toEqual(['two']);
    // The answer to the first may have been lost: again, and it moves nothing.
    expect(await bot.acknowledge({ threadId, deliveryId: first?.deliveryId })).toBe('OK');
    expect(await bot.take()).toEqual([]);
    const answer = await bot.post({ threadId, content: 'done', deliveryId: second?.deliveryId });
    expect(answer.sources).toEqual(second?.events.map(({ id }) => id));
    const [third] = await bot.take();
    expect(third).toMatchObject({ pendingCount: 1 });
    expect(contentsOf(third ? [third] : [])).toEqual(['three']);
    expect(await bot.acknowledge({ threadId, upTo: third?.cursor })).toBe('OK');
    expect(await bot.take()).toEqual([]);
    expect(await bot.peek(threadId)).toEqual({ count: 0, contents: [] });
  });
});

describe('a stream', () => {
  test('is given messages of all its threads as they come, and told at once what concerns itself', async () => {
    const tenant = await newTenant();
    const [ann, bob, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bob'), apiOf(tenant, 'bot')];
    const one = await openThread(server, tenant, 'ann', 'bot');
    const other = await openThread(server, tenant, 'bob', 'bot');
    await using stream = openInbox(server, tokenOf(tenant, 'bot'));
    await ann.post({ threadId: one, content: 'first' });
    await stream.until((given) => messages(given).length === 1);
    const late = await ann.post({ threadId: one, content: 'second' });
    await bob.post({ threadId: other, content: 'elsewhere' });
    const given = await stream.until((all) => messages(all).length === 2);
    expect(contentsOf(given)).toEqual(['first', 'elsewhere']);
    await ann.retract(late.id);
    await stream.until((all) => all.some(({ notice }) => notice === 'MESSAGE_RETRACTED'));
    await ann.post({ threadId: one, content: 'third' });
    const [first] = messages(stream.given);
    await bot.acknowledge({ threadId: one, deliveryId: first?.deliveryId });
    const then = await stream.until((all) => messages(all).length === 3);
    expect(contentsOf(then)).toEqual(['first', 'elsewhere', 'third']);

    await changeMember(server, tenant, one, 'bot', 'removeParticipant');
    await stream.until((all) => all.some(({ notice }) => notice === 'REMOVED'));
    const third = messages(then).at(-1);
    expect(await bot.acknowledge({ threadId: one, deliveryId: third?.deliveryId })).toBe('CONFLICT');
    await ann.post({ threadId: one, content: 'unseen' });
    await changeMember(server, tenant, one, 'bot', 'readdParticipant');
    const back = await stream.until((all) => messages(all).length === 4);
    expect(contentsOf(back).at(-1)).toBe('third');
    expect(back.filter(({ channel }) => channel === 'CONTROL').map(({ notice }) => notice)).toEqual([
      'MESSAGE_RETRACTED',
      'REMOVED',
      'READDED',
    ]);
  });
});

describe('one of two streams', () => {
  test('has no cursor that a client could take for a place to resume from', async () => {
    const tenant = await newTenant();
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    const posted = await apiOf(tenant, 'ann').post({ threadId, content: 'first' });
    const url = new URL(server.url);
    url.search = new URLSearchParams({ query: 'subscription { inbox { channel cursor } }' }).toString();
    const stop = new AbortController();
    const { body } = await fetch(url, {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${tokenOf(tenant, 'bot')}` },
      signal: stop.signal,
    });
    let read = '';
    for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      read += text;
      if (read.includes('MESSAGE')) break;
    }
    stop.abort();
    const given = { data: { inbox: { channel: 'MESSAGE', cursor: posted.cursor } } };
    expect(read).toContain(`event: next\ndata: ${JSON.stringify(given)}\n\n`);
  });

  test('takes the inbox over: the first is told and ends, and what it has in hand stays its own', async () => {
    const tenant = await newTenant();
    const [ann, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot')];
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    await using former = openInbox(server, tokenOf(tenant, 'bot'));
    await ann.post({ threadId, content: 'one' });
    const [held] = messages(await former.until((given) => messages(given).length === 1));
    await using later = openInbox(server, tokenOf(tenant, 'bot'));
    const end = await former.until((given) => given.at(-1)?.ended !== null);
    expect(end.at(-1)).toMatchObject({ ended: 'TAKEN_OVER', notice: 'TAKEN_OVER', channel: 'CONTROL' });
    await ann.post({ threadId, content: 'two' });
    expect(await bot.acknowledge({ threadId, deliveryId: held?.deliveryId })).toBe('OK');
    expect(contentsOf(await later.until((given) => messages(given).length === 1))).toEqual(['two']);
  });

  test('in standby waits until nobody has the inbox, also where its process was killed', async () => {
    const tenant = await newTenant();
    const ann = apiOf(tenant, 'ann');
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    const former = openInbox(server, tokenOf(tenant, 'bot'));
    await ann.post({ threadId, content: 'one' });
    await former.until((given) => messages(given).length === 1);
    await using waiting = openInbox(server, tokenOf(tenant, 'bot'), { standby: true });
    await ann.post({ threadId: await openThread(server, tenant, 'bob', 'ann', 'bot'), content: 'other' });
    await former.until((given) => messages(given).length === 2);
    expect(waiting.given).toEqual([]);
    const before = await holderOf(tenant, 'bot');
    await former[Symbol.asyncDispose]();
    await until(async () => ![null, before].includes(await holderOf(tenant, 'bot')));
    // What the first had in hand comes again when its leases end.
    for (const { deliveryId } of messages(former.given))
      await lapse(server.services.database, deliveryId ?? '');
    const given = await waiting.until((all) => messages(all).length === 2);
    expect(contentsOf(given).sort()).toEqual(['one', 'other']);
    expect(messages(given).map(({ attempt }) => attempt)).toEqual([2, 2]);
  });
});

describe('a lease', () => {
  test('that runs out makes the delivery another one, and the former moves nothing', async () => {
    const tenant = await newTenant();
    const [ann, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot')];
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    await ann.post({ threadId, content: 'one' });
    const [first] = await bot.take();
    expect(await bot.extend(first?.deliveryId ?? '', 1)).toBe('OK');
    // It waits until the lease is over, and no longer.
    const [second] = await bot.take({ waitSeconds: 10 });
    expect(second).toMatchObject({ attempt: 2, events: [{ content: 'one' }] });
    expect(second?.deliveryId).not.toBe(first?.deliveryId);
    expect(await bot.acknowledge({ threadId, deliveryId: first?.deliveryId })).toBe('CONFLICT');
    await expect(bot.post({ threadId, content: 'late', deliveryId: first?.deliveryId })).rejects.toThrow(
      'CONFLICT',
    );
    expect((await bot.peek(threadId)).count).toBe(1);
    expect(await bot.extend(second?.deliveryId ?? '', 0)).toBe('OK');
    const [third] = await bot.take();
    expect(third).toMatchObject({ attempt: 3 });
    expect(await bot.acknowledge({ threadId, deliveryId: third?.deliveryId })).toBe('OK');
    // Answered, in vain or not, it stays answered.
    await expect(bot.post({ threadId, content: 'again', deliveryId: third?.deliveryId })).rejects.toThrow(
      'CONFLICT',
    );
  });

  test('is renewed while the stream that took it is open', async () => {
    const tenant = await newTenant();
    const ann = apiOf(tenant, 'ann');
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    await using stream = openInbox(brief, tokenOf(tenant, 'bot'));
    await ann.post({ threadId, content: 'one' });
    const [held] = messages(await stream.until((given) => messages(given).length === 1));
    const { database } = server.services;
    const leased = async (): Promise<number> => {
      const [row] = await database.query<{ ms: number }>(
        {
          name: 'test_leased',
          text: 'SELECT (extract(epoch FROM leased_until) * 1000)::float8 AS ms FROM inbox_threads WHERE delivery_id = $1',
        },
        [held?.deliveryId],
      );
      return row?.ms ?? 0;
    };
    const first = Date.parse(held?.leaseExpiresAt ?? '');
    // Beyond the end of the first lease, by the clock that leases go by.
    await until(async () => (await leased()) > first + 2_000);
    expect(messages(stream.given)).toHaveLength(1);
  });

  test('of a process that was killed runs out, and another hands out what it had', async () => {
    const tenant = await newTenant();
    const [ann, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot')];
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    const other = await startProcess(server.stores, { INBOX_LEASE_SECONDS: '2' });
    const stream = openInbox(other, tokenOf(tenant, 'bot'));
    await ann.post({ threadId, content: 'one' });
    const [held] = messages(await stream.until((given) => messages(given).length === 1));
    const waiting = openInbox(server, tokenOf(tenant, 'bot'), { standby: true });
    await other.kill9();
    await stream[Symbol.asyncDispose]();
    const [again] = await bot.take({ waitSeconds: 10 });
    expect(again).toMatchObject({ attempt: 2, events: [{ content: 'one' }] });
    expect(await bot.acknowledge({ threadId, deliveryId: held?.deliveryId })).toBe('CONFLICT');
    expect(await bot.acknowledge({ threadId, deliveryId: again?.deliveryId })).toBe('OK');
    await waiting[Symbol.asyncDispose]();
  });
});

describe('what is no delivery', () => {
  test('comes as a digest: others’ comings and goings, and messages that do not mention it if only those are asked for', async () => {
    const tenant = await newTenant();
    const [ann, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot')];
    const threadId = await openThread(server, tenant, 'ann', 'bob', 'bot');
    await using stream = openInbox(server, tokenOf(tenant, 'bot'), { onlyMentions: true, batch: 5 });
    await ann.post({ threadId, content: 'chatter' });
    await changeMember(server, tenant, threadId, 'bob', 'removeParticipant');
    await ann.post({ threadId, content: 'bot?', mentionIds: [tenant.participants.bot?.id] });
    await ann.post({ threadId, content: 'more chatter' });
    await bot.post({ threadId, content: 'my own' });
    const seen = (given: readonly Given[]): string[] =>
      given
        .filter(({ channel }) => channel === 'OBSERVATION')
        .flatMap(({ events }) => events.map((event) => event.content ?? event.__typename));
    const given = await stream.until((all) => seen(all).length >= 4 && messages(all).length === 1);
    expect(contentsOf(given)).toEqual(['bot?']);
    expect(seen(given)).toEqual(['SystemEvent', 'chatter', 'ParticipantStateChanged', 'more chatter']);
    const [mention] = messages(given);
    expect(await bot.acknowledge({ threadId, deliveryId: mention?.deliveryId })).toBe('OK');
    expect((await bot.peek(threadId)).contents).toEqual(['more chatter']);
    await stream[Symbol.asyncDispose]();

    // It goes on where it was: nothing is told twice, nothing is left out.
    await changeMember(server, tenant, threadId, 'bob', 'readdParticipant');
    await using next = openInbox(server, tokenOf(tenant, 'bot'));
    const then = await next.until((all) => seen(all).length > 0 && messages(all).length > 0);
    expect(seen(then)).toEqual(['ParticipantStateChanged']);
    expect(contentsOf(then)).toEqual(['more chatter']);
  });

  test('comes as a digest: what others make of the scratchpads of its threads, also of one that is made meanwhile', async () => {
    const tenant = await newTenant();
    const id = (handle: string): string => tenant.participants[handle]?.id ?? '';
    const owner = await server.services.authentication.authenticate({ apiKey: tenant.apiKey });
    const { scratchpads, scratchpadWriting } = server.services;
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    const later = await openThread(server, tenant, 'ann', 'bob', 'bot');
    const { scratchpadId } = (await scratchpads.create(owner, { threadId })).pad;
    const append = (pad: string, as: string, content: string) =>
      scratchpadWriting.append(owner, { scratchpadId: pad, as: id(as), content });
    await append(scratchpadId, 'ann', 'before the stream');
    await using stream = openInbox(server, tokenOf(tenant, 'bot'));
    const names = (given: readonly Given[]): string[] =>
      given.flatMap(({ changes }) => changes.map(({ __typename }) => __typename));
    await stream.until((given) => given.some(({ channel }) => channel === 'OBSERVATION'));
    await append(scratchpadId, 'bot', 'my own');
    await append(scratchpadId, 'ann', 'a finding');
    await scratchpadWriting.setContent(owner, { scratchpadId, as: id('ann'), text: 'a plan' });
    const other = (await scratchpads.create(owner, { threadId: later })).pad.scratchpadId;
    await append(other, 'bob', 'first');
    const given = await stream.until((all) => names(all).length >= 4);
    expect(names(given).sort()).toEqual([
      'ContentUpdated',
      'EntryAppended',
      'EntryAppended',
      'ScratchpadCreated',
    ]);
  });

  test('is the end of a thread, which is told at once', async () => {
    const tenant = await newTenant();
    const [ann, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot')];
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    await ann.post({ threadId, content: 'one' });
    const [held] = await bot.take();
    await server.graphql(
      tenant.apiKey,
      'mutation($id: ID!) { deleteThread(input: { threadId: $id }) { deletedId } }',
      { id: threadId },
    );
    const [told, ...others] = await bot.take({ waitSeconds: 5 });
    expect(told).toMatchObject({
      channel: 'CONTROL',
      notice: 'THREAD_DELETED',
      deletedThreadId: threadId,
      thread: null,
    });
    expect(others).toEqual([]);
    expect(await bot.take()).toEqual([]);
    expect(await bot.acknowledge({ threadId, deliveryId: held?.deliveryId })).toBe('NOT_FOUND');
  });
});

describe('a pull that waits', () => {
  test('is answered as soon as there is something, and holds no connection meanwhile', async () => {
    const tenant = await newTenant();
    const [ann, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot')];
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    // More of them than there are connections.
    const waiting = Array.from({ length: 40 }, () => bot.take({ waitSeconds: 20 }));
    const before = performance.now();
    await ann.post({ threadId, content: 'one' });
    const first = await Promise.race(waiting);
    expect(contentsOf(first)).toEqual(['one']);
    expect(performance.now() - before).toBeLessThan(5_000);
    // The credential ends: nobody of them is given anything any more.
    const { credentials } = server.services;
    const { data } = await server.graphql<{ viewer: { credential: { id: string } } }>(
      tokenOf(tenant, 'bot'),
      '{ viewer { credential { id } } }',
    );
    const owner = await server.services.authentication.authenticate({ apiKey: tenant.apiKey });
    await credentials.revoke(owner, { credentialId: data?.viewer.credential.id ?? '' });
    await ann.post({ threadId: await openThread(server, tenant, 'ann', 'bob', 'bot'), content: 'late' });
    const outcomes = await Promise.allSettled(waiting);
    const given = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
    expect(contentsOf(given)).toEqual(['one']);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(39);
  });

  test('is answered at once by a server that stops', async () => {
    const tenant = await newTenant();
    const other = await startProcess(server.stores);
    const bot = inboxApi(other, tokenOf(tenant, 'bot'));
    await openThread(server, tenant, 'ann', 'bot');
    await using stream = openInbox(other, tokenOf(tenant, 'unit'));
    const waiting = bot.take({ waitSeconds: 30 });
    await until(async () => {
      const [row] = await server.services.database.query<{ count: number }>(
        { name: 'test_inboxes', text: 'SELECT count(*)::int AS count FROM inboxes WHERE owner_id = $1' },
        [tenant.userId],
      );
      return row?.count === 2;
    });
    const before = performance.now();
    other.process.kill('SIGTERM');
    expect(await waiting).toEqual([]);
    expect(performance.now() - before).toBeLessThan(5_000);
    const end = await stream.until((given) => given.length === 1);
    expect(end[0]).toMatchObject({ ended: 'SERVER_DRAINING' });
    await other.close();
  });
});

/** An open run of bot’s for a conversation: its token. */
const openRun = async (tenant: Tenant, conversationThreadId: string): Promise<string> => {
  const { data } = await server.graphql<{ delegateRun: { token: string } }>(
    tenant.apiKey,
    'mutation($input: DelegateRunInput!) { delegateRun(input: $input) { token } }',
    { input: { participantId: tenant.participants.bot?.id, conversationThreadId } },
  );
  return data?.delegateRun.token ?? '';
};

describe('the inbox of a run', () => {
  test('stands beside the main one, for its conversation thread only', async () => {
    const tenant = await newTenant();
    const [ann, bob] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bob')];
    const conversation = await openThread(server, tenant, 'ann', 'bot');
    const elsewhere = await openThread(server, tenant, 'bob', 'bot');
    const { prisma } = server.services.database;
    const participantId = tenant.participants.bot?.id ?? '';
    const secret = await openRun(tenant, conversation);
    await using main = openInbox(server, tokenOf(tenant, 'bot'));
    await bob.post({ threadId: elsewhere, content: 'before' });
    await main.until((given) => messages(given).length === 1);
    await using own = openInbox(server, secret);
    await until(
      async () => (await prisma.inbox.count({ where: { participantId, holder: { not: null } } })) === 2,
    );
    await ann.post({ threadId: conversation, content: 'for the run' });
    expect(contentsOf(await own.until((given) => messages(given).length === 1))).toEqual(['for the run']);
    const run = inboxApi(server, secret);
    expect(await run.tryTake({ threadId: elsewhere })).toBe('NOT_FOUND');
    const [delivery] = messages(own.given);
    const answer = await run.post({
      threadId: conversation,
      content: 'done',
      deliveryId: delivery?.deliveryId,
    });
    // What the main inbox has in hand elsewhere is no source of it.
    expect(answer.sources).toEqual(delivery?.events.map((event) => event.id));
    expect(contentsOf(main.given)).toEqual(['before']);
    await changeMember(server, tenant, conversation, 'bot', 'removeParticipant');
    for (const stream of [main, own])
      await stream.until((given) => given.some(({ notice }) => notice === 'REMOVED'));
  });

  test('is told by pull too what becomes of its message and its worker, and shares its conversation with nobody', async () => {
    const tenant = await newTenant();
    const ann = apiOf(tenant, 'ann');
    const conversation = await openThread(server, tenant, 'ann', 'bot');
    const run = inboxApi(server, await openRun(tenant, conversation));
    expect(await run.take()).toEqual([]);
    await using main = openInbox(server, tokenOf(tenant, 'bot'));
    await main.until((given) => given.some(({ notice }) => notice?.startsWith('RUN_ASSIGNED') === true));
    const { id } = await ann.post({ threadId: conversation, content: 'one' });
    const one = await run.take({ waitSeconds: 10 });
    expect(contentsOf(one)).toEqual(['one']);
    await ann.retract(id);
    expect((await run.take({ waitSeconds: 10 })).map(({ notice }) => notice)).toEqual(['MESSAGE_RETRACTED']);
    await ann.post({ threadId: conversation, content: 'two' });
    const done = { threadId: conversation, deliveryId: one[0]?.deliveryId };
    expect(await run.acknowledge(done)).toBe('OK');
    expect(contentsOf(await run.take({ waitSeconds: 10 }))).toEqual(['two']);
    await changeMember(server, tenant, conversation, 'bot', 'removeParticipant');
    expect((await run.take({ waitSeconds: 10 })).map(({ notice }) => notice)).toEqual(['REMOVED']);
    await main.until((given) => given.some(({ notice }) => notice === 'REMOVED'));
    expect(contentsOf(main.given)).toEqual([]);
  });
});

describe('a stock client, through resumable', () => {
  test('goes on after any interruption: what was not acknowledged comes again, and nothing that was', async () => {
    const tenant = await newTenant();
    const [ann, bot] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot')];
    const threadId = await openThread(server, tenant, 'ann', 'bot');
    await using line = await startTcpProxy(() => ({
      host: '127.0.0.1',
      port: Number(new URL(brief.url).port),
    }));
    const client = resumable(
      createClient({
        url: `ws://127.0.0.1:${line.port}/graphql`,
        webSocketImpl: WebSocket,
        connectionParams: { authorization: `Bearer ${tokenOf(tenant, 'bot')}` },
        ...steady,
      }),
      { firstWaitMs: 20 },
    );
    for (const content of ['one', 'two', 'three']) await ann.post({ threadId, content });
    const got: string[] = [];
    let former: string | null = null;
    const query =
      'subscription { inbox { channel deliveryId attempt events { ... on Message { content } } } }';
    for await (const { data } of client.iterate({ query })) {
      const { inbox } = data as { inbox: Pick<Given, 'channel' | 'deliveryId' | 'attempt' | 'events'> };
      if (inbox.channel !== 'MESSAGE') continue;
      got.push(`${inbox.events[0]?.content} ${inbox.attempt}`);
      if (got.length === 1) line.cut();
      else expect(await bot.acknowledge({ threadId, deliveryId: inbox.deliveryId })).toBe('OK');
      if (got.length === 3) line.cut();
      if (got.length < 4) continue;
      former = await holderOf(tenant, 'bot');
      break;
    }
    // The third may have been given to the line that was cut in that moment: then it comes again.
    expect(got).toEqual(['one 1', 'one 2', 'two 1', expect.stringMatching(/^three [12]$/)]);

    // Another takes the inbox over: that is an end, not an interruption.
    const ends: unknown[] = [];
    const over = (async () => {
      for await (const { data } of client.iterate({ query: 'subscription { inbox { ended } }' }))
        ends.push((data as { inbox: { ended: string | null } }).inbox.ended);
    })();
    // It has the inbox, and not the one before it still.
    await until(async () => ![null, former].includes(await holderOf(tenant, 'bot')));
    await using other = openInbox(server, tokenOf(tenant, 'bot'));
    await over;
    expect(ends.at(-1)).toBe('TAKEN_OVER');
    expect(other.given).toEqual([]);
    await client.dispose();
  });
});

describe('an inbox', () => {
  test('is nobody’s but an agent’s or a unit’s, its own or through its user', async () => {
    const tenant = await newTenant();
    const threadId = await openThread(server, tenant, 'ann', 'unit');
    const [ann, bot, owner] = [apiOf(tenant, 'ann'), apiOf(tenant, 'bot'), inboxApi(server, tenant.apiKey)];
    await ann.post({ threadId, content: 'one' });
    expect(await ann.tryTake({})).toBe('FORBIDDEN');
    expect(await bot.tryTake({ threadId })).toBe('NOT_FOUND');
    expect(await bot.tryTake({ as: tenant.participants.unit?.id })).toBe('FORBIDDEN');
    expect(await owner.tryTake({})).toBe('BAD_USER_INPUT');
    expect(contentsOf(await owner.take({ as: tenant.participants.unit?.id }))).toEqual(['one']);
    await changeMember(server, tenant, threadId, 'unit', 'removeParticipant');
    const unit = apiOf(tenant, 'unit');
    expect(await unit.peek(threadId)).toEqual({ count: 0, contents: [] });
    // The notice of it first; then it is refused.
    expect((await unit.take({ threadId })).map(({ notice }) => notice)).toEqual(['REMOVED']);
    expect(await unit.tryTake({ threadId })).toBe('PARTICIPANT_NOT_ACTIVE');
  });
});
