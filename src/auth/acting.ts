import { badInput, forbidden, notFound } from '../shared/errors.ts';
import type { Actor, TenantActor } from './actor.ts';
import { atThread, runOf } from './sight.ts';

/** Everything but the tenants' administration is closed to the administrator: it sees no content. */
export const requireTenant = (actor: Actor): TenantActor => {
  if (actor.kind === 'ADMIN')
    throw forbidden('The administrator may make and list users and issue API keys, nothing else.');
  return actor;
};

/** The participant a credential speaks for by itself: its own, or that of `X-Act-As`; null for the owner as such. */
export const ownParticipant = (actor: TenantActor): string | null =>
  actor.kind === 'API_KEY' ? actor.actAs : actor.participantId;

/**
 * Whose view is answered: `as`, else the nearest enclosing one (`inherited`), else the credential's own. Null is
 * the owner with the full record. An `as` that disagrees with a token or with `X-Act-As` is FORBIDDEN. That the
 * participant exists is the look's business: a stranger's view of a thread is none.
 */
export const viewerOf = (
  actor: TenantActor,
  as: string | null | undefined,
  inherited: string | null = null,
): string | null => {
  const own = ownParticipant(actor);
  if (own !== null) {
    if (as !== null && as !== undefined && as !== own)
      throw forbidden(
        actor.kind === 'API_KEY'
          ? '`as` disagrees with X-Act-As.'
          : 'A token sees and acts as its own participant only.',
      );
    return own;
  }
  return as ?? inherited;
};

/** Who acts: as `viewerOf`, but never nobody. */
export const actingParticipant = (actor: TenantActor, as: string | null | undefined): string => {
  const participantId = viewerOf(actor, as);
  if (participantId === null)
    throw badInput('Name the participant who acts: `as` in the input, or the header X-Act-As.', {
      field: 'as',
    });
  return participantId;
};

/** Throws NOT_FOUND for a thread that is out of reach, whoever is in it: a run token's is its conversation alone. */
export const requireReach = (actor: TenantActor, threadId: string): void => {
  if (atThread(runOf(actor), { threadId, viewerId: null }) === null) throw notFound('Thread');
};

/** What only the user may do, with an API key. */
export const requireOwner = (actor: Actor): Extract<Actor, { kind: 'API_KEY' }> => {
  if (actor.kind !== 'API_KEY') throw forbidden('Only the user itself may do this, with an API key.');
  return actor;
};

/** What is closed to run tokens. */
export const refuseRunToken = (actor: TenantActor): Exclude<TenantActor, { kind: 'RUN_TOKEN' }> => {
  if (actor.kind === 'RUN_TOKEN') throw forbidden('A run token may not do this.');
  return actor;
};

/** What only `ADMIN_TOKEN` may do. */
export const requireAdmin = (actor: Actor): void => {
  if (actor.kind !== 'ADMIN') throw forbidden('Only the administrator may do this, with ADMIN_TOKEN.');
};
