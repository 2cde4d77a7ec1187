import type { Prisma } from '../storage/generated/prisma/client.ts';
import { ownParticipant } from './acting.ts';
import type { Actor, TenantActor } from './actor.ts';

/**
 * Who may see which row, as conditions: services, `node`, relations and every other door put them into their
 * queries, so that what may not be seen is never read. (What of a thread's record may be seen is the look's.)
 */

/** The owner sees all; a participant itself, those it shares a thread with, and the listed. */
export const visibleParticipants = (actor: TenantActor): Prisma.ParticipantWhereInput => {
  const viewer = ownParticipant(actor);
  return viewer === null ? { ownerId: actor.userId } : visibleTo(actor.userId, viewer);
};

const visibleTo = (ownerId: string, viewer: string): Prisma.ParticipantWhereInput => ({
  ownerId,
  OR: [
    { id: viewer },
    { listed: true },
    {
      memberships: { some: { thread: { deletedAt: null, members: { some: { participantId: viewer } } } } },
    },
  ],
});

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
