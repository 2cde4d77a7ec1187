import type { Actor } from '../auth/actor.ts';
import type { Session } from '../auth/session.ts';
import type { Loaders } from '../loaders.ts';
import type { Services } from '../services.ts';

export type Transport = 'http' | 'sse' | 'ws';

/** What a resolver has at hand. Made for one operation, and afresh for each event of a subscription. */
export interface GraphQLContext {
  readonly actor: Actor;
  /** The life of the credential; null for an operation that answers once over HTTP. */
  readonly session: Session | null;
  readonly requestId: string;
  readonly transport: Transport;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
  /** `Last-Event-ID` of an SSE reconnection: goes before `after`. */
  readonly lastEventId: string | null;
  readonly services: Services;
  /** Batches and one look per operation. Each mutation field starts afresh: `loaders` is replaced then. */
  loaders: Loaders;
}
