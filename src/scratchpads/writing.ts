import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor, RunScope } from '../auth/actor.ts';
import { noCredential } from '../auth/presented.ts';
import { runOf } from '../auth/sight.ts';
import { DomainError, forbidden, notFound, unavailable } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import { requireBytes, requireIdempotencyKey, requireText } from '../shared/input.ts';
import type { Access, PadAccess } from './access.ts';
import {
  type Appended,
  type Author,
  type Cleared,
  type ContentSet,
  type EtagDiffers,
  type Fenced,
  type Gone,
  type KeyReused,
  PAD_LIMITS,
  type PadContent,
  type PadEntry,
  type PadPosition,
  type TooLarge,
} from './pad.ts';
import type { ClearWhat, Plane, WriteRefusal } from './plane.ts';
import { newOperation } from './planeWrites.ts';
import { answered } from './reading.ts';
import type { RequireVisibleSources } from './sources.ts';
import { refusal, requireEntries, requireEntry, requireSources, writeKey } from './writeInput.ts';

/** Which scratchpad, and who acts: a token's own participant, or the owner or any of its participants. */
export interface WriteTarget {
  readonly scratchpadId: string;
  readonly as?: string | null | undefined;
}

export interface AppendInput extends WriteTarget {
  readonly content: string;
  readonly sourceIds?: readonly string[] | null | undefined;
  readonly idempotencyKey?: string | null | undefined;
}

export interface AppendAllInput extends WriteTarget {
  readonly contents: readonly string[];
  readonly idempotencyKey?: string | null | undefined;
}

export interface SetContentInput extends WriteTarget {
  readonly text: string;
  /** Only over the content with this etag; '' for nothing. */
  readonly expectedEtag?: string | null | undefined;
  readonly sourceIds?: readonly string[] | null | undefined;
  readonly idempotencyKey?: string | null | undefined;
}

/** What a write did, for whoever did it. */
export interface WriteResult {
  readonly ownerId: string;
  readonly threadId: string;
  readonly scratchpadId: string;
  readonly viewerId: string | null;
  /** May read the pad as it is. Not who was removed, and is answered what it wrote before. */
  readonly mayRead: boolean;
  /** 0: what was written is kept. Else how long after a write all of the pad expires. */
  readonly ttlSeconds: number;
  /** Where the pad's log stands after it. */
  readonly position: PadPosition;
}

export interface ScratchpadWritingOptions {
  readonly access: Access;
  readonly plane: Plane;
  readonly requireVisibleSources: RequireVisibleSources;
}

/** How often a write is authorised again before it is given up. */
const ROUNDS = 6;

/**
 * Writes to scratchpads: one authorising statement and one script, which refuses what a change of membership overtook;
 * it is then authorised again by a statement that waits for that change. What was done once under an idempotency key
 * is answered again also to somebody who may no longer write.
 */
export const createScratchpadWriting = ({
  access,
  plane,
  requireVisibleSources,
}: ScratchpadWritingOptions) => {
  const targetOf = (actor: Actor, { scratchpadId, as }: WriteTarget, act: WriteAct) => {
    const tenant = requireTenant(actor);
    const participantId = viewerOf(tenant, as);
    const run = runOf(tenant);
    requireRunMay(run, act);
    if (!isId('Scratchpad', scratchpadId)) throw notFound('Scratchpad');
    return { ownerId: tenant.userId, scratchpadId, participantId, run, runId: run?.runId ?? null };
  };
  type Target = ReturnType<typeof targetOf>;

  /** As an active member or the owner; for anybody else only what `replay` finds, the first result of the same key. */
  const writeAs = async <Outcome>(
    target: Target,
    run: (access: PadAccess) => Promise<Outcome | Gone | Fenced>,
    replay: (access: PadAccess) => Promise<Outcome | Gone | null>,
  ): Promise<{ readonly access: PadAccess; readonly outcome: Outcome }> => {
    let granted = await access.grant(target);
    for (let round = 1; round <= ROUNDS; round += 1) {
      if (granted === null) throw notFound('Scratchpad');
      if (!granted.isOpen) throw noCredential();
      const outcome = await answered<Outcome | Gone | Fenced | null>(
        mayWrite(granted) ? run(granted) : replay(granted),
      );
      if (outcome === null) throw notActive();
      if (isGone(outcome)) throw notFound('Scratchpad');
      if (!isFenced(outcome)) return { access: granted, outcome };
      const { mark } = outcome;
      granted =
        mark === null
          ? await access.grant(target)
          : await access.settled({ ...target, threadId: granted.pad.threadId }, mark);
    }
    throw unavailable('The members of this thread change too often at the moment. Try again.');
  };

  /** What it derives from is looked at only where the key was not used yet. */
  const withSources = async <Outcome>(
    { ownerId, participantId, run, scratchpadId }: Target,
    sourceIds: readonly string[],
    write: () => Promise<Outcome>,
    replay: () => Promise<Outcome | null>,
  ): Promise<Outcome> => {
    if (sourceIds.length === 0) return write();
    try {
      await requireVisibleSources(ownerId, participantId, sourceIds, run, scratchpadId);
    } catch (error) {
      const first = await replay();
      if (first !== null) return first;
      throw error;
    }
    return write();
  };

  const append = async (
    actor: Actor,
    target: WriteTarget,
    contents: readonly string[],
    given: { readonly sourceIds: readonly string[]; readonly key: string | null; readonly field: string },
  ): Promise<WriteResult & { readonly entries: readonly PadEntry[] }> => {
    const where = targetOf(actor, target, 'APPEND');
    const { sourceIds, field } = given;
    const author: Author = { authorId: where.participantId, runId: where.runId, sourceIds };
    const key = writeKey(field === 'contents' ? 'appendAll' : 'append', where, given.key, {
      contents,
      sourceIds,
    });
    const operation = newOperation();
    const replay = ({ pad }: PadAccess) =>
      key === null ? Promise.resolve(null) : plane.replayAppend(pad, author, { contents, key });
    const { access: granted, outcome } = await writeAs<Appended | TooLarge | KeyReused>(
      where,
      (authorised) =>
        withSources<Appended | WriteRefusal>(
          where,
          sourceIds,
          () => plane.append(authorised.pad, authorised.grant, author, { contents, key, operation }),
          () => replay(authorised),
        ),
      replay,
    );
    if (outcome.kind !== 'DONE') throw refusal(outcome, field);
    return { ...resultOf(granted, outcome.position), entries: outcome.entries };
  };

  return {
    /**
     * Appends one entry as an active member, as the owner, or in a run as its access says. Errors: BAD_USER_INPUT (empty), PAYLOAD_TOO_LARGE, NOT_FOUND,
     * FORBIDDEN, PARTICIPANT_NOT_ACTIVE, IDEMPOTENCY_KEY_REUSED, UNAVAILABLE.
     */
    async append(actor: Actor, input: AppendInput): Promise<WriteResult & { readonly entry: PadEntry }> {
      const content = requireEntry(input.content, 'content');
      const sourceIds = requireSources(input.sourceIds);
      const key = requireIdempotencyKey(input.idempotencyKey);
      const { entries, ...result } = await append(actor, input, [content], {
        sourceIds,
        key,
        field: 'content',
      });
      const [entry] = entries;
      if (entry === undefined) throw new Error('The data plane answered no entry.');
      return { ...result, entry };
    },

    /** Appends all or none, at least one: at most 1,000 and 4 MiB together. Errors: as `append`. */
    async appendAll(
      actor: Actor,
      input: AppendAllInput,
    ): Promise<WriteResult & { readonly entries: readonly PadEntry[] }> {
      const contents = requireEntries(input.contents);
      const key = requireIdempotencyKey(input.idempotencyKey);
      return append(actor, input, contents, { sourceIds: [], key, field: 'contents' });
    },

    /**
     * Replaces the body as an active member, or as the owner. Errors: as `append`, and VERSION_CONFLICT (`currentEtag`).
     */
    async setContent(
      actor: Actor,
      input: SetContentInput,
    ): Promise<WriteResult & { readonly content: PadContent }> {
      const field = 'text';
      const text = requireBytes(input.text, field, PAD_LIMITS.content);
      const sourceIds = requireSources(input.sourceIds);
      const where = targetOf(actor, input, 'WRITE');
      const author: Author = { authorId: where.participantId, runId: where.runId, sourceIds };
      const key = writeKey('setContent', where, requireIdempotencyKey(input.idempotencyKey), {
        text,
        sourceIds,
      });
      const operation = newOperation();
      const change = { text, expectedEtag: input.expectedEtag ?? null };
      const replay = ({ pad }: PadAccess) =>
        key === null ? Promise.resolve(null) : plane.replayContent(pad, author, { ...change, key });
      const { access: granted, outcome } = await writeAs<ContentSet | EtagDiffers | TooLarge | KeyReused>(
        where,
        (authorised) =>
          withSources<ContentSet | EtagDiffers | WriteRefusal>(
            where,
            sourceIds,
            () => plane.setContent(authorised.pad, authorised.grant, author, { ...change, key, operation }),
            () => replay(authorised),
          ),
        replay,
      );
      if (outcome.kind === 'ETAG_DIFFERS') {
        // Not before: a condition is no part of what an idempotency key stands for.
        requireText(input.expectedEtag ?? '', 'expectedEtag');
        throw new DomainError(
          'VERSION_CONFLICT',
          'The content has been changed. Read it again, and write with its etag.',
          { currentEtag: outcome.etag, field: 'expectedEtag' },
        );
      }
      if (outcome.kind !== 'DONE') throw refusal(outcome, field);
      return { ...resultOf(granted, outcome.position), content: outcome.content };
    },

    /** Empties the body, the entries or both; the scratchpad stays. Errors: NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, UNAVAILABLE. */
    async clear(actor: Actor, input: WriteTarget, what: ClearWhat): Promise<WriteResult> {
      const where = targetOf(actor, input, 'CLEAR');
      const author: Author = { authorId: where.participantId, runId: null, sourceIds: [] };
      const operation = newOperation();
      const { access: granted, outcome } = await writeAs<Cleared>(
        where,
        ({ pad, grant }) => plane.clear(pad, grant, author, what, operation),
        () => Promise.resolve(null),
      );
      return resultOf(granted, outcome.position);
    },
  };
};

export type ScratchpadWriting = ReturnType<typeof createScratchpadWriting>;

type WriteAct = 'APPEND' | 'WRITE' | 'CLEAR';

/** Throws FORBIDDEN for what the access of a run does not go as far as. */
const requireRunMay = (run: RunScope | null, act: WriteAct): void => {
  if (run === null || (act !== 'CLEAR' && run.access === 'WRITE') || act === run.access) return;
  throw forbidden(
    act === 'CLEAR'
      ? 'A run may not clear a scratchpad.'
      : `This run\u2019s scratchpadAccess is ${run.access}, which does not let it ${act === 'APPEND' ? 'append' : 'replace the content'}.`,
  );
};

/** The owner as such, or a member who is active. */
const mayWrite = ({ state }: Pick<PadAccess, 'state'>): boolean => state !== 'REMOVED';

const notActive = (): DomainError =>
  new DomainError(
    'PARTICIPANT_NOT_ACTIVE',
    'The participant is not active in this thread; only an active member may write to its scratchpad.',
  );

const isOfKind = <Kind extends string>(outcome: unknown, kind: Kind): outcome is { readonly kind: Kind } =>
  typeof outcome === 'object' && outcome !== null && 'kind' in outcome && outcome.kind === kind;
const isGone = (outcome: unknown): outcome is Gone => isOfKind(outcome, 'GONE');
const isFenced = (outcome: unknown): outcome is Fenced => isOfKind(outcome, 'FENCED');

const resultOf = ({ pad, participantId, state }: PadAccess, position: PadPosition): WriteResult => ({
  ownerId: pad.ownerId,
  threadId: pad.threadId,
  scratchpadId: pad.scratchpadId,
  viewerId: participantId,
  mayRead: mayWrite({ state }),
  ttlSeconds: pad.ttlSeconds,
  position,
});
