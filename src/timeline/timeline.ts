import { actingParticipant, requireTenant } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import { inputHash, type Json } from '../shared/canonical.ts';
import { NOWHERE, parseTimelineCursor, readTimelineCursor } from '../shared/cursors.ts';
import { badInput, DomainError, notFound } from '../shared/errors.ts';
import { isId, newId } from '../shared/ids.ts';
import {
  LIMITS,
  requireBytes,
  requireCharacters,
  requireIdempotencyKey,
  requireJson,
} from '../shared/input.ts';
import type { Lanes } from '../shared/lanes.ts';
import { type Database, statement } from '../storage/database.ts';
import {
  eventFromRow,
  type MessageContext,
  type MessageEvent,
  type RetractionEvent,
  type TimelineEvent,
  type TimelineRow,
} from './events.ts';

/** Who is told after a commit. Never awaited by the writer; losing it costs latency only. */
export interface Announce {
  event(event: TimelineEvent): void;
  /** The thread has reached `seq`, by an event that the caller does not hold. */
  moved(ownerId: string, threadId: string, seq: number): void;
  /** Something that lists show changed beside the timeline: for everybody, or for one member. */
  changed(ownerId: string, threadId: string, participantId?: string): void;
  deleted(ownerId: string, threadId: string, memberIds: readonly string[]): void;
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
}

export interface MessageContextInput {
  readonly kind?: string | null | undefined;
  readonly task?: string | null | undefined;
  readonly originatingMessageId?: string | null | undefined;
}

const APPEND = statement<TimelineRow>(
  'append_message',
  `SELECT * FROM append_message($1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8::text[], $9::text[], $10, $11, $12, $13, $14, $15, $16, $17::text[])`,
);
const RETRACT = statement<TimelineRow>(
  'retract_message',
  'SELECT * FROM retract_message($1, $2, $3, $4, $5)',
);
const ACKNOWLEDGE = statement('acknowledge', 'SELECT acknowledge($1, $2, $3, $4, $5)');

export const createTimeline = ({
  database,
  announce,
  maxAgentHops,
  lanes,
  visibleEntries,
}: {
  database: Database;
  /** Which of these entries of scratchpads a participant may see now. Errors: UNAVAILABLE. */
  visibleEntries: (ownerId: string, viewerId: string, ids: readonly string[]) => Promise<readonly string[]>;
  /** Writers of one thread wait for each other here, not on a connection. */
  lanes: Lanes;
  announce: Announce;
  maxAgentHops: number;
}) => ({
  /**
   * Appends a message as an active member. One round trip to the database; entries among its sources are looked up
   * before, and what of them cannot be seen refuses only what was not posted already.
   * Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, FORBIDDEN, NOT_FOUND, PARTICIPANT_NOT_ACTIVE, IDEMPOTENCY_KEY_REUSED,
   * STALE_VIEW, INVALID_CURSOR, LOOP_LIMIT, UNAVAILABLE.
   */
  async post(actor: Actor, input: PostInput): Promise<{ event: MessageEvent; viewerId: string }> {
    const tenant = requireTenant(actor);
    const senderId = actingParticipant(tenant, input.as);
    requireThreadId(input.threadId);
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
    const entryIds = sourceIds.filter((source) => isId('ScratchpadEntry', source));
    const append = (seen: readonly string[]) =>
      lanes.run(input.threadId, () =>
        database.query(APPEND, [
          tenant.userId,
          input.threadId,
          senderId,
          id,
          content,
          data === null ? null : JSON.stringify(data),
          context === null ? null : JSON.stringify(context),
          mentionIds,
          sourceIds,
          key,
          hash,
          condition?.seq ?? null,
          condition?.tag ?? null,
          upTo?.seq ?? null,
          upTo?.tag ?? null,
          maxAgentHops,
          seen,
        ]),
      );
    const [row] = await (entryIds.length === 0
      ? append([])
      : appendSeeing(append, visibleEntries(tenant.userId, senderId, entryIds)));
    const event = eventFromRow(required(row)) as MessageEvent;
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
    },
  ): Promise<{ event: RetractionEvent; viewerId: string }> {
    const tenant = requireTenant(actor);
    const actorId = actingParticipant(tenant, input.as);
    const reason = input.reason ?? null;
    if (reason !== null) requireBytes(reason, 'reason', LIMITS.reason);
    if (!isId('Event', input.messageId)) throw notFound('Message');
    const [row] = await database.query(RETRACT, [
      tenant.userId,
      input.messageId,
      actorId,
      newId('Event'),
      reason,
    ]);
    const event = eventFromRow(required(row)) as RetractionEvent;
    announce.event(event);
    return { event, viewerId: actorId };
  },

  /** Moves one's read position forward; an earlier one does nothing. Errors: NOT_FOUND, INVALID_CURSOR. */
  async acknowledge(
    actor: Actor,
    input: { readonly threadId: string; readonly as?: string | null | undefined; readonly upTo: string },
  ): Promise<{ viewerId: string }> {
    const tenant = requireTenant(actor);
    const participantId = actingParticipant(tenant, input.as);
    requireThreadId(input.threadId);
    const { seq, tag } = parseTimelineCursor(input.upTo, input.threadId, 'upTo');
    await lanes.run(input.threadId, () =>
      database.query(ACKNOWLEDGE, [tenant.userId, input.threadId, participantId, seq, tag]),
    );
    announce.changed(tenant.userId, input.threadId, participantId);
    return { viewerId: participantId };
  },
});

/**
 * A source that is neither an event nor `seen` refuses the append, unless it is a replay: so where it could not be told
 * which are seen, what was posted before is answered, and all else fails as the look did.
 */
const appendSeeing = async <T>(
  append: (seen: readonly string[]) => Promise<T>,
  looking: Promise<readonly string[]>,
): Promise<T> => {
  let seen: readonly string[] = [];
  let failure: unknown = null;
  try {
    seen = await looking;
  } catch (error) {
    failure = error;
  }
  try {
    return await append(seen);
  } catch (error) {
    const isUnseen =
      error instanceof DomainError && error.code === 'NOT_FOUND' && error.facts.field === 'sourceIds';
    throw isUnseen && failure !== null ? failure : error;
  }
};

const required = <T>(row: T | undefined): T => {
  if (row === undefined) throw new Error('The database answered no row.');
  return row;
};

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

const requireIds = (ids: readonly string[] | null | undefined, field: string, limit: number): string[] => {
  const distinct = [...new Set(ids ?? [])];
  if (distinct.length > limit) throw badInput(`${field} names more than ${limit}.`, { field, limit });
  for (const id of distinct) requireCharacters(id, field, 128);
  return distinct;
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
