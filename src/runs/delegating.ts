import { requireReach, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor, ScratchpadAccess } from '../auth/actor.ts';
import { newSecret } from '../auth/secrets.ts';
import { runOf } from '../auth/sight.ts';
import { inputHash, type Json } from '../shared/canonical.ts';
import { DomainError, notFound } from '../shared/errors.ts';
import { isId, newId } from '../shared/ids.ts';
import { LIMITS, requireExpiry, requireIdempotencyKey, requireObject } from '../shared/input.ts';
import { type Database, required, statement } from '../storage/database.ts';
import { type Announce, requireThreadId } from '../timeline/timeline.ts';
import { jsonOrNull, legacyLocator, requireToolCalls } from './input.ts';
import { runFromRow, type TokenOfRun, type WokenRow } from './rows.ts';

interface DelegateInput {
  /** Who is to work. */
  readonly participantId: string;
  readonly as?: string | null | undefined;
  /** Absent: a private thread is opened for the worker. */
  readonly conversationThreadId?: string | null | undefined;
  /** Absent: the parent's, that of `metaData.scratch_pad_thread`, or none. */
  readonly scratchpadId?: string | null | undefined;
  readonly scratchpadAccess?: ScratchpadAccess | null | undefined;
  /** A run token's own if absent. */
  readonly parentRunId?: string | null | undefined;
  readonly input?: Json | undefined;
  readonly metaData?: Json | undefined;
  readonly maxToolCalls?: number | null | undefined;
  readonly expiresInSeconds?: number | null | undefined;
  readonly idempotencyKey?: string | null | undefined;
}

const DELEGATE = statement<WokenRow>(
  'delegate_run',
  `SELECT r.*, tp_woken() AS woken FROM delegate_run(
     $1, $2, $3, $4, $5::scratchpad_accesses, $6, $7, $8::jsonb, $9::jsonb, $10, $11, $12, $13, $14::text[], $15::text[], $16, $17) r`,
);

export interface DelegatingDeps {
  readonly database: Database;
  readonly announce: Pick<Announce, 'changed' | 'woken'>;
  /** Tokens were ended, or end at another time, in a transaction that is committed. */
  announceEndings(): void;
  /** Throws NOT_FOUND for participants that the actor may not see. */
  requireVisibleParticipants(actor: Actor, ids: readonly string[], as?: string | null): Promise<void>;
  /** The thread's scratchpad, made if it is missing by whoever may. Errors: NOT_FOUND, PARTICIPANT_NOT_ACTIVE, FORBIDDEN. */
  ensurePad(
    actor: Actor,
    input: { readonly threadId: string; readonly as?: string | null | undefined },
  ): Promise<{ readonly pad: { readonly scratchpadId: string } }>;
}

/**
 * Delegates a run to an agent or unit: as the owner, as an active member of the scratchpad's thread, or from within a
 * run as its child, no wider and no longer than itself. The token speaks as the worker; where that would show a
 * delegator more than it sees itself (a conversation that was there before, a wider view of the scratchpad) it is dead
 * from the beginning, and the worker's own claim gives one that works.
 * Errors: NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, CONFLICT (`existingId`), INVALID_TRANSITION (the parent has ended: `status`),
 * BAD_USER_INPUT, PAYLOAD_TOO_LARGE, IDEMPOTENCY_KEY_REUSED.
 */
export const createDelegate = ({
  database,
  announce,
  announceEndings,
  requireVisibleParticipants,
  ensurePad,
}: DelegatingDeps) => {
  /** What is named and must be seen. What fails here is no matter to a call that is repeated: it is answered as it was. */
  const look = async (
    actor: Actor,
    { participantId, viewerId, locator, as }: Named,
  ): Promise<{ readonly scratchpadId: string | null; readonly failure?: DomainError }> => {
    try {
      await requireVisibleParticipants(actor, [participantId], viewerId);
      const pad = locator === null ? null : (await ensurePad(actor, { threadId: locator, as })).pad;
      return { scratchpadId: pad?.scratchpadId ?? null };
    } catch (error) {
      if (!(error instanceof DomainError) || error.code === 'UNAVAILABLE') throw error;
      return { scratchpadId: null, failure: error };
    }
  };

  return async (actor: Actor, input: DelegateInput): Promise<TokenOfRun> => {
    const tenant = requireTenant(actor);
    const viewerId = viewerOf(tenant, input.as);
    const own = runOf(tenant);
    const { participantId, conversationThreadId = null, scratchpadAccess = null } = input;
    if (!isId('Participant', participantId)) throw notFound('Participant');
    const parentRunId = input.parentRunId ?? own?.runId ?? null;
    if (own !== null && parentRunId !== own.runId) throw notFound('Run');
    if (conversationThreadId !== null) {
      requireThreadId(conversationThreadId);
      requireReach(tenant, conversationThreadId);
    }
    if (input.metaData !== undefined && input.metaData !== null)
      requireObject(input.metaData, 'metaData', LIMITS.metaData);
    const work = jsonOrNull(input.input, 'input');
    const metaData = jsonOrNull(input.metaData, 'metaData');
    const maxToolCalls = requireToolCalls(input.maxToolCalls);
    const expiresInSeconds = requireExpiry(input.expiresInSeconds);
    const key = requireIdempotencyKey(input.idempotencyKey);
    const given = input.scratchpadId || null;
    if (given !== null && !isId('Scratchpad', given)) throw notFound('Scratchpad');
    const locator = parentRunId === null && given === null ? legacyLocator(input.metaData) : null;

    const found = await look(actor, { participantId, viewerId, locator, as: input.as });
    if (found.failure !== undefined && key === null) throw found.failure;
    const secret = newSecret('RUN_TOKEN');
    const id = newId('Run');
    const rows = await database
      .query(DELEGATE, [
        tenant.userId,
        viewerId,
        participantId,
        given ?? found.scratchpadId,
        scratchpadAccess,
        parentRunId,
        conversationThreadId,
        work,
        metaData,
        maxToolCalls,
        expiresInSeconds,
        key,
        key === null
          ? null
          : inputHash({
              participantId,
              conversationThreadId,
              scratchpadId: given,
              scratchpadAccess,
              parentRunId,
              input: input.input ?? null,
              metaData: input.metaData ?? null,
              maxToolCalls,
              expiresInSeconds,
            }),
        [
          id,
          newId('Credential'),
          newId('Thread'),
          newId('Event'),
          newId('Participant'),
          newId('Audit'),
          newId('Audit'),
        ],
        [secret.prefix, secret.hash],
        tenant.credentialId,
        found.failure !== undefined,
      ])
      .catch((error: unknown) => {
        const isRefusal = error instanceof DomainError && error.code === 'NOT_FOUND';
        throw isRefusal && found.failure !== undefined ? found.failure : error;
      });
    const row = required(rows[0]);
    const run = runFromRow(row);
    announce.woken(row.woken);
    if (run.id !== id) announceEndings();
    else if (conversationThreadId === null && run.conversationThreadId !== null)
      announce.changed(tenant.userId, run.conversationThreadId);
    return { run, viewerId, token: secret.secret };
  };
};

interface Named {
  readonly participantId: string;
  readonly viewerId: string | null;
  /** The thread whose scratchpad is meant; null: none is named so. */
  readonly locator: string | null;
  readonly as: string | null | undefined;
}
