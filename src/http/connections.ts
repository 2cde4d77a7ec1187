import type { Actor } from '../auth/actor.ts';

export interface ConnectionCaps {
  /** Sockets and streams of one credential. */
  readonly perCredential: number;
  readonly perUser: number;
  /** Sockets from one address that have not said who they are. */
  readonly unknownPerAddress: number;
}

export const CONNECTION_CAPS: ConnectionCaps = { perCredential: 100, perUser: 2_000, unknownPerAddress: 100 };

export type Release = () => void;

/** How many long-lived connections this process holds, and for whom. A claim counts until it is released, once. */
export interface Connections {
  /** Null where the credential or its user has as many as it may have. */
  claim(actor: Actor): Release | null;
  /**
   * For work that goes on after its connection is gone, whose client may come back for it: counted beside connections, and
   * bounded as they are.
   */
  claimUnattended(actor: Actor): Release | null;
  /** Null where too many sockets of this address have not said who they are. */
  claimUnknown(address: string): Release | null;
}

export const createConnections = (caps: ConnectionCaps = CONNECTION_CAPS): Connections => {
  const counts = new Map<string, number>();
  const claimAll = (claims: readonly (readonly [key: string, cap: number])[]): Release | null => {
    if (claims.some(([key, cap]) => (counts.get(key) ?? 0) >= cap)) return null;
    for (const [key] of claims) counts.set(key, (counts.get(key) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      for (const [key] of claims) {
        const left = (counts.get(key) ?? 0) - 1;
        if (left > 0) counts.set(key, left);
        else counts.delete(key);
      }
    };
  };
  const claimFor = (actor: Actor, what: string): Release | null =>
    actor.kind === 'ADMIN'
      ? claimAll([[`${what} administrator`, caps.perCredential]])
      : claimAll([
          [`${what} credential ${actor.credentialId}`, caps.perCredential],
          [`${what} user ${actor.userId}`, caps.perUser],
        ]);
  return {
    claim: (actor) => claimFor(actor, 'connected'),
    claimUnattended: (actor) => claimFor(actor, 'unattended'),
    claimUnknown: (address) => claimAll([[`address ${address}`, caps.unknownPerAddress]]),
  };
};
