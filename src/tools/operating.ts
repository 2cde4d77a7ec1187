import { actingParticipant, requireTenant } from '../auth/acting.ts';
import type { Actor, TenantActor } from '../auth/actor.ts';
import type { Services } from '../services.ts';
import { badInput, forbidden } from '../shared/errors.ts';
import { requireThreadId } from '../timeline/timeline.ts';

/** Who works, and where: settled by the credential and by the runtime, never by a model. */
export interface Operating {
  readonly actor: TenantActor;
  /** Whom an API key acts as; undefined for a token. */
  readonly as: string | undefined;
  readonly ownerId: string;
  readonly participantId: string;
  /** Where results stand, and what the thread's tools are about. */
  readonly threadId: string;
  readonly run: OperatingRun | null;
}

export interface OperatingRun {
  readonly id: string;
  readonly scratchpadId: string | null;
  /** Through whose windows the scratchpad is seen; null: the owner’s. */
  readonly padViewerId: string | null;
}

interface WantedPlace {
  readonly threadId?: string | null | undefined;
  readonly as?: string | null | undefined;
}

export interface WantedOperating extends WantedPlace {
  /** With another credential than the run's own: to work there as its worker, confined as its token is. */
  readonly runId?: string | null | undefined;
}

/**
 * Where a runtime says that a call acts. Errors: as `operatingIn`; of a run also NOT_FOUND, FORBIDDEN (not its worker),
 * INVALID_TRANSITION (it is over).
 */
export const operatingWith = async (
  { runs }: Pick<Services, 'runs'>,
  actor: Actor,
  { runId, ...place }: WantedOperating,
): Promise<Operating> =>
  operatingIn(isGiven(runId) ? await runs.workerOf(actor, { runId, as: place.as }) : actor, place);

/** Errors: FORBIDDEN, BAD_USER_INPUT, NOT_FOUND (what cannot be a thread's id). */
export const operatingIn = (actor: Actor, { threadId, as }: WantedPlace): Operating => {
  const tenant = requireTenant(actor);
  const participantId = actingParticipant(tenant, as);
  const base = { actor: tenant, ownerId: tenant.userId, participantId };
  if (tenant.kind === 'RUN_TOKEN') {
    if (isGiven(threadId) && threadId !== tenant.conversationThreadId)
      throw forbidden('In a run one works in its conversation thread only.');
    const { padViewerId, scratchpadId } = tenant;
    const run = { id: tenant.runId, scratchpadId, padViewerId };
    return { ...base, as: undefined, threadId: tenant.conversationThreadId, run };
  }
  if (!isGiven(threadId))
    throw badInput('Name the thread that the worker is in: threadId.', { field: 'threadId' });
  requireThreadId(threadId);
  return { ...base, as: tenant.kind === 'API_KEY' ? participantId : undefined, threadId, run: null };
};

const isGiven = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;
