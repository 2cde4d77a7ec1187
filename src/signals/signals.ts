import { actingParticipant, requireReach, requireTenant } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import type { Bus } from '../live/bus.ts';
import type { Json } from '../shared/canonical.ts';
import { badInput, DomainError, notFound, rateLimited } from '../shared/errors.ts';
import {
  LIMITS,
  requireBytes,
  requireCharacters,
  requireIdempotencyKey,
  requireJson,
} from '../shared/input.ts';
import type { Looks } from '../timeline/looks.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import { type Buckets, createBuckets } from './buckets.ts';

/** What somebody does just now. Never stored. */
export interface Signal {
  readonly participantId: string;
  /** `typing`, `working`, `token`, or any other. */
  readonly kind: string;
  /** The idempotency key of the message that is coming. */
  readonly clientKey: string | null;
  /** Where `text` goes on in what is coming. */
  readonly offset: number | null;
  readonly text: string | null;
  readonly data: Json;
  readonly runId: string | null;
  /** RFC 3339 in UTC. */
  readonly at: string;
  /** How far the thread was: who is active there may see it. */
  readonly seq: number;
}

export interface SignalInput {
  readonly threadId: string;
  readonly as?: string | null | undefined;
  readonly kind: string;
  readonly clientKey?: string | null | undefined;
  readonly offset?: number | null | undefined;
  readonly text?: string | null | undefined;
  readonly data?: Json | undefined;
}

export const signalChannel = (threadId: string): string => `live:signals:${threadId}`;

/** Of one credential in one thread: tokens of an answer come fast, but not without end. */
const RATE = { perSecond: 50, burst: 200 };

export const createSignals = ({
  bus,
  looks,
  onSignal,
  buckets = createBuckets(RATE),
}: {
  bus: Bus;
  looks: Looks;
  /** Told of each signal that was sent. */
  onSignal(thread: { readonly ownerId: string; readonly threadId: string }, signal: Signal): void;
  buckets?: Buckets;
}) => ({
  /**
   * Tells the thread's active members what a member does just now, best effort: nothing is stored. Answers whether it
   * was handed on. Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, RATE_LIMITED.
   */
  async send(actor: Actor, input: SignalInput): Promise<{ delivered: boolean }> {
    const tenant = requireTenant(actor);
    const participantId = actingParticipant(tenant, input.as);
    const { threadId } = input;
    requireThreadId(threadId);
    requireReach(tenant, threadId);
    const content = contentOf(input);
    const wait = buckets.take(`${tenant.credentialId} ${threadId}`);
    if (wait > 0)
      throw rateLimited('Too many signals in this thread. Wait a little.', { retryAfterMs: wait });
    const answer = await looks.read({ ownerId: tenant.userId, threadId, viewerId: participantId });
    if (answer === null) throw notFound('Thread');
    if (answer.look.member?.state !== 'ACTIVE')
      throw new DomainError(
        'PARTICIPANT_NOT_ACTIVE',
        'The participant is not active in this thread; only an active member may signal.',
      );
    const signal: Signal = {
      ...content,
      participantId,
      runId: tenant.kind === 'RUN_TOKEN' ? tenant.runId : null,
      at: new Date().toISOString(),
      seq: answer.look.lastSeq,
    };
    onSignal({ ownerId: tenant.userId, threadId }, signal);
    return { delivered: await bus.publish(signalChannel(threadId), JSON.stringify(signal)) };
  },
});

const contentOf = ({ kind, clientKey, offset, text, data }: SignalInput) => {
  // What is coming is a message: it never is longer.
  if (typeof offset === 'number' && (offset < 0 || offset > LIMITS.messageContent))
    throw badInput(`offset must be 0 to ${LIMITS.messageContent}.`, { field: 'offset' });
  return {
    kind: requireCharacters(kind, 'kind', LIMITS.kind),
    clientKey: requireIdempotencyKey(clientKey, 'clientKey'),
    offset: offset ?? null,
    text: typeof text === 'string' ? requireBytes(text, 'text', LIMITS.signalText) : null,
    data: data === undefined || data === null ? null : requireJson(data as Json, 'data', LIMITS.signalData),
  };
};
