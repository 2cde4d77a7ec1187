import { actingParticipant, requireReach, requireTenant } from '../auth/acting.ts';
import type { Actor, RunScope } from '../auth/actor.ts';
import { runOf } from '../auth/sight.ts';
import { inputHash, type Json } from '../shared/canonical.ts';
import { NOWHERE, parseTimelineCursor, readTimelineCursor } from '../shared/cursors.ts';
import { badInput, notFound } from '../shared/errors.ts';
import { isId, newId } from '../shared/ids.ts';
import {
  LIMITS,
  requireBytes,
  requireCharacters,
  requireIdempotencyKey,
  requireIds,
  requireJson,
} from '../shared/input.ts';
import type { Lanes } from '../shared/lanes.ts';
import { type Database, required, statement } from '../storage/database.ts';
import {
  eventFromRow,
  type MessageContext,
  type MessageEvent,
  type RetractionEvent,
  type TimelineEvent,
  type TimelineRow,
} from './events.ts';
import { readEventsById } from './reads.ts';
import { appendSeeing, inReach } from './sources.ts';

/** Who is told after a commit. Never awaited by the writer; losing it costs latency only. */
export interface Announce {
  event(event: TimelineEvent): void;
  /** The thread has reached `seq`, by an event that the caller does not hold. */
  moved(ownerId: string, threadId: string, seq: number): void;
  /** Something that lists show changed beside the timeline: for everybody, or for one member. */
  changed(ownerId: string, threadId: string, participantId?: string): void;
  deleted(ownerId: string, threadId: string, memberIds: readonly string[]): void;
  /** These agents or units have something new in their inboxes: what `tp_woken()` said of the transaction. */
  woken(participantIds: readonly string[]): void;
  /** A stream of this agent or unit let its inbox go. */
  freed(participantId: string): void;
}

export interface PostInput {
  readonly threadId: string;
  readonly as?: string | null | undefined;
  readonly content: string;
  readonly data?: Json | undefined;
  readonly context?: MessageContextInput | null | undefined;
  readonly mentionIds?: readonly string[] | null | undefined;
  readonly sourceIds?: readonly string[] | null | undefined;
  readonly idempotencyKey?: string | null | undefined;
  readonly ifNothingAfter?: string | null | undefined;
  readonly acknowledgeUpTo?: string | null | undefined;
  /** A delivery in flight in this thread, acknowledged in the same commit. */
  readonly deliveryId?: string | null | undefined;
}

export interface MessageContextInput {
  readonly kind?: string | null | undefined;
  readonly task?: string | null | undefined;
  readonly originatingMessageId?: string | null | undefined;
}

const APPEND = statement<TimelineRow & { woken: string[] }>(
  'append_message',
  `SELECT r.*, tp_woken() AS woken FROM append_message($1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8::text[], $9::text[], $10, $11, $12, $13, $14, $15, $16, $17::text[], $18, $19) r`,
);
const RETRACT = statement<TimelineRow & { woken: string[] }>(
  'retract_message',
  'SELECT r.*, tp_woken() AS woken FROM retract_message($1, $2, $3, $4, $5) r',
);
const ACKNOWLEDGE = statement<{ woken: string[] }>(
  'acknowledge',
  'SELECT tp_woken() AS woken FROM (SELECT acknowledge($1, $2, $3, $4, $5, $6) OFFSET 0) a',
);

export const createTimeline = ({
  database,
  announce,
  maxAgentHops,
  lanes,
  visibleElsewhere,
}: {
  database: Database;
  /** Which of these entries of scratchpads, and memories, a participant may see now in this thread; `run` confines it. Errors: UNAVAILABLE. */
  visibleElsewhere: (
    ownerId: string,
    viewerId: string,
    ids: readonly string[],
    threadId: string,
    run: RunScope | null,
  ) => Promise<readonly string[]>;
  /** Writers of one thread wait for each other here, not on a connection. */
  lanes: Lanes;
  announce: Announce;
  maxAgentHops: number;
}) => ({
  /**
   * Appends a message as an active member. One round trip to the database; what is no event among its sources is looked up
   * before, and what of them cannot be seen refuses only what was not posted already.
   * Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, FORBIDDEN, NOT_FOUND, PARTICIPANT_NOT_ACTIVE, IDEMPOTENCY_KEY_REUSED, CONFLICT,
   * STALE_VIEW, INVALID_CURSOR, LOOP_LIMIT, UNAVAILABLE.
   */
  async post(actor: Actor, input: PostInput): Promise<{ event: MessageEvent; viewerId: string }> {
    const tenant = requireTenant(actor);
    const senderId = actingParticipant(tenant, input.as);
    requireThreadId(input.threadId);
    requireReach(tenant, input.threadId);
    const data = input.data ?? null;
    const content = requireBytes(input.content, 'content', LIMITS.messageContent);
    if (content === '' && data === null)
      throw badInput('content may be empty only where data is given.', { field: 'content' });
    if (data !== null) requireJson(data, 'data', LIMITS.messageData);
    const context = requireContext(input.context);
    const mentionIds = requireIds(input.mentionIds, 'mentionIds', LIMITS.mentions);
    const sourceIds = requireIds(input.sourceIds, 'sourceIds', LIMITS.sources);
    const key = requireIdempotencyKey(input.idempotencyKey);
    const condition = conditionAt(input.threadId, input.ifNothingAfter);
    const upTo = conditionAt(input.threadId, input.acknowledgeUpTo);
    const hash =
      key === null ? null : inputHash({ content, data, context: context as Json, mentionIds, sourceIds });
    const id = newId('Event');
    const elsewhere = sourceIds.filter((source) => !isId('Event', source));
    const run = runOf(tenant);
    const sources = run === null ? sourceIds : await inReach(database, tenant.userId, run, sourceIds);
    const bytes = Buffer.byteLength(content);
    const append = (seen: readonly string[]) =>
      lanes.runText({ ownerId: tenant.userId, bytes, key: input.threadId }, () =>
        database.query(APPEND, [
          tenant.userId,
          input.threadId,
          senderId,
          id,
          content,
          data === null ? null : JSON.stringify(data),
          context === null ? null : JSON.stringify(context),
          mentionIds,
          sources,
          key,
          hash,
          condition?.seq ?? null,
          condition?.tag ?? null,
          upTo?.seq ?? null,
          upTo?.tag ?? null,
          maxAgentHops,
          seen,
          run?.runId ?? null,
          input.deliveryId ?? null,
        ]),
      );
    const [row] = await (elsewhere.length === 0
      ? append([])
      : appendSeeing(append, visibleElsewhere(tenant.userId, senderId, elsewhere, input.threadId, run)));
    const event = eventFromRow(required(row)) as MessageEvent;
    announce.woken(required(row).woken);
    // A replay answers with the first message: nothing is new, and its sender may be removed by now.
    if (event.id === id) announce.event(event);
    return { event, viewerId: senderId };
  },

  /** Retracts a message of one's own. Errors: NOT_FOUND, BAD_USER_INPUT, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, ALREADY_RETRACTED. */
  async retract(
    actor: Actor,
    input: {
      readonly messageId: string;
      readonly as?: string | null | undefined;
      readonly reason?: string | null | undefined;
      /** The id of what is appended. */
      readonly eventId?: string | undefined;
    },
  ): Promise<{ event: RetractionEvent; viewerId: string }> {
    const tenant = requireTenant(actor);
    const actorId = actingParticipant(tenant, input.as);
    const reason = input.reason ?? null;
    if (reason !== null) requireBytes(reason, 'reason', LIMITS.reason);
    if (!isId('Event', input.messageId)) throw notFound('Message');
    const run = runOf(tenant);
    if (run !== null) {
      const [message] = await readEventsById(database, tenant.userId, [input.messageId]);
      if (message?.threadId !== run.conversationThreadId) throw notFound('Message');
    }
    const [row] = await database.query(RETRACT, [
      tenant.userId,
      input.messageId,
      actorId,
      input.eventId ?? newId('Event'),
      reason,
    ]);
    const event = eventFromRow(required(row)) as RetractionEvent;
    announce.event(event);
    announce.woken(required(row).woken);
    return { event, viewerId: actorId };
  },

  /**
   * Moves one's read position forward; an earlier one does nothing. A delivery in flight ends with it: all of it without `upTo`.
   * Errors: NOT_FOUND, INVALID_CURSOR, CONFLICT (not in flight any more), BAD_USER_INPUT (neither is given).
   */
  async acknowledge(
    actor: Actor,
    input: {
      readonly threadId: string;
      readonly as?: string | null | undefined;
      readonly upTo?: string | null | undefined;
      readonly deliveryId?: string | null | undefined;
    },
  ): Promise<{ viewerId: string }> {
    const tenant = requireTenant(actor);
    const participantId = actingParticipant(tenant, input.as);
    requireThreadId(input.threadId);
    requireReach(tenant, input.threadId);
    const upTo = input.upTo ?? null;
    const deliveryId = input.deliveryId ?? null;
    if (upTo === null && deliveryId === null)
      throw badInput('Say up to where: upTo, deliveryId, or both.', { field: 'upTo' });
    const position = upTo === null ? null : parseTimelineCursor(upTo, input.threadId, 'upTo');
    const [row] = await lanes.run(input.threadId, () =>
      database.query(ACKNOWLEDGE, [
        tenant.userId,
        input.threadId,
        participantId,
        position?.seq ?? null,
        position?.tag ?? null,
        deliveryId,
      ]),
    );
    announce.woken(required(row).woken);
    announce.changed(tenant.userId, input.threadId, participantId);
    return { viewerId: participantId };
  },
});

/** What cannot be a thread's id answers as a thread that never existed. */
export const requireThreadId = (threadId: string): void => {
  if (!isId('Thread', threadId)) throw notFound('Thread');
};

/**
 * Where a condition stands. What is no cursor of this thread's is refused by the database, as a position beyond the end:
 * conditions are looked at only where the idempotency key has no first result.
 */
const conditionAt = (threadId: string, cursor: string | null | undefined) => {
  if (cursor === null || cursor === undefined) return null;
  const position = readTimelineCursor(cursor);
  return position?.threadId === threadId ? position : NOWHERE;
};

/** A hint: stored and never branched on, unknown kinds kept. */
const requireContext = (input: MessageContextInput | null | undefined): MessageContext | null => {
  if (input === null || input === undefined) return null;
  const { kind, task, originatingMessageId } = input;
  const context: MessageContext = {
    ...(typeof kind === 'string' ? { kind: requireCharacters(kind, 'context.kind', LIMITS.kind) } : {}),
    ...(typeof task === 'string' ? { task: requireCharacters(task, 'context.task', LIMITS.task) } : {}),
    ...(typeof originatingMessageId === 'string'
      ? { originatingMessageId: requireCharacters(originatingMessageId, 'context.originatingMessageId', 128) }
      : {}),
  };
  requireJson(context as Json, 'context', LIMITS.messageContext);
  return Object.keys(context).length === 0 ? null : context;
};
