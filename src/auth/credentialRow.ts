import type { TenantActor } from './actor.ts';
import type { Identified } from './credentialCache.ts';
import { READING_COLUMNS, type Reading } from './revocations.ts';

/** Columns that say whom a credential `c` of a user `u` speaks for. */
export interface CredentialRow extends Reading {
  readonly id: string;
  readonly owner_id: string;
  readonly kind: TenantActor['kind'];
  readonly participant_id: string | null;
  readonly run_id: string | null;
  readonly expires: number | null;
}

export const CREDENTIAL_COLUMNS = `c.id, c.owner_id, c.kind::text AS kind, c.participant_id, c.run_id,
  (extract(epoch FROM c.expires_at) * 1000)::float8 AS expires, ${READING_COLUMNS}`;

/** Neither revoked nor expired, and of a user who is there. */
export const CREDENTIAL_IS_ALIVE = `c.revoked_at IS NULL AND u.deleted_at IS NULL
  AND (c.expires_at IS NULL OR c.expires_at > clock_timestamp())`;

/** Throws for a row that cannot be: a token without its participant. */
export const identifiedBy = (row: CredentialRow, actAs: string | null): Identified => ({
  actor: actorOf(row, actAs),
  credentialId: row.id,
  expiresAt: row.expires,
});

const actorOf = (row: CredentialRow, actAs: string | null): TenantActor => {
  const { kind, id: credentialId, owner_id: userId, participant_id: participantId, run_id: runId } = row;
  if (kind === 'API_KEY') return { kind, userId, credentialId, actAs };
  if (participantId === null) throw new Error(`Credential ${credentialId} has no participant.`);
  if (kind === 'PARTICIPANT_TOKEN') return { kind, userId, credentialId, participantId };
  if (runId === null) throw new Error(`Credential ${credentialId} has no run.`);
  return { kind, userId, credentialId, participantId, runId };
};
