import type { RunScope, ScratchpadAccess, TenantActor } from './actor.ts';
import type { Identified } from './credentialCache.ts';
import { READING_COLUMNS, type Reading } from './revocations.ts';

/** Columns that say whom a credential speaks for. */
export interface CredentialRow extends Reading {
  readonly id: string;
  readonly owner_id: string;
  readonly kind: TenantActor['kind'];
  readonly participant_id: string | null;
  readonly run_id: string | null;
  readonly conversation_thread_id: string | null;
  readonly scratchpad_id: string | null;
  readonly access: ScratchpadAccess | null;
  readonly pad_viewer_id: string | null;
  readonly is_delegators: boolean;
  readonly expires: number | null;
}

/** What the columns and the condition below are of: a credential `c`, its user `u`, and its run `r` if it is one's. */
export const CREDENTIALS = `credentials c JOIN users u ON u.id = c.owner_id LEFT JOIN runs r ON r.id = c.run_id`;

export const CREDENTIAL_COLUMNS = `c.id, c.owner_id, c.kind::text AS kind, c.participant_id, c.run_id,
  r.conversation_thread_id, r.scratchpad_id, r.access::text AS access, r.pad_viewer_id,
  c.is_delegators,
  (extract(epoch FROM c.expires_at) * 1000)::float8 AS expires, ${READING_COLUMNS}`;

/** Neither revoked nor expired, of a user who is there, and of a run that is open if of any. */
export const CREDENTIAL_IS_ALIVE = `c.revoked_at IS NULL AND u.deleted_at IS NULL
  AND (c.expires_at IS NULL OR c.expires_at > clock_timestamp())
  AND r.finished_at IS NULL`;

/** Throws for a row that cannot be: a token without its participant. */
export const identifiedBy = (row: CredentialRow, actAs: string | null): Identified => ({
  actor: actorOf(row, actAs),
  credentialId: row.id,
  expiresAt: row.expires,
});

const actorOf = (row: CredentialRow, actAs: string | null): TenantActor => {
  const { kind, id: credentialId, owner_id: userId, participant_id: participantId } = row;
  if (kind === 'API_KEY') return { kind, userId, credentialId, actAs };
  if (participantId === null) throw new Error(`Credential ${credentialId} has no participant.`);
  if (kind === 'PARTICIPANT_TOKEN') return { kind, userId, credentialId, participantId };
  return { kind, userId, credentialId, ...scopeOf(row, participantId) };
};

const scopeOf = (row: CredentialRow, participantId: string): RunScope => {
  const { run_id: runId, conversation_thread_id: conversationThreadId, access } = row;
  if (runId === null || conversationThreadId === null || access === null)
    throw new Error(`Credential ${row.id} has no run.`);
  return {
    runId,
    participantId,
    conversationThreadId,
    access,
    scratchpadId: row.scratchpad_id,
    padViewerId: row.pad_viewer_id,
    isDelegators: row.is_delegators,
  };
};
