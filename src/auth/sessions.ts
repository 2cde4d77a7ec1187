import { setMaxListeners } from 'node:events';
import { forbidden } from '../shared/errors.ts';
import type { Actor, TenantActor } from './actor.ts';
import type { Identified } from './credentialCache.ts';
import { noCredential } from './presented.ts';
import type { Expiries, RevocationLog } from './revocations.ts';
import type { Presented, Session, SessionEnding } from './session.ts';

/** Finds who is behind a credential and hands it over in the same turn, so that no ending falls between. */
export type Identify = <T>(presented: Presented, use: (who: Identified) => T) => Promise<T>;

/** What a ticket's stream adds to a session. */
interface StreamHooks {
  issued(cursor: string): Promise<void> | undefined;
  closed(): void;
}

export interface Sessions {
  readonly size: number;
  open(who: Identified, hooks?: StreamHooks): OpenSession;
  /** Ends those of these credentials; `closed`: those of them whose run has ended. */
  end(credentialIds: readonly string[], closed: ReadonlySet<string>): void;
  /** From now on those of these credentials end then. */
  expireAt(expiries: Expiries): void;
  /** Ends those whose credential has expired by now. */
  endExpired(now: number): void;
}

export interface OpenSession extends Session {
  end(): void;
}

const isSame = (one: TenantActor, other: TenantActor): boolean => {
  if (one.kind !== other.kind || one.userId !== other.userId) return false;
  if (one.kind === 'API_KEY' || other.kind === 'API_KEY') return true;
  return (
    one.participantId === other.participantId &&
    (one.kind === 'RUN_TOKEN' ? one.runId : null) === (other.kind === 'RUN_TOKEN' ? other.runId : null)
  );
};

const hasExpired = ({ expiresAt }: Identified, now: number): boolean =>
  expiresAt !== null && now >= expiresAt;

/** A run's token lives exactly as long as the run may. */
const endingByExpiry = ({ actor }: Identified): SessionEnding =>
  actor.kind === 'RUN_TOKEN' ? 'RUN_CLOSED' : 'CREDENTIAL_ENDED';

export const createSessions = ({ log, identify }: { log: RevocationLog; identify: Identify }): Sessions => {
  const byCredential = new Map<string, Set<Registered>>();

  interface Registered {
    who: Identified;
    readonly end: (ending?: SessionEnding) => void;
  }

  const register = (session: Registered): void => {
    const others = byCredential.get(session.who.credentialId);
    if (others === undefined) byCredential.set(session.who.credentialId, new Set([session]));
    else others.add(session);
    log.wake();
  };

  const unregister = (session: Registered): void => {
    const others = byCredential.get(session.who.credentialId);
    others?.delete(session);
    if (others?.size === 0) byCredential.delete(session.who.credentialId);
  };

  const open = (who: Identified, hooks?: StreamHooks): OpenSession => {
    const ended = new AbortController();
    const closing = new AbortController();
    /** Aborted by either: nobody waits for a reading on behalf of a session that is over. */
    const over = closing.signal;
    setMaxListeners(0, ended.signal, over);

    const leave = (): void => {
      if (over.aborted) return;
      unregister(registered);
      closing.abort();
      hooks?.closed();
    };
    let ending: SessionEnding = 'CREDENTIAL_ENDED';
    const registered: Registered = {
      who,
      end: (by = 'CREDENTIAL_ENDED') => {
        if (over.aborted) return;
        ending = by;
        leave();
        ended.abort(noCredential());
      },
    };
    register(registered);

    const endIfExpired = (): void => {
      if (hasExpired(registered.who, log.now())) registered.end(endingByExpiry(registered.who));
    };

    return {
      get actor(): Actor {
        return registered.who.actor;
      },
      ended: ended.signal,
      get ending() {
        return ending;
      },
      cleared: async () => {
        for (;;) {
          endIfExpired();
          if (over.aborted) throw noCredential();
          if (log.isFresh()) return;
          await log.whenFresh(over);
        }
      },
      renew: (token) =>
        identify({ authorization: `Bearer ${token}` }, (fresh) => {
          if (over.aborted) throw noCredential();
          const { actor } = registered.who;
          if (hooks !== undefined || !isSame(fresh.actor, actor))
            throw forbidden('A connection is renewed with a credential of the same kind and participant.');
          unregister(registered);
          registered.who =
            actor.kind === 'API_KEY'
              ? { ...fresh, actor: { ...actor, credentialId: fresh.credentialId } }
              : fresh;
          register(registered);
          return { credentialId: fresh.credentialId };
        }),
      issued: (cursor) => hooks?.issued(cursor),
      close: leave,
      end: registered.end,
    };
  };

  return {
    get size() {
      return byCredential.size;
    },
    open,
    end: (ids, closed) => {
      for (const id of ids)
        for (const session of [...(byCredential.get(id) ?? [])])
          session.end(closed.has(id) ? 'RUN_CLOSED' : 'CREDENTIAL_ENDED');
    },
    expireAt: (expiries) => {
      for (const [id, expiresAt] of Object.entries(expiries))
        for (const session of byCredential.get(id) ?? []) session.who = { ...session.who, expiresAt };
    },
    endExpired: (now) => {
      for (const sessions of [...byCredential.values()])
        for (const session of [...sessions]) {
          if (hasExpired(session.who, now)) session.end(endingByExpiry(session.who));
        }
    },
  };
};

/** The administrator's token is configuration: it ends with the process. */
export const adminSession = (actor: Actor): Session => {
  const never = new AbortController().signal;
  setMaxListeners(0, never);
  return {
    actor,
    ended: never,
    ending: 'CREDENTIAL_ENDED',
    cleared: async () => {},
    renew: async () => {
      throw forbidden('The administrator\u2019s connection needs no renewal.');
    },
    issued: () => undefined,
    close: () => {},
  };
};
