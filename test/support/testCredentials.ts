import { EventEmitter } from 'node:events';
import type { Actor } from '../../src/auth/actor.ts';
import { noCredential, presentedSecret } from '../../src/auth/presented.ts';
import type { Authentication, Session } from '../../src/auth/session.ts';
import { unavailable } from '../../src/shared/errors.ts';

/**
 * An authentication without a database, for tests of what stands in front of it. `key-…` is an API key, `part-…` a
 * participant's token; all are `user-a`'s but those that end in `-b`.
 */
export const createTestCredentials = () => {
  const events = new EventEmitter().setMaxListeners(0);
  const ended = new Set<string>();
  const tickets = new Map<string, { readonly secret: string; readonly query: string }>();
  const issued: string[] = [];
  const state = { isReachable: true, clearance: Promise.resolve(), sessions: 0, asked: 0 };

  const actorOf = (secret: string): Actor => {
    if (!state.isReachable) throw unavailable('The database is away.');
    if (!/^(key|part)-/.test(secret) || ended.has(secret)) throw noCredential();
    const userId = secret.endsWith('-b') ? 'user-b' : 'user-a';
    return secret.startsWith('key-')
      ? { kind: 'API_KEY', userId, credentialId: secret, actAs: null }
      : { kind: 'PARTICIPANT_TOKEN', userId, credentialId: secret, participantId: secret.slice(5) };
  };

  const open = (first: string): Session => {
    let secret = first;
    let actor = actorOf(first);
    let isOpen = true;
    const controller = new AbortController();
    const onEnded = (name: string): void => {
      if (name === secret) controller.abort();
    };
    events.on('ended', onEnded);
    state.sessions += 1;
    return {
      get actor() {
        return actor;
      },
      ended: controller.signal,
      ending: 'CREDENTIAL_ENDED',
      async cleared() {
        await state.clearance;
        if (controller.signal.aborted) throw noCredential();
      },
      async renew(token) {
        actor = actorOf(token);
        secret = token;
        return { credentialId: token };
      },
      issued: (cursor) => {
        issued.push(cursor);
        return undefined;
      },
      close() {
        events.off('ended', onEnded);
        if (isOpen) state.sessions -= 1;
        isOpen = false;
      },
    };
  };

  const authentication: Authentication = {
    authenticate: async (presented) => {
      state.asked += 1;
      return actorOf(presentedSecret(presented));
    },
    openSession: async (presented) => open(presentedSecret(presented)),
    async openTicketSession(ticket, { query }) {
      const known = tickets.get(ticket);
      if (known === undefined || known.query !== query) throw noCredential();
      tickets.delete(ticket);
      return open(known.secret);
    },
  };

  return {
    authentication,
    state,
    issued,
    end(secret: string): void {
      ended.add(secret);
      events.emit('ended', secret);
    },
    issueTicket(ticket: string, secret: string, query: string): void {
      tickets.set(ticket, { secret, query });
    },
  };
};
