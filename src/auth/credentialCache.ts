import type { TenantActor } from './actor.ts';

/** Somebody whom a credential has proved, and how long that can last. */
export interface Identified {
  readonly actor: TenantActor;
  readonly credentialId: string;
  /** By the database's clock; null for never. */
  readonly expiresAt: number | null;
}

/** A credential that was found alive in the database, and those it was found to act as. */
export interface KnownCredential {
  readonly hash: string;
  readonly plain: Identified;
  readonly acting: Map<string, Identified>;
  usedAt: number;
  /** When its use was last noted for `lastUsedAt`. */
  notedAt: number;
}

export interface CredentialCache {
  readonly size: number;
  /** Also marks it as the one used last. */
  find(hash: string, now: number): KnownCredential | undefined;
  /** The entry of this credential, made from what the database just said. */
  keep(hash: string, plain: Identified, now: number): KnownCredential;
  drop(credentialIds: readonly string[]): void;
  /** Forgets what has not been used since. */
  forgetUnused(since: number): void;
}

const MAX_ACTING = 4_096;

/** Remembers that `known` may act as the one in `who`. A participant stays its user's for good. */
export const rememberActing = (known: KnownCredential, participantId: string, who: Identified): void => {
  if (known.acting.size >= MAX_ACTING) {
    const [oldest] = known.acting.keys();
    if (oldest !== undefined) known.acting.delete(oldest);
  }
  known.acting.set(participantId, who);
};

/** Least recently used goes first: a Map keeps the order in which its keys were set. */
export const createCredentialCache = (limit: number): CredentialCache => {
  const byHash = new Map<string, KnownCredential>();
  const hashOf = new Map<string, string>();

  const remove = (known: KnownCredential): void => {
    byHash.delete(known.hash);
    hashOf.delete(known.plain.credentialId);
  };

  return {
    get size() {
      return byHash.size;
    },
    find: (hash, now) => {
      const known = byHash.get(hash);
      if (known === undefined) return undefined;
      known.usedAt = now;
      byHash.delete(hash);
      byHash.set(hash, known);
      return known;
    },
    keep: (hash, plain, now) => {
      const present = byHash.get(hash);
      const known: KnownCredential = {
        hash,
        plain,
        acting: present?.acting ?? new Map(),
        usedAt: now,
        notedAt: present?.notedAt ?? Number.NEGATIVE_INFINITY,
      };
      byHash.delete(hash);
      byHash.set(hash, known);
      hashOf.set(plain.credentialId, hash);
      if (byHash.size > limit) {
        const [oldest] = byHash.values();
        if (oldest !== undefined) remove(oldest);
      }
      return known;
    },
    drop: (ids) => {
      for (const id of ids) {
        const known = byHash.get(hashOf.get(id) ?? '');
        if (known !== undefined) remove(known);
      }
    },
    forgetUnused: (since) => {
      for (const known of byHash.values()) {
        if (known.usedAt >= since) return;
        remove(known);
      }
    },
  };
};
