import { newId } from '../shared/ids.ts';
import type { Prisma } from '../storage/generated/prisma/client.ts';
import { ownParticipant } from './acting.ts';
import type { Actor } from './actor.ts';

type AuditAct =
  | 'user.created'
  | 'user.deleted'
  | 'credential.created'
  | 'credential.revoked'
  | 'participant.created'
  | 'participant.updated';

interface AuditEntry {
  readonly ownerId: string;
  readonly act: AuditAct;
  readonly subjectId: string;
  /** Facts, never secrets or content. */
  readonly details?: Prisma.InputJsonObject;
}

/** Who did what, in the transaction that does it: neither is ever there without the other. */
export const appendAudit = async (
  tx: Prisma.TransactionClient,
  actor: Actor,
  entries: readonly AuditEntry[],
): Promise<void> => {
  const by =
    actor.kind === 'ADMIN'
      ? { credentialId: null, actorId: null }
      : { credentialId: actor.credentialId, actorId: ownParticipant(actor) };
  await tx.auditLog.createMany({
    data: entries.map((entry) => ({ id: newId('Audit'), ...by, details: {}, ...entry })),
  });
};
