import type { Prisma } from '../storage/generated/prisma/client.ts';
import { viewerOf } from './acting.ts';
import type { Actor, TenantActor } from './actor.ts';

/**
 * Who may see which row, as conditions: services, `node`, relations and every other door put them into their
 * queries, so that what may not be seen is never read. (What of a thread's record may be seen is the look's.)
 */

/** Of a run's worker only the conversation counts among its threads. */
const inReach = (actor: TenantActor): Prisma.ThreadWhereInput =>
  actor.kind === 'RUN_TOKEN' ? { id: actor.conversationThreadId } : {};

/**
 * The owner sees all; a participant itself, those it shares a thread with, and the listed. `as`: what that one of the
 * owner's participants sees, nothing if it is none of them.
 */
export const visibleParticipants = (
  actor: TenantActor,
  as: string | null | undefined = null,
): Prisma.ParticipantWhereInput => {
  const ownerId = actor.userId;
  const viewer = viewerOf(actor, as);
  if (viewer === null) return { ownerId };
  const sharesThread = {
    thread: { ...inReach(actor), deletedAt: null, members: { some: { participantId: viewer } } },
  };
  return {
    ownerId,
    owner: { participants: { some: { id: viewer } } },
    OR: [{ id: viewer }, { listed: true }, { memberships: { some: sharesThread } }],
  };
};

/** The user's own are its API keys and all tokens of its participants; a participant's own are its tokens. */
export const visibleCredentials = (actor: TenantActor): Prisma.CredentialWhereInput => {
  switch (actor.kind) {
    case 'API_KEY':
      return { ownerId: actor.userId };
    case 'PARTICIPANT_TOKEN':
      return { ownerId: actor.userId, participantId: actor.participantId, kind: 'PARTICIPANT_TOKEN' };
    case 'RUN_TOKEN':
      return { ownerId: actor.userId, id: actor.credentialId };
  }
};

/** One's own tenant; all of them for the administrator. */
export const visibleUsers = (actor: Actor): Prisma.UserWhereInput =>
  actor.kind === 'ADMIN' ? { deletedAt: null } : { deletedAt: null, id: actor.userId };
