import {
  actingParticipant,
  ownParticipant,
  refuseRunToken,
  requireOwner,
  requireTenant,
  viewerOf,
} from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import type { ChangeMember, MemberChange } from '../scratchpads/fencing.ts';
import { inputHash, type Json } from '../shared/canonical.ts';
import { badInput, forbidden, notFound } from '../shared/errors.ts';
import { newId } from '../shared/ids.ts';
import { LIMITS, requireIdempotencyKey, requireObject } from '../shared/input.ts';
import { type Database, required, statement } from '../storage/database.ts';
import { eventFromRow, type MemberState, type StateChangedEvent } from '../timeline/events.ts';
import { type Announce, requireThreadId } from '../timeline/timeline.ts';

export interface OpenInput {
  readonly participantIds: readonly string[];
  readonly threadOnly?: boolean | null | undefined;
  readonly metaData?: Json | undefined;
  readonly idempotencyKey?: string | null | undefined;
}

export interface ExtendInput {
  readonly threadId: string;
  readonly participantIds: readonly string[];
  readonly as?: string | null | undefined;
  readonly idempotencyKey?: string | null | undefined;
}

export interface OpenedThread {
  readonly threadId: string;
  readonly created: boolean;
  readonly viewerId: string | null;
}

interface OpenedRow {
  thread_id: string;
  created: boolean;
}

const OPEN = statement<OpenedRow>(
  'open_thread',
  'SELECT * FROM open_thread($1, $2::text[], $3, $4, $5, $6::jsonb, $7, $8, $9)',
);
const EXTEND = statement<OpenedRow & { earlier_seq: number | null; later_seq: number | null }>(
  'extend_thread',
  'SELECT * FROM extend_thread($1, $2, $3, $4::text[], $5, $6, $7, $8, $9::text[], $10, $11, $12)',
);
const ID_OF = statement<{ id: string }>(
  'thread_of_set',
  'SELECT id FROM threads WHERE owner_id = $1 AND set_hash = tp_set_hash($2::text[]) AND deleted_at IS NULL',
);
const SET_MEMORY_POLICY = statement<{ woken: string[] }>(
  'set_memory_policy',
  'SELECT tp_woken() AS woken FROM (SELECT set_memory_policy($1, $2, $3, $4) OFFSET 0) a',
);
const DELETE = statement<{ members: string[]; scratchpad_id: string | null }>(
  'delete_thread',
  'SELECT * FROM delete_thread($1, $2, $3, $4)',
);

export const createThreads = ({
  database,
  announce,
  changeMember,
  padDeleted,
  requireVisibleParticipants,
}: {
  database: Database;
  announce: Announce;
  changeMember: ChangeMember;
  /** A scratchpad went with its thread. */
  padDeleted(scratchpadId: string): void;
  /** Throws NOT_FOUND for participants that the actor may not see. */
  requireVisibleParticipants(actor: Actor, ids: readonly string[]): Promise<void>;
}) => ({
  /**
   * Finds or creates the thread of a set: order and repeats do not matter. Changes nothing on an existing one.
   * Errors: BAD_USER_INPUT (fewer than 2, more than 256), NOT_FOUND, FORBIDDEN, CONFLICT, IDEMPOTENCY_KEY_REUSED.
   */
  async open(actor: Actor, input: OpenInput): Promise<OpenedThread> {
    const tenant = refuseRunToken(requireTenant(actor));
    const participantIds = [...new Set(input.participantIds)];
    requireSetSize(participantIds.length);
    const metaData = requireMetaData(input.metaData);
    const threadOnly = input.threadOnly ?? null;
    const own = ownParticipant(tenant);
    if (own !== null && !participantIds.includes(own))
      throw forbidden('A participant can open only threads it is in itself.');
    if (tenant.kind !== 'API_KEY' && (threadOnly === false || metaData !== null))
      throw forbidden('Only the user sets threadOnly: false or metaData.');
    const key = requireIdempotencyKey(input.idempotencyKey);
    await requireVisibleParticipants(actor, participantIds);
    const [row] = await database.query(OPEN, [
      tenant.userId,
      participantIds,
      newId('Thread'),
      newId('Event'),
      threadOnly,
      metaData === null ? null : JSON.stringify(metaData),
      own ?? '',
      key,
      key === null ? null : inputHash({ participantIds: [...participantIds].sort(), threadOnly, metaData }),
    ]);
    const { thread_id: threadId, created } = required(row);
    if (created) announce.changed(tenant.userId, threadId);
    return { threadId, created, viewerId: own };
  },

  /** The id of the thread of exactly this set, whoever may see it; null if there is none. Reading never creates. */
  async idOf(actor: Actor, participantIds: readonly string[]): Promise<string | null> {
    const tenant = requireTenant(actor);
    const distinct = [...new Set(participantIds)];
    requireSetSize(distinct.length);
    const [row] = await database.query(ID_OF, [tenant.userId, distinct]);
    return row?.id ?? null;
  },

  /**
   * Opens the thread of the larger set. An active member or the owner; at least one participant not in the set.
   * Errors: BAD_USER_INPUT, NOT_FOUND, PARTICIPANT_NOT_ACTIVE, IDEMPOTENCY_KEY_REUSED.
   */
  async extend(actor: Actor, input: ExtendInput): Promise<OpenedThread> {
    const tenant = refuseRunToken(requireTenant(actor));
    const actorId = viewerOf(tenant, input.as);
    requireThreadId(input.threadId);
    const added = [...new Set(input.participantIds)];
    if (added.length === 0)
      throw badInput('participantIds is empty: name those to add.', { field: 'participantIds' });
    if (added.length > LIMITS.maxParticipants)
      throw badInput(`A thread has at most ${LIMITS.maxParticipants} participants.`, {
        field: 'participantIds',
        limit: LIMITS.maxParticipants,
      });
    const key = requireIdempotencyKey(input.idempotencyKey);
    await requireVisibleParticipants(actor, added);
    const [row] = await database.query(EXTEND, [
      tenant.userId,
      input.threadId,
      actorId,
      added,
      newId('Thread'),
      newId('Event'),
      newId('Event'),
      newId('Event'),
      Array.from({ length: LIMITS.maxParticipants }, () => newId('Event')),
      LIMITS.maxParticipants,
      key,
      key === null ? null : inputHash({ added: [...added].sort() }),
    ]);
    const { thread_id: threadId, created, earlier_seq: earlierSeq, later_seq: laterSeq } = required(row);
    if (created) announce.changed(tenant.userId, threadId);
    if (earlierSeq !== null) announce.moved(tenant.userId, input.threadId, earlierSeq);
    if (laterSeq !== null) announce.moved(tenant.userId, threadId, laterSeq);
    return { threadId, created, viewerId: actorId };
  },

  /** Removes or re-adds a member. The owner's. Errors: NOT_FOUND, INVALID_TRANSITION. */
  async changeState(
    actor: Actor,
    input: { readonly threadId: string; readonly participantId: string },
    to: MemberState,
  ): Promise<{ event: StateChangedEvent; viewerId: string | null }> {
    const owner = requireOwner(actor);
    requireThreadId(input.threadId);
    const event = await change(changeMember, {
      ownerId: owner.userId,
      threadId: input.threadId,
      memberId: owner.actAs,
      participantId: input.participantId,
      to,
      actorId: null,
      credentialId: owner.credentialId,
    });
    announce.event(event);
    return { event, viewerId: owner.actAs };
  },

  /** A member removes itself. Errors: NOT_FOUND, INVALID_TRANSITION. */
  async leave(
    actor: Actor,
    input: { readonly threadId: string; readonly as?: string | null | undefined },
  ): Promise<{ event: StateChangedEvent; viewerId: string }> {
    const tenant = refuseRunToken(requireTenant(actor));
    const participantId = actingParticipant(tenant, input.as);
    requireThreadId(input.threadId);
    const event = await change(changeMember, {
      ownerId: tenant.userId,
      threadId: input.threadId,
      memberId: participantId,
      participantId,
      to: 'REMOVED',
      actorId: participantId,
      credentialId: tenant.credentialId,
    });
    announce.event(event);
    return { event, viewerId: participantId };
  },

  /** Replaces `metaData` whole. The owner's. */
  async update(actor: Actor, input: { readonly threadId: string; readonly metaData: Json }): Promise<void> {
    const owner = requireOwner(actor);
    const metaData = requireObject(input.metaData, 'metaData', LIMITS.metaData);
    await setMetaData(database, owner.userId, owner.actAs, input.threadId, metaData as object);
    announce.changed(owner.userId, input.threadId);
  },

  /** Whether memory stored from now on stays in this thread. The owner's. */
  async setMemoryPolicy(
    actor: Actor,
    input: { readonly threadId: string; readonly threadOnly: boolean },
  ): Promise<void> {
    const owner = requireOwner(actor);
    requireThreadId(input.threadId);
    const [row] = await database.query(SET_MEMORY_POLICY, [
      owner.userId,
      input.threadId,
      owner.actAs,
      input.threadOnly,
    ]);
    announce.woken(required(row).woken);
    announce.changed(owner.userId, input.threadId);
  },

  /** Deletes a thread: invisible at once. The owner's. */
  async delete(actor: Actor, input: { readonly threadId: string }): Promise<void> {
    const owner = requireOwner(actor);
    requireThreadId(input.threadId);
    if (owner.actAs !== null) await requireMember(database, owner.userId, input.threadId, owner.actAs);
    const [row] = await database.query(DELETE, [
      owner.userId,
      input.threadId,
      newId('Audit'),
      owner.credentialId,
    ]);
    const { members, scratchpad_id: scratchpadId } = required(row);
    announce.deleted(owner.userId, input.threadId, members);
    if (scratchpadId !== null) padDeleted(scratchpadId);
  },
});

const change = async (
  changeMember: ChangeMember,
  by: Omit<MemberChange, 'eventId' | 'auditId'>,
): Promise<StateChangedEvent> => {
  const row = await changeMember({ ...by, eventId: newId('Event'), auditId: newId('Audit') });
  return eventFromRow(row) as StateChangedEvent;
};

const setMetaData = async (
  database: Database,
  ownerId: string,
  actAs: string | null,
  threadId: string,
  metaData: object,
): Promise<void> => {
  requireThreadId(threadId);
  if (actAs !== null) await requireMember(database, ownerId, threadId, actAs);
  const { count } = await database.prisma.thread.updateMany({
    where: { id: threadId, ownerId, deletedAt: null },
    data: { metaData },
  });
  if (count === 0) throw notFound('Thread');
};

/** `X-Act-As` narrows what an API key addresses to what that participant is in. */
const requireMember = async (
  database: Database,
  ownerId: string,
  threadId: string,
  participantId: string,
): Promise<void> => {
  const member = await database.prisma.threadMember.findUnique({
    where: { ownerId_threadId_participantId: { ownerId, threadId, participantId } },
    select: { participantId: true },
  });
  if (member === null) throw notFound('Thread');
};

const requireSetSize = (size: number): void => {
  if (size < LIMITS.minParticipants || size > LIMITS.maxParticipants)
    throw badInput(
      `A thread has ${LIMITS.minParticipants} to ${LIMITS.maxParticipants} distinct participants.`,
      {
        field: 'participantIds',
        limit: LIMITS.maxParticipants,
      },
    );
};

const requireMetaData = (metaData: Json | undefined): { readonly [key: string]: Json | undefined } | null =>
  metaData === undefined || metaData === null ? null : requireObject(metaData, 'metaData', LIMITS.metaData);
