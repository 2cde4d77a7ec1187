import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor, RunActor } from '../auth/actor.ts';
import { newSecret } from '../auth/secrets.ts';
import { runOf } from '../auth/sight.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { DomainError, notFound } from '../shared/errors.ts';
import { isId, newId } from '../shared/ids.ts';
import { requireExpiry } from '../shared/input.ts';
import { keysetPage, type Page, type PageArgs } from '../shared/paging.ts';
import { required, statement } from '../storage/database.ts';
import { createDelegate, type DelegatingDeps } from './delegating.ts';
import { requireUpdate, type UpdateInput } from './input.ts';
import { type RunFilter, readRuns } from './lists.ts';
import type { RunNotices } from './notices.ts';
import {
  isOpen,
  type Run,
  type RunRow,
  type RunStatus,
  readRunsById,
  runFromRow,
  type TokenOfRun,
  type WokenRow,
} from './rows.ts';
import { seesRun } from './visibility.ts';

const CLAIM = statement<RunRow>(
  'claim_run',
  'SELECT * FROM claim_run($1, $2, $3, $4::text[], $5::text[], $6)',
);
const UPDATE = statement<WokenRow>(
  'update_run',
  'SELECT r.*, tp_woken() AS woken FROM update_run($1, $2, $3, $4, $5::run_statuses, $6::jsonb, $7, $8) r',
);

interface RunsDeps extends DelegatingDeps {
  readonly notices: RunNotices;
}

/** Delegated pieces of work: made, taken, moved on, ended. */
export const createRuns = (deps: RunsDeps) => {
  const { database, announce, notices, announceEndings } = deps;
  const find = async (actor: Actor, runId: string, as?: string | null): Promise<Run | null> => {
    const tenant = requireTenant(actor);
    // An `as` that disagrees is refused whether or not there is such a run.
    const viewerId = viewerOf(tenant, as);
    if (!isId('Run', runId)) return null;
    const [run = null] = await readRunsById(database, tenant.userId, [runId]);
    return run !== null && seesRun(tenant, run, viewerId) ? run : null;
  };

  return {
    delegate: createDelegate(deps),

    /**
     * Takes a queued run, as its worker: of several calls one wins, and gets a fresh token. Those that were issued before
     * end. Errors: NOT_FOUND, FORBIDDEN (the delegator), INVALID_TRANSITION (not queued, or over).
     */
    async claim(
      actor: Actor,
      input: { readonly runId: string; readonly as?: string | null | undefined },
    ): Promise<TokenOfRun> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, input.as);
      if (!isId('Run', input.runId)) throw notFound('Run');
      if (tenant.kind === 'RUN_TOKEN') throw new DomainError('FORBIDDEN', 'A run token may not do this.');
      const secret = newSecret('RUN_TOKEN');
      const [row] = await database.query(CLAIM, [
        tenant.userId,
        input.runId,
        viewerId,
        [newId('Credential'), newId('Audit')],
        [secret.prefix, secret.hash],
        tenant.credentialId,
      ]);
      notices.changed(input.runId);
      announceEndings();
      return { run: runFromRow(required(row)), viewerId, token: secret.secret };
    },

    /**
     * Moves a run on: its worker through IN_PROGRESS and INPUT_REQUIRED to COMPLETED or FAILED, its delegator and the owner to
     * CANCELLED; these two also set its deadline. An ending ends its tokens and its children.
     * Errors: NOT_FOUND, FORBIDDEN, INVALID_TRANSITION (`status`), BAD_USER_INPUT, PAYLOAD_TOO_LARGE.
     */
    async update(
      actor: Actor,
      input: UpdateInput,
    ): Promise<{ readonly run: Run; readonly viewerId: string | null }> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, input.as);
      if (!isId('Run', input.runId)) throw notFound('Run');
      const { status, result, error } = requireUpdate(input);
      const expiresIn = requireExpiry(input.expiresInSeconds);
      const [row] = await database.query(UPDATE, [
        tenant.userId,
        input.runId,
        viewerId,
        runOf(tenant)?.runId ?? null,
        status,
        result,
        error,
        expiresIn,
      ]);
      const run = runFromRow(required(row));
      notices.changed(run.id);
      announce.woken(required(row).woken);
      // Whoever ended its own run by its token gets the answer before the token is dead here.
      if (expiresIn !== null || (!isOpen(run) && tenant.kind !== 'RUN_TOKEN')) announceEndings();
      return { run, viewerId };
    },

    /** Null for what does not exist or may not be seen. */
    find,

    /** In the order in which they were delegated. */
    async page(actor: Actor, filter: RunFilter, args: PageArgs): Promise<Page<Run>> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, null);
      return keysetPage(args, {
        name: 'runs',
        parts: [KEY_PART.id],
        key: ({ id }) => [id],
        read: (range) => readRuns(database, tenant.userId, viewerId, runOf(tenant), filter, range),
      });
    },

    /**
     * Whom a runtime works as that executes a run's tools with another credential than its token: the owner's, or the
     * worker's. Errors: NOT_FOUND, FORBIDDEN, INVALID_TRANSITION (it has ended). Whether it is past its deadline the call
     * itself is told, by the database's clock.
     */
    async workerOf(
      actor: Actor,
      input: { readonly runId: string; readonly as?: string | null | undefined },
    ): Promise<RunActor> {
      const tenant = requireTenant(actor);
      if (tenant.kind === 'RUN_TOKEN') {
        if (tenant.runId !== input.runId) throw notFound('Run');
        return tenant;
      }
      const run = await find(actor, input.runId, input.as);
      if (run === null) throw notFound('Run');
      const viewerId = viewerOf(tenant, input.as);
      if (viewerId !== null && viewerId !== run.participantId)
        throw new DomainError('FORBIDDEN', 'Only its worker works in a run.');
      const { conversationThreadId, scratchpadId, access, padViewerId, participantId } = run;
      if (!isOpen(run) || conversationThreadId === null) throw hasEnded(run.status);
      return {
        kind: 'RUN_TOKEN',
        userId: tenant.userId,
        credentialId: tenant.credentialId,
        runId: run.id,
        participantId,
        conversationThreadId,
        scratchpadId,
        access,
        padViewerId,
        isDelegators: false,
      };
    },

    /** What its participants are doing, for whoever follows the run now. */
    publishActivity: notices.activity,
  };
};

/** As the database says it. */
const hasEnded = (status: RunStatus): DomainError =>
  new DomainError(
    'INVALID_TRANSITION',
    `The run is ${status}: it has ended, and stays so. It makes no more tool calls.`,
    { status, allowed: [] },
  );
