import { forbidden, notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import { type Database, statement } from '../storage/database.ts';
import type { Actor, TenantActor } from './actor.ts';
import {
  createCredentialCache,
  type Identified,
  type KnownCredential,
  rememberActing,
} from './credentialCache.ts';
import {
  CREDENTIAL_COLUMNS,
  CREDENTIAL_IS_ALIVE,
  CREDENTIALS,
  type CredentialRow,
  identifiedBy,
} from './credentialRow.ts';
import { createLastUse } from './lastUse.ts';
import { noCredential, presentedSecret } from './presented.ts';
import { createRevocationLog, type Wakeups } from './revocations.ts';
import { hashSecret, looksLikeCredential, sameHash } from './secrets.ts';
import type { Authentication, Presented, Session } from './session.ts';
import { adminSession, createSessions, type Identify } from './sessions.ts';
import { openTickets } from './tickets.ts';

const FIND = statement<CredentialRow & { acts: boolean }>(
  'credential_find',
  `SELECT ${CREDENTIAL_COLUMNS},
     EXISTS (SELECT FROM participants p WHERE p.owner_id = c.owner_id AND p.id = $2) AS acts
   FROM ${CREDENTIALS}
   WHERE c.hash = $1 AND ${CREDENTIAL_IS_ALIVE}`,
);

const FIND_BY_ID = statement<CredentialRow>(
  'credential_find_by_id',
  `SELECT ${CREDENTIAL_COLUMNS} FROM ${CREDENTIALS} WHERE c.id = $1 AND ${CREDENTIAL_IS_ALIVE}`,
);

export interface AuthenticationOptions {
  readonly database: Database;
  /** `ADMIN_TOKEN`; null: nobody administers. */
  readonly adminToken: string | null;
  readonly bus?: Wakeups | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Told by each reading of the revocation log in how many milliseconds the next run is due; null: none is. */
  readonly onRunDue?: ((inMs: number | null) => void) | undefined;
  /** How many credentials are remembered. */
  readonly cacheSize?: number;
  readonly monotonic?: () => number;
}

/** The door, and what the services behind it tell it. */
export interface ClosableAuthentication extends Authentication {
  /** The life of a credential that an operation goes on under for longer than others do. Throws `UNAUTHENTICATED`. */
  watch(actor: TenantActor): Promise<Pick<Session, 'ended' | 'close'>>;
  /** These credentials were ended in a transaction that is committed. */
  announceEnded(credentialIds: readonly string[]): void;
  /** Credentials were ended, or expire at another time, in a transaction that is committed: look at once, everywhere. */
  announceEndings(): void;
  close(): Promise<void>;
}

const ADMIN: Actor = { kind: 'ADMIN' };
const FORGET_UNUSED_AFTER_MS = 60_000;
const NOTE_USE_EVERY_MS = 60_000;

export const createAuthentication = (options: AuthenticationOptions): ClosableAuthentication => {
  const { database, adminToken, bus, onError } = options;
  const monotonic = options.monotonic ?? (() => performance.now());
  const cache = createCredentialCache(options.cacheSize ?? 10_000);
  const lastUse = createLastUse(database, onError);

  const log = createRevocationLog({
    database,
    bus,
    onError,
    onRunDue: options.onRunDue,
    monotonic,
    isNeeded: () => cache.size > 0 || sessions.size > 0,
    onEnded: (ids, closed) => {
      cache.drop(ids);
      sessions.end(ids, closed);
    },
    onMoved: (expiries) => {
      cache.drop(Object.keys(expiries));
      sessions.expireAt(expiries);
      sessions.endExpired(log.now());
    },
    onTick: () => {
      sessions.endExpired(log.now());
      cache.forgetUnused(monotonic() - FORGET_UNUSED_AFTER_MS);
    },
  });

  const noteUse = (known: KnownCredential): void => {
    const now = monotonic();
    if (now - known.notedAt < NOTE_USE_EVERY_MS) return;
    known.notedAt = now;
    lastUse.note(known.plain.credentialId);
  };

  /** Whom `known` speaks for; undefined where only the database can say. */
  const speaksFor = (known: KnownCredential, actAs: string | undefined): Identified | undefined => {
    if (actAs === undefined) return known.plain;
    const { actor } = known.plain;
    if (actor.kind === 'API_KEY') return known.acting.get(actAs);
    if (actor.participantId !== actAs)
      throw forbidden('This credential speaks for its own participant only.');
    return known.plain;
  };

  const remembered = (hash: string): KnownCredential | undefined => {
    if (!log.isFresh()) return undefined;
    const known = cache.find(hash, monotonic());
    if (known === undefined) return undefined;
    const { expiresAt } = known.plain;
    return expiresAt !== null && log.now() >= expiresAt ? undefined : known;
  };

  const lookUp = async <T>(
    hash: string,
    actAs: string | undefined,
    use: (who: Identified) => T,
  ): Promise<T> => {
    const witness = log.witness();
    try {
      const asked = actAs !== undefined && isId('Participant', actAs) ? actAs : null;
      const [row] = await database.query(FIND, [hash, asked]);
      if (row === undefined || witness.hasEnded(row.id)) throw noCredential();
      witness.saw(row);
      const known = cache.keep(hash, identifiedBy(row, null), monotonic());
      log.wake();
      noteUse(known);
      if (actAs !== undefined && row.acts && row.kind === 'API_KEY')
        rememberActing(known, actAs, identifiedBy(row, actAs));
      const who = speaksFor(known, actAs);
      if (who === undefined) throw notFound('Participant');
      return use(who);
    } finally {
      witness.done();
    }
  };

  const identify: Identify = async (presented, use) => {
    const secret = presentedSecret(presented);
    if (!looksLikeCredential(secret)) throw noCredential();
    const hash = hashSecret(secret);
    const known = remembered(hash);
    const who = known && speaksFor(known, presented.actAs);
    if (known === undefined || who === undefined) return lookUp(hash, presented.actAs, use);
    noteUse(known);
    return use(who);
  };

  const sessions = createSessions({ log, identify });
  const tickets = openTickets({ database, bus, log, sessions, onError });

  const adminHash = adminToken === null ? null : hashSecret(adminToken);
  const isAdmin = (presented: Presented): boolean => {
    if (adminHash === null || !sameHash(hashSecret(presentedSecret(presented)), adminHash)) return false;
    if (presented.actAs !== undefined) throw forbidden('The administrator acts for nobody.');
    return true;
  };

  return {
    authenticate: async (presented) => (isAdmin(presented) ? ADMIN : identify(presented, (who) => who.actor)),
    openSession: async (presented) =>
      isAdmin(presented) ? adminSession(ADMIN) : identify(presented, (who) => sessions.open(who)),
    openTicketSession: tickets.open,
    watch: async (actor) => {
      const { credentialId } = actor;
      const witness = log.witness();
      try {
        const [row] = await database.query(FIND_BY_ID, [credentialId]);
        if (row === undefined || witness.hasEnded(credentialId)) throw noCredential();
        witness.saw(row);
        return sessions.open({ actor, credentialId, expiresAt: row.expires });
      } finally {
        witness.done();
      }
    },
    announceEnded: log.announce,
    announceEndings: log.nudge,
    close: async () => {
      log.close();
      await Promise.all([tickets.close(), lastUse.close()]);
    },
  };
};
