import { actingParticipant, requireTenant } from '../auth/acting.ts';
import type { Actor, TenantActor } from '../auth/actor.ts';

/** Whose inbox: an agent's or unit's main one, or that of one of its runs, for the run's conversation thread only. */
export interface Inbox {
  readonly ownerId: string;
  readonly participantId: string;
  /** Empty for the main one. */
  readonly runId: string;
  readonly threadId: string | null;
}

/** The inbox that a credential speaks for. That its participant is an agent or unit is the database's to say. */
export const inboxOf = (
  actor: Actor,
  as: string | null | undefined,
): { readonly inbox: Inbox; readonly tenant: TenantActor } => {
  const tenant = requireTenant(actor);
  const participantId = actingParticipant(tenant, as);
  const isRun = tenant.kind === 'RUN_TOKEN';
  return {
    tenant,
    inbox: {
      ownerId: tenant.userId,
      participantId,
      runId: isRun ? tenant.runId : '',
      threadId: isRun ? tenant.conversationThreadId : null,
    },
  };
};
