import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Actor } from '../../src/auth/actor.ts';
import { timelineCursor } from '../../src/shared/cursors.ts';
import { newId } from '../../src/shared/ids.ts';
import { openPostgres } from '../../src/storage/postgres.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type HeardDatabase, hear } from '../support/heard.ts';
import { bearer, createIdentity, type Identity, seedTenant } from '../support/identity.ts';

const dead = { code: 'UNAUTHENTICATED' };
const forbidden = { code: 'FORBIDDEN' };

describe('sessions', () => {
  let db: TestDatabase;
  let heard: HeardDatabase;
  let identity: Identity;
  let tenant: Awaited<ReturnType<typeof seedTenant>>;
  let elsewhere: Identity;
  let closeOthers: () => Promise<void>;

  beforeAll(async () => {
    db = await createTestDatabase();
    heard = hear(db.database);
    identity = createIdentity(heard.database);
    tenant = await seedTenant(identity);
    const others = await openPostgres(db.url);
    elsewhere = createIdentity(others);
    closeOthers = () => others.close();
  });
  afterAll(async () => {
    await Promise.all([identity.close(), elsewhere.close()]);
    await closeOthers();
    await db.drop();
  });

  const tokenOf = (participantId: string, actor: Actor = tenant.owner) =>
    identity.credentials.createParticipantToken(actor, { participantId });

  describe('renew', () => {
    it('goes on under a fresh credential and survives the end of the former', async () => {
      const [first, second] = [await tokenOf(tenant.agent.id), await tokenOf(tenant.agent.id)];
      const session = await identity.openSession(bearer(first.secret));
      await expect(session.renew(second.secret)).resolves.toEqual({ credentialId: second.credential.id });
      expect(session.actor).toMatchObject({
        credentialId: second.credential.id,
        participantId: tenant.agent.id,
      });
      await identity.credentials.revoke(tenant.owner, { credentialId: first.credential.id });
      await session.cleared();
      expect(session.ended.aborted).toBe(false);
      await identity.credentials.revoke(tenant.owner, { credentialId: second.credential.id });
      expect(session.ended.aborted).toBe(true);
      await expect(session.renew((await tokenOf(tenant.agent.id)).secret)).rejects.toMatchObject(dead);
    });

    it('keeps whom the user acts as', async () => {
      const key = await identity.credentials.createApiKey(tenant.owner, {});
      const session = await identity.openSession(bearer(tenant.apiKey, tenant.agent.id));
      await session.renew(key.secret);
      expect(session.actor).toMatchObject({ credentialId: key.credential.id, actAs: tenant.agent.id });
      session.close();
    });

    it('refuses another participant, kind or user, a dead one and garbage, and disturbs nothing', async () => {
      const stranger = await seedTenant(identity);
      const human = await tokenOf(tenant.human.id);
      const revoked = await tokenOf(tenant.agent.id);
      await identity.credentials.revoke(tenant.owner, { credentialId: revoked.credential.id });
      const session = await identity.openSession(bearer(tenant.token.secret));
      for (const secret of [human.secret, tenant.apiKey, stranger.token.secret, stranger.apiKey])
        await expect(session.renew(secret)).rejects.toMatchObject(forbidden);
      for (const secret of [revoked.secret, 'garbage', ''])
        await expect(session.renew(secret)).rejects.toMatchObject(dead);
      await session.cleared();
      expect(session.actor).toMatchObject({ credentialId: tenant.token.credential.id });
      const keySession = await identity.openSession(bearer(tenant.apiKey));
      await expect(keySession.renew(stranger.apiKey)).rejects.toMatchObject(forbidden);
      await expect(keySession.renew(tenant.token.secret)).rejects.toMatchObject(forbidden);
      session.close();
      keySession.close();
    });
  });

  describe('tickets', () => {
    const operation = { query: 'subscription T($id: ID!) { timeline(threadId: $id) { cursor } }' };
    const variables = { id: 'thread_1', after: null };
    const threadId = newId('Thread');
    const cursorAt = (seq: number): string => timelineCursor(threadId, seq, newId('Event'));
    const ticketFor = async (actor: Actor, extra: object = {}) =>
      (await identity.credentials.createTicket(actor, { ...operation, variables, ...extra })).ticket;
    const asked = { ...operation, variables, operationName: null };
    /** Resolves once what `act` makes the process write has been written. */
    const written = async (name: string, act: () => void): Promise<void> => {
      const write = heard.hold(name);
      act();
      await write.answered;
      write.release();
    };

    it('opens one stream of one operation, for whom made it', async () => {
      const actor = await identity.authenticate(bearer(tenant.apiKey, tenant.agent.id));
      const ticket = await ticketFor(actor);
      expect(ticket).toMatch(/^tp_ticket_/);
      const reordered = { ...operation, variables: { after: null, id: 'thread_1' } };
      const session = await elsewhere.openTicketSession(ticket, reordered, null);
      expect(session.actor).toEqual(actor);
      await session.cleared();
      for (const other of [asked, { ...asked, query: '{ viewer { credential { id } } }' }])
        await expect(identity.openTicketSession(ticket, other, null)).rejects.toMatchObject(dead);
      session.close();
    });

    it('is no credential, and no other operation\u2019s', async () => {
      const ticket = await ticketFor(tenant.owner);
      await expect(identity.authenticate(bearer(ticket))).rejects.toMatchObject(dead);
      const others = [
        { ...asked, query: `${operation.query} ` },
        { ...asked, variables: { ...variables, id: 'thread_2' } },
        { ...asked, variables: undefined },
        { ...asked, operationName: 'T' },
      ];
      for (const other of others)
        await expect(identity.openTicketSession(ticket, other, null)).rejects.toMatchObject(dead);
      await expect(identity.openTicketSession(ticket, asked, cursorAt(1))).rejects.toMatchObject(dead);
      await expect(identity.openTicketSession('tp_ticket_x', asked, null)).rejects.toMatchObject(dead);
      const token = await tokenOf(tenant.agent.id);
      await expect(identity.openTicketSession(token.secret, asked, null)).rejects.toMatchObject(dead);
      const session = await identity.openTicketSession(ticket, asked, null);
      session.close();
    });

    it('takes the stream up again, with an id that was issued on it, and ends what was thought open', async () => {
      const ticket = await ticketFor(tenant.owner);
      const first = await identity.openTicketSession(ticket, asked, null);
      await first.issued(cursorAt(5));
      await first.issued(cursorAt(3));
      for (const id of ['garbage', cursorAt(4), timelineCursor(newId('Thread'), 9, newId('Event'))])
        await expect(identity.openTicketSession(ticket, asked, id)).rejects.toMatchObject(dead);
      expect(first.ended.aborted).toBe(false);
      const second = await identity.openTicketSession(ticket, asked, cursorAt(7));
      expect(first.ended.aborted).toBe(true);
      expect(second.ended.aborted).toBe(false);
      second.close();
      const third = await elsewhere.openTicketSession(ticket, asked, cursorAt(5));
      await third.cleared();
      third.close();
    });

    it('does not take up a stream on which nothing was issued: there is no id to come back with', async () => {
      const ticket = await ticketFor(tenant.owner);
      const first = await identity.openTicketSession(ticket, asked, null);
      await expect(elsewhere.openTicketSession(ticket, asked, cursorAt(1))).rejects.toMatchObject(dead);
      await written('ticket_break', first.close);
      for (const id of [cursorAt(0), cursorAt(1), timelineCursor(newId('Thread'), 9, newId('Event'))])
        await expect(identity.openTicketSession(ticket, asked, id)).rejects.toMatchObject(dead);
    });

    it('dies with the credential that made it', async () => {
      const key = await identity.credentials.createApiKey(tenant.owner, {});
      const actor = await identity.authenticate(bearer(key.secret));
      const [used, unused] = [await ticketFor(actor), await ticketFor(actor)];
      const session = await elsewhere.openTicketSession(used, asked, null);
      await identity.credentials.revoke(tenant.owner, { credentialId: key.credential.id });
      if (!session.ended.aborted) await once(session.ended, 'abort', { signal: AbortSignal.timeout(1_000) });
      await expect(elsewhere.openTicketSession(unused, asked, null)).rejects.toMatchObject(dead);
      await expect(elsewhere.openTicketSession(used, asked, cursorAt(1))).rejects.toMatchObject(dead);
      await expect(ticketFor(actor)).rejects.toMatchObject(dead);
    });

    it('waits a minute for its first use, and a minute for a reconnection', async () => {
      const age = (column: string, seconds: number) =>
        db.database.script(`UPDATE tickets SET ${column} = clock_timestamp() - interval '${seconds} s'`);
      const late = await ticketFor(tenant.owner);
      await age('expires_at', 1);
      await expect(identity.openTicketSession(late, asked, null)).rejects.toMatchObject(dead);

      const ticket = await ticketFor(tenant.owner);
      const first = await identity.openTicketSession(ticket, asked, null);
      await first.issued(cursorAt(1));
      await written('ticket_break', first.close);
      await age('alive_at', 45);
      const second = await identity.openTicketSession(ticket, asked, cursorAt(1));
      await written('ticket_break', second.close);
      await age('alive_at', 61);
      await expect(identity.openTicketSession(ticket, asked, cursorAt(1))).rejects.toMatchObject(dead);
    });
  });
});
