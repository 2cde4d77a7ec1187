import type { TenantActor } from '../auth/actor.ts';
import type { Run } from './rows.ts';

/**
 * Who may see a run: the owner, its worker and its delegator; under a run token its own run and that run's children.
 * `viewerId`: whose view is answered, null for the owner's.
 */
export const seesRun = (
  actor: TenantActor,
  run: Pick<Run, 'id' | 'ownerId' | 'participantId' | 'delegatorId' | 'parentRunId'>,
  viewerId: string | null,
): boolean => {
  if (run.ownerId !== actor.userId) return false;
  if (actor.kind === 'RUN_TOKEN') return run.id === actor.runId || run.parentRunId === actor.runId;
  return viewerId === null || run.participantId === viewerId || run.delegatorId === viewerId;
};
