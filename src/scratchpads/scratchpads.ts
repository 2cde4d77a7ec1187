import { setTimeout as delay } from 'node:timers/promises';
import { refuseRunToken, requireOwner, requireReach, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor, TenantActor } from '../auth/actor.ts';
import { atPad, runOf } from '../auth/sight.ts';
import type { Json } from '../shared/canonical.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { badInput, forbidden, notFound } from '../shared/errors.ts';
import { isId, newId } from '../shared/ids.ts';
import { LIMITS, requireObject } from '../shared/input.ts';
import type { Logger } from '../shared/log.ts';
import {
  type KeysetList,
  type KeysetRange,
  keysetPage,
  type Page,
  type PageArgs,
  readHeld,
} from '../shared/paging.ts';
import { type Database, required } from '../storage/database.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import type { PadNotices } from './notices.ts';
import type { Plane } from './plane.ts';
import { CREATE, DELETE, isKnown, UPDATE } from './resource.ts';
import type { PadRows, Scratchpad } from './rows.ts';

export interface CreatePadInput {
  readonly threadId: string;
  readonly as?: string | null | undefined;
  /** The owner's alone, as `ttlSeconds`. */
  readonly metaData?: Json | undefined;
  readonly ttlSeconds?: number | null | undefined;
}

export interface UpdatePadInput {
  readonly scratchpadId: string;
  /** Replaces it whole; absent or null: unchanged. */
  readonly metaData?: Json | undefined;
  readonly ttlSeconds?: number | null | undefined;
}

/** A pad, and whose view of it is answered. */
export interface ViewedPad {
  readonly pad: Scratchpad;
  readonly viewerId: string | null;
}

/** How long a new `ttlSeconds` waits for Redis. */
const RETIME_MS = 400;
/** A list of all is read in pages of so many. */
const STREAMED = 500;
const MILLISECONDS = /^[0-9]{1,13}$/;

/** The resource: what of a pad SQL holds. Its content and entries are written and read elsewhere. */
export const createScratchpads = ({
  database,
  rows,
  plane,
  notices,
  outbox,
  log,
}: {
  database: Database;
  rows: PadRows;
  plane: Pick<Plane, 'retime'>;
  notices: PadNotices;
  /** Woken when there is something to tell Redis. */
  outbox: { wake(): void };
  log: Logger;
}) => {
  const make = async (
    actor: Actor,
    { threadId, as, metaData, ttlSeconds }: CreatePadInput,
    isEnsured: boolean,
  ): Promise<ViewedPad> => {
    const tenant = refuseRunToken(requireTenant(actor));
    const viewerId = viewerOf(tenant, as);
    requireThreadId(threadId);
    const isAdministered = isThere(metaData) || isThere(ttlSeconds);
    if (isAdministered && tenant.kind !== 'API_KEY')
      throw forbidden('metaData and ttlSeconds of a scratchpad are the user’s to set, with an API key.');
    const id = newId('Scratchpad');
    const [row] = await database.query(CREATE, [
      tenant.userId,
      threadId,
      viewerId,
      id,
      metaDataOf(metaData),
      requireTtl(ttlSeconds),
      isEnsured,
      newId('Audit'),
      tenant.credentialId,
    ]);
    const pad = rows.fromRow(required(row));
    if (pad.scratchpadId === id) notices.created(pad);
    return { pad, viewerId };
  };

  /** The pads that a viewer may know of; a run's one, and no other. */
  const seen = (tenant: TenantActor, viewerId: string | null) => {
    const { userId } = tenant;
    const run = runOf(tenant);
    if (run === null)
      return {
        byId: (ids: readonly string[]) => rows.byId(userId, ids, viewerId),
        ofThreads: (ids: readonly string[]) => rows.ofThreads(userId, ids, viewerId),
        list: (range: KeysetRange) => rows.list(userId, viewerId, range),
      };
    const own = async (isAsked: (pad: Scratchpad) => boolean): Promise<Scratchpad[]> =>
      run.scratchpadId === null
        ? []
        : (await rows.byId(userId, [run.scratchpadId], null)).filter(
            (pad) => atPad(run, pad, viewerId) !== null && isAsked(pad),
          );
    return {
      byId: (ids: readonly string[]) => own(({ scratchpadId }) => ids.includes(scratchpadId)),
      ofThreads: (ids: readonly string[]) => own(({ threadId }) => ids.includes(threadId)),
      list: async (range: KeysetRange) => readHeld(await own(() => true), keyOf, 'ASC')(range),
    };
  };

  return {
    /**
     * Makes the thread's pad: as the owner, or as an active member. At most one per thread, also in a race.
     * Errors: NOT_FOUND, PARTICIPANT_NOT_ACTIVE, FORBIDDEN, CONFLICT (`existingId`), BAD_USER_INPUT, PAYLOAD_TOO_LARGE.
     */
    create: (actor: Actor, input: CreatePadInput): Promise<ViewedPad> => make(actor, input, false),

    /**
     * The thread's pad, made if it is missing by whoever may make it. For the tools: no door offers it.
     * Errors: NOT_FOUND, PARTICIPANT_NOT_ACTIVE, FORBIDDEN.
     */
    async ensure(
      actor: Actor,
      input: { readonly threadId: string; readonly as?: string | null | undefined },
    ): Promise<ViewedPad> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, input.as);
      requireThreadId(input.threadId);
      const [pad] = await seen(tenant, viewerId).ofThreads([input.threadId]);
      if (pad !== undefined) return { pad, viewerId };
      if (tenant.kind === 'RUN_TOKEN') throw notFound('Thread');
      return make(actor, input, true);
    },

    /** Null for what does not exist or may not be known of. */
    async find(
      actor: Actor,
      input: { readonly scratchpadId: string; readonly as?: string | null | undefined },
    ): Promise<Scratchpad | null> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, input.as);
      if (!isId('Scratchpad', input.scratchpadId)) return null;
      return (await seen(tenant, viewerId).byId([input.scratchpadId]))[0] ?? null;
    },

    /** The pad of a thread, null if it has none. Never makes one. Errors: NOT_FOUND (the thread). */
    async findOfThread(
      actor: Actor,
      input: { readonly threadId: string; readonly as?: string | null | undefined },
    ): Promise<Scratchpad | null> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, input.as);
      requireThreadId(input.threadId);
      const [pad] = await seen(tenant, viewerId).ofThreads([input.threadId]);
      if (pad === undefined) requireReach(tenant, input.threadId);
      if (pad === undefined && !(await isKnown(database, tenant.userId, input.threadId, viewerId)))
        throw notFound('Thread');
      return pad ?? null;
    },

    /** The owner's pads, or those of a participant's threads: by the time of creation, then by id. */
    page(actor: Actor, args: PageArgs): Promise<Page<Scratchpad>> {
      const tenant = requireTenant(actor);
      const { list: read } = seen(tenant, viewerOf(tenant, null));
      const list: KeysetList<Scratchpad> = {
        name: 'scratchpads',
        parts: [MILLISECONDS, KEY_PART.id],
        key: keyOf,
        read,
      };
      return keysetPage(args, list);
    },

    /** As `page`, all of them: read a part at a time, as fast as they are taken. */
    async *all(actor: Actor): AsyncGenerator<Scratchpad, void> {
      const tenant = requireTenant(actor);
      const { list } = seen(tenant, viewerOf(tenant, null));
      const range = { before: null, limit: STREAMED, inverted: false };
      let after: readonly string[] | null = null;
      for (;;) {
        const found: Scratchpad[] = await list({ ...range, after });
        yield* found;
        const last = found.at(-1);
        if (last === undefined || found.length < STREAMED) return;
        after = keyOf(last).map(String);
      }
    },

    /**
     * Replaces `metaData` whole, sets `ttlSeconds`, or both. The owner's.
     * Errors: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.
     */
    async update(actor: Actor, input: UpdatePadInput): Promise<ViewedPad> {
      const owner = requireOwner(actor);
      const viewerId = owner.actAs;
      const metaData = metaDataOf(input.metaData);
      const ttlSeconds = requireTtl(input.ttlSeconds);
      if (!isId('Scratchpad', input.scratchpadId)) throw notFound('Scratchpad');
      if (metaData === null && ttlSeconds === null) {
        const [pad] = await rows.byId(owner.userId, [input.scratchpadId], viewerId);
        if (pad === undefined) throw notFound('Scratchpad');
        return { pad, viewerId };
      }
      const [row] = await database.query(UPDATE, [
        owner.userId,
        input.scratchpadId,
        viewerId,
        newId('Audit'),
        owner.credentialId,
        metaData,
        ttlSeconds,
      ]);
      if (row === undefined) throw notFound('Scratchpad');
      const pad = rows.fromRow(row);
      notices.changed(pad);
      if (ttlSeconds !== null) {
        // At once, if Redis is there; the outbox sees to the rest.
        const told = plane
          .retime(pad)
          .catch((error: unknown) => log.warn({ err: error }, 'A new ttlSeconds waits for Redis.'));
        await Promise.race([told, delay(RETIME_MS, undefined, { ref: false })]);
        outbox.wake();
      }
      return { pad, viewerId };
    },

    /** Resource and state are gone, for everybody. The owner's. Errors: NOT_FOUND (also the second time), FORBIDDEN. */
    async delete(actor: Actor, input: { readonly scratchpadId: string }): Promise<{ deletedId: string }> {
      const owner = requireOwner(actor);
      if (!isId('Scratchpad', input.scratchpadId)) throw notFound('Scratchpad');
      const [row] = await database.query(DELETE, [
        owner.userId,
        input.scratchpadId,
        owner.actAs,
        newId('Audit'),
        owner.credentialId,
      ]);
      if (row === undefined) throw notFound('Scratchpad');
      outbox.wake();
      notices.deleted(rows.fromRow(row));
      return { deletedId: row.id };
    },
  };
};

const keyOf = (pad: Scratchpad): [number, string] => [Date.parse(pad.createdAt), pad.scratchpadId];

const isThere = <T>(value: T | null | undefined): value is T => value !== undefined && value !== null;

/** As JSON text; null for none. */
const metaDataOf = (metaData: Json | undefined): string | null =>
  isThere(metaData) ? JSON.stringify(requireObject(metaData, 'metaData', LIMITS.metaData)) : null;

const requireTtl = (seconds: number | null | undefined): number | null => {
  if (!isThere(seconds)) return null;
  const limit = LIMITS.ttlSeconds;
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > limit)
    throw badInput(`ttlSeconds must be 0 (kept) to ${limit} (ten years).`, { field: 'ttlSeconds', limit });
  return seconds;
};
