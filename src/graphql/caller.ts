import type { Actor } from '../auth/actor.ts';
import type { Session } from '../auth/session.ts';

export type Transport = 'http' | 'sse' | 'ws';

/** What a door knows of one operation before anything of it runs. */
export interface Caller {
  /** Null for somebody without a credential, who may at most read the schema (and only where that is open). */
  readonly actor: Actor | null;
  /** The life of the credential; null for an operation that answers once over HTTP. */
  readonly session: Session | null;
  readonly requestId: string;
  readonly transport: Transport;
  /** Aborted when the client has gone or has ended the operation. */
  readonly signal: AbortSignal | null;
  /** `Last-Event-ID` of an SSE reconnection. */
  readonly lastEventId: string | null;
}

/** A caller with a credential: what a GraphQL context is made of, afresh for each event of a subscription. */
export type KnownCaller = Caller & { readonly actor: Actor };

/** Makes the context value that resolvers get. */
export type CreateContext = (caller: KnownCaller) => object;

export const isKnown = (caller: Caller): caller is KnownCaller => caller.actor !== null;

/** The caller as of now: a renewal or an ending may have come since the operation began. */
export const asOfNow = (caller: KnownCaller): KnownCaller =>
  caller.session === null ? caller : { ...caller, actor: caller.session.actor };
