import type { Actor } from './actor.ts';

/** What a client presents: the header values, or the `connection_init` fields of the same names. */
export interface Presented {
  readonly authorization?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly actAs?: string | undefined;
}

export type SessionEnding = 'CREDENTIAL_ENDED' | 'RUN_CLOSED';

/**
 * The life of a credential on an open socket or stream. Promise: a credential that has ended anywhere ends
 * its sessions on every process within a second, and what awaits `cleared` before each output lets nothing
 * out that was committed more than a second after the ending.
 */
export interface Session {
  /** Renewal swaps the credential behind it; whom it speaks for never changes. */
  readonly actor: Actor;
  /** Aborted once, when the credential ends: the holder says so to its client and closes. */
  readonly ended: AbortSignal;
  /** What its streams say once it has ended: of a run's token whether the run did. */
  readonly ending: SessionEnding;
  /** Resolves when live output may go out now; rejects once the session has ended or is closed. */
  cleared(): Promise<void>;
  /**
   * Goes on under a fresh credential of the same participant and kind (an API key: of the same user).
   * Throws `UNAUTHENTICATED` for a dead one, `FORBIDDEN` for another's; the session then stays as it was.
   */
  renew(token: string): Promise<{ credentialId: string }>;
  /**
   * Told of a cursor before it goes out on the stream. Of a ticket's stream the first is kept: a reconnection is
   * believed from there on, and none is without it. Does nothing for others.
   */
  issued(cursor: string): Promise<void> | undefined;
  /** The socket or stream is gone: frees everything. `ended` is not aborted by it. */
  close(): void;
}

export interface Operation {
  readonly query: string;
  readonly variables?: unknown;
  readonly operationName?: string | null;
}

/** The one way in, for HTTP, WebSocket, SSE and every other door. */
export interface Authentication {
  /** Who is asking, for one operation. Throws `UNAUTHENTICATED`, `FORBIDDEN`, `NOT_FOUND`, `UNAVAILABLE`. No SQL when warm. */
  authenticate(presented: Presented): Promise<Actor>;
  /** The same, for as long as a socket or stream lives. */
  openSession(presented: Presented): Promise<Session>;
  /** A stream opened with a ticket instead of a credential. Throws `UNAUTHENTICATED` for any use but the ticket's own. */
  openTicketSession(ticket: string, operation: Operation, lastEventId: string | null): Promise<Session>;
}
