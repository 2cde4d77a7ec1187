import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Services } from '../../src/services.ts';
import { type Server, startApp, startProcess } from '../support/app.ts';
import { type Proxy as Link, startProxy } from '../support/proxy.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { idleSocket, TIMELINE, type Watcher, watchSocket, watchStream } from '../support/watchers.ts';
import { createWorld, type World } from '../support/world.ts';

/** Credentials end on `here`, in this process; they are in use on `there`, another one, over a link to Redis that can be cut. */
let here: Awaited<ReturnType<typeof startApp>>;
let there: Server;
let link: Link;
let services: Services;
beforeAll(async () => {
  here = await startApp();
  services = here.services;
  link = await startProxy(inject('redisUrl').replace('unix://', ''));
  there = await startProcess({ ...here.stores, redisUrl: `unix://${link.path}` });
});
afterAll(async () => {
  await there.close();
  await here.close();
  await link[Symbol.asyncDispose]();
});

/** Posts one message after the other, as fast as `reader` receives them; each has its database time. */
const keepPosting = ({ owner, threadId, people }: World, reader: Pick<Watcher, 'reached'>) => {
  let isStopped = false;
  let last = 0;
  const waiting = new Map<() => void, number>();
  const posting = (async (): Promise<void> => {
    while (!isStopped) {
      const { event } = await services.timeline.post(owner, {
        threadId,
        as: people.scout.id,
        content: 'tick',
      });
      last = event.seq;
      // Without Redis what is written is looked for once a second.
      if (last % 20 === 0) await reader.reached(last);
      for (const [resolve, moment] of waiting) if (Date.parse(event.at) >= moment) resolve();
    }
  })();
  return {
    /** Resolves when something was committed this much later than `moment`. */
    until: (moment: Date, laterMs: number): Promise<void> =>
      new Promise((resolve) => {
        waiting.set(resolve, moment.getTime() + laterMs);
      }),
    async stop(): Promise<number> {
      isStopped = true;
      await posting;
      return last;
    },
  };
};

/** What a credential is in use for on the other process. */
const useIt = async (
  token: string,
  threadId: string,
): Promise<{ watchers: Watcher[]; idle: Awaited<ReturnType<typeof idleSocket>> }> => {
  const made = await here.graphql<{ createConnectionTicket: { ticket: string } }>(
    token,
    'mutation($input: CreateConnectionTicketInput!) { createConnectionTicket(input: $input) { ticket } }',
    { input: { query: TIMELINE, variables: { id: threadId } } },
  );
  const ticket = made.data?.createConnectionTicket.ticket ?? '';
  return {
    watchers: [
      await watchSocket(there, token, threadId),
      await watchStream(there, { token }, threadId),
      await watchStream(there, { ticket }, threadId),
    ],
    idle: await idleSocket(there, token),
  };
};

interface Ending {
  readonly name: string;
  readonly kind: 'key' | 'token';
  readonly expiresInSeconds?: number;
  /** Ends the credential; resolves with when it ended, by the database's clock. */
  end(world: World, credentialId: string, participantId: string): Promise<Date>;
}

const endedAt = async (credentialId: string): Promise<Date> => {
  const { revokedAt, expiresAt } = await services.database.prisma.credential.findUniqueOrThrow({
    where: { id: credentialId },
  });
  return revokedAt ?? expiresAt ?? new Date(Number.NaN);
};

const ENDINGS: readonly Ending[] = [
  {
    name: 'a token that is revoked',
    kind: 'token',
    end: async ({ apiKey }, credentialId) => {
      await here.graphql(
        apiKey,
        'mutation($id: ID!) { revokeCredential(input: { credentialId: $id }) { credential { id } } }',
        { id: credentialId },
      );
      return endedAt(credentialId);
    },
  },
  {
    name: 'an API key that is revoked',
    kind: 'key',
    end: async ({ owner }, credentialId) => {
      await services.credentials.revoke(owner, { credentialId });
      return endedAt(credentialId);
    },
  },
  {
    name: 'all tokens of a participant, revoked',
    kind: 'token',
    end: async ({ apiKey }, credentialId, participantId) => {
      await here.graphql(
        apiKey,
        'mutation($id: ID!) { revokeParticipantCredentials(input: { participantId: $id }) { credentials { id } } }',
        { id: participantId },
      );
      return endedAt(credentialId);
    },
  },
  {
    name: 'a token that expires',
    kind: 'token',
    expiresInSeconds: 4,
    end: async (_world, credentialId) => endedAt(credentialId),
  },
];

const LINKS = ['with Redis', 'with its link to Redis cut'] as const;

describe.each(LINKS)('on another process, %s', (state) => {
  beforeAll(() => {
    if (state !== 'with Redis') link.blackHole();
  });
  afterAll(() => {
    link.thaw();
    link.cut();
  });

  test.for(ENDINGS.map((ending) => [ending.name, ending] as const))(
    '%s is dead within a second',
    async ([, ending]) => {
      const world = await createWorld(services, 'ending');
      const { owner, threadId, people } = world;
      const { secret: token, credential } =
        ending.kind === 'key'
          ? await services.credentials.createApiKey(owner, {})
          : await services.credentials.createParticipantToken(owner, {
              participantId: people.ada.id,
              expiresInSeconds: ending.expiresInSeconds,
            });
      const survivor = await watchSocket(there, people.scout.token, threadId);
      const { watchers, idle } = await useIt(token, threadId);
      const posting = keepPosting(world, survivor);
      await Promise.all(watchers.map((watcher) => watcher.reached(world.late.seq + 3)));
      const end = await ending.end(world, credential.id, people.ada.id);
      // Both clocks are this machine's.
      const endedHere = performance.now() + (end.getTime() - Date.now());
      const overs = await Promise.all([...watchers.map(({ over }) => over), idle.over]);
      await posting.until(end, 1_500);
      const last = await posting.stop();
      for (const [index, { at, code }] of overs.entries()) {
        const name = watchers[index]?.name ?? 'an idle socket';
        expect([name, Math.max(0, Math.round(at - endedHere))]).toEqual([
          name,
          expect.toSatisfy((late: number) => late < 1_000),
        ]);
        expect([name, code]).toEqual([name, name.includes('stream') ? 0 : 4403]);
      }
      for (const { name, reason, events } of watchers) {
        expect([name, reason()]).toEqual([name, 'CREDENTIAL_ENDED']);
        const tooLate = events.filter((event) => Date.parse(event.at) > end.getTime() + 1_000);
        expect([name, tooLate]).toEqual([name, []]);
        const first = events[0]?.seq ?? 0;
        expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => first + index));
      }
      // Nothing of it works any more, anywhere.
      for (const server of [there, here]) {
        const { errors } = await server.graphql(token, '{ viewer { user { id } } }');
        expect(errors?.[0]?.extensions?.code).toBe('UNAUTHENTICATED');
        const socket = await openRawSocket(server.socketUrl);
        socket.send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
        expect((await socket.closed).code).toBe(4403);
        await expect(watchStream(server, { token }, threadId)).rejects.toThrow(/^401/);
      }
      // And nobody else is touched.
      await survivor.reached(last);
      const from = survivor.events[0]?.seq ?? 0;
      expect(survivor.events.map(({ seq }) => seq)).toEqual(survivor.events.map((_, index) => from + index));
      survivor.stop();
    },
  );

  test('a user that is deleted is gone with all its credentials, and nobody else’s', async () => {
    const world = await createWorld(services, 'gone');
    const other = await createWorld(services, 'stays');
    const survivor = await watchSocket(there, other.people.ada.token, other.threadId);
    const key = await useIt(world.apiKey, world.threadId);
    const token = await useIt(world.people.ada.token, world.threadId);
    const { data } = await here.graphql<{ deleteUser: { deletedId: string } }>(
      world.apiKey,
      'mutation { deleteUser(input: { confirmName: "gone company" }) { deletedId } }',
    );
    const deletedAt = performance.now();
    expect(data?.deleteUser.deletedId).toBe(world.userId);
    for (const { watchers, idle } of [key, token]) {
      const overs = await Promise.all([...watchers.map(({ over }) => over), idle.over]);
      for (const { at } of overs) expect(at - deletedAt).toBeLessThan(1_000);
      for (const { reason, events } of watchers) {
        expect(['CREDENTIAL_ENDED', 'THREAD_DELETED']).toContain(reason());
        expect(events).toEqual([]);
      }
      expect((await idle.over).code).toBe(4403);
    }
    for (const secret of [world.apiKey, ...Object.values(world.people).map(({ token }) => token)])
      for (const server of [here, there]) {
        const { errors } = await server.graphql(secret, '{ viewer { user { id } } }');
        expect(errors?.[0]?.extensions?.code).toBe('UNAUTHENTICATED');
      }
    const { event } = await services.timeline.post(other.owner, {
      threadId: other.threadId,
      as: other.people.scout.id,
      content: 'still here',
    });
    await survivor.reached(event.seq);
    survivor.stop();
  });

  test('a connection that is renewed in time goes on past the old credential’s end, undisturbed', async () => {
    const world = await createWorld(services, 'renewed');
    const { owner, threadId, people } = world;
    const participantId = people.ada.id;
    const old = await services.credentials.createParticipantToken(owner, {
      participantId,
      expiresInSeconds: 2,
    });
    const fresh = await services.credentials.createParticipantToken(owner, { participantId });
    const dead = await services.credentials.createParticipantToken(owner, { participantId });
    await services.credentials.revoke(owner, { credentialId: dead.credential.id });
    const watcher = await watchSocket(there, old.secret, threadId);
    const renew = async (token: string): Promise<string> => {
      const id = token;
      watcher.socket.subscribe(
        id,
        'mutation($token: String!) { renewConnection(input: { token: $token }) { credential { id } } }',
        { token },
      );
      const { payload } = await watcher.socket.nextOf(id, 'next');
      const { data, errors } = payload as {
        data: { renewConnection: { credential: { id: string } } } | null;
        errors?: [{ extensions: { code: string } }];
      };
      return data?.renewConnection.credential.id ?? errors?.[0].extensions.code ?? '';
    };
    expect(await renew(people.scout.token)).toBe('FORBIDDEN');
    expect(await renew(world.apiKey)).toBe('FORBIDDEN');
    expect(await renew(dead.secret)).toBe('UNAUTHENTICATED');
    expect(await renew('garbage')).toBe('UNAUTHENTICATED');
    expect(await renew(fresh.secret)).toBe(fresh.credential.id);
    const posting = keepPosting(world, watcher);
    await posting.until(old.credential.expiresAt ?? new Date(), 1_200);
    const last = await posting.stop();
    await watcher.reached(last);
    const from = watcher.events[0]?.seq ?? 0;
    expect(watcher.events.map(({ seq }) => seq)).toEqual(watcher.events.map((_, index) => from + index));
    expect(watcher.reason()).toBeNull();
    await services.credentials.revoke(owner, { credentialId: fresh.credential.id });
    const revokedAt = performance.now();
    const { code, at } = await watcher.over;
    expect(code).toBe(4403);
    expect(at - revokedAt).toBeLessThan(1_000);
    expect(watcher.reason()).toBe('CREDENTIAL_ENDED');
  });

  test('a ticket opens one stream of one operation; only its reconnection is accepted, also elsewhere', async () => {
    const world = await createWorld(services, 'ticket');
    const { owner, threadId, people } = world;
    const { secret: token, credential } = await services.credentials.createParticipantToken(owner, {
      participantId: people.ada.id,
    });
    const { ticket } = await services.credentials.createTicket(
      {
        kind: 'PARTICIPANT_TOKEN',
        userId: world.userId,
        credentialId: credential.id,
        participantId: people.ada.id,
      },
      { query: TIMELINE, variables: { id: threadId } },
    );
    await expect(watchStream(there, { ticket }, world.laterThreadId)).rejects.toThrow(/^401/);
    const first = await watchStream(there, { ticket }, threadId);
    await expect(watchStream(here, { ticket }, threadId)).rejects.toThrow(/^401/);
    const say = async (): Promise<number> =>
      (await services.timeline.post(owner, { threadId, as: people.scout.id, content: 'more' })).event.seq;
    const seq = await say();
    await first.reached(seq);
    const cursor = first.lastCursor() ?? '';
    first.stop();
    await first.over;
    const missed = await say();
    await expect(watchStream(here, { ticket }, threadId)).rejects.toThrow(/^401/);
    await expect(watchStream(here, { ticket }, threadId, 'garbage')).rejects.toThrow(/^401/);
    const second = await watchStream(here, { ticket }, threadId, cursor);
    await second.reached(missed);
    expect(second.events.map((event) => event.seq)).toEqual([missed]);
    await services.credentials.revoke(owner, { credentialId: credential.id });
    expect((await second.over).code).toBe(0);
    expect(second.reason()).toBe('CREDENTIAL_ENDED');
    await expect(watchStream(there, { ticket }, threadId, second.lastCursor())).rejects.toThrow(/^401/);
    await expect(watchStream(there, { token }, threadId)).rejects.toThrow(/^401/);
  });
});
