import { setTimeout as delay } from 'node:timers/promises';
import { refuseRunToken, requireOwner, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import type { Json } from '../shared/canonical.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { badInput, forbidden, notFound } from '../shared/errors.ts';
import { isId, newId } from '../shared/ids.ts';
import { LIMITS, requireObject } from '../shared/input.ts';
import type { Logger } from '../shared/log.ts';
import { type KeysetList, keysetPage, type Page, type PageArgs } from '../shared/paging.ts';
import { type Database, statement } from '../storage/database.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import type { PadNotices } from './notices.ts';
import type { Plane } from './plane.ts';
import { PAD_COLUMNS, type PadRows, type Scratchpad, type ScratchpadRow } from './rows.ts';

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

const CREATE = statement<ScratchpadRow>(
  'create_scratchpad',
  `SELECT ${PAD_COLUMNS} FROM create_scratchpad($1, $2, $3, $4, $5::jsonb, $6, $7, $8, $9) s`,
);

/** Redis is told of a new `ttlSeconds` until it knows. `$4` is another each time. */
const RETIMED = `, retimed AS (
   INSERT INTO scratchpad_retimes (scratchpad_id, version, due_at)
   SELECT s.id, $4, now() + interval '250 milliseconds' FROM s WHERE $7::int IS NOT NULL
   ON CONFLICT (scratchpad_id) DO UPDATE SET version = excluded.version, due_at = excluded.due_at, told_at = NULL, attempts = 0
 )`;

/** The act and its row in the audit log are one. `$3`: the member as whom the owner acts, to whom the pad must be known. */
const ADMINISTERED = (
  act: string,
  also = '',
): string => `s.owner_id = $1 AND s.id = $2 AND ($3::text IS NULL OR EXISTS (
     SELECT 1 FROM thread_members m
     WHERE m.owner_id = s.owner_id AND m.thread_id = s.thread_id AND m.participant_id = $3))
   RETURNING s.*
 ), audited AS (
   INSERT INTO audit_log (id, owner_id, act, credential_id, actor_id, subject_id, details)
   SELECT $4, s.owner_id, '${act}', $5, $3, s.id, jsonb_build_object('threadId', s.thread_id) FROM s
 )${also}
 SELECT ${PAD_COLUMNS} FROM s`;

const UPDATE = statement<ScratchpadRow>(
  'scratchpad_update',
  `WITH s AS (
   UPDATE scratchpads s SET meta_data = coalesce($6::jsonb, s.meta_data), ttl_seconds = coalesce($7::int, s.ttl_seconds)
   WHERE ${ADMINISTERED('scratchpad.updated', RETIMED)}`,
);
const DELETE = statement<ScratchpadRow>(
  'scratchpad_delete',
  `WITH s AS (DELETE FROM scratchpads s WHERE ${ADMINISTERED('scratchpad.deleted')}`,
);

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
      const tenant = refuseRunToken(requireTenant(actor));
      const viewerId = viewerOf(tenant, input.as);
      requireThreadId(input.threadId);
      const [pad] = await rows.ofThreads(tenant.userId, [input.threadId], viewerId);
      return pad === undefined ? make(actor, input, true) : { pad, viewerId };
    },

    /** Null for what does not exist or may not be known of. */
    async find(
      actor: Actor,
      input: { readonly scratchpadId: string; readonly as?: string | null | undefined },
    ): Promise<Scratchpad | null> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, input.as);
      if (!isId('Scratchpad', input.scratchpadId)) return null;
      return (await rows.byId(tenant.userId, [input.scratchpadId], viewerId))[0] ?? null;
    },

    /** The pad of a thread, null if it has none. Never makes one. Errors: NOT_FOUND (the thread). */
    async findOfThread(
      actor: Actor,
      input: { readonly threadId: string; readonly as?: string | null | undefined },
    ): Promise<Scratchpad | null> {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, input.as);
      requireThreadId(input.threadId);
      const [pad] = await rows.ofThreads(tenant.userId, [input.threadId], viewerId);
      if (pad === undefined && !(await isKnown(database, tenant.userId, input.threadId, viewerId)))
        throw notFound('Thread');
      return pad ?? null;
    },

    /** The owner's pads, or those of a participant's threads: by the time of creation, then by id. */
    page(actor: Actor, args: PageArgs): Promise<Page<Scratchpad>> {
      const tenant = refuseRunToken(requireTenant(actor));
      const viewerId = viewerOf(tenant, null);
      const list: KeysetList<Scratchpad> = {
        name: 'scratchpads',
        parts: [MILLISECONDS, KEY_PART.id],
        key: keyOf,
        read: (range) => rows.list(tenant.userId, viewerId, range),
      };
      return keysetPage(args, list);
    },

    /** As `page`, all of them: read a part at a time, as fast as they are taken. */
    async *all(actor: Actor): AsyncGenerator<Scratchpad, void> {
      const tenant = refuseRunToken(requireTenant(actor));
      const viewerId = viewerOf(tenant, null);
      const range = { before: null, limit: STREAMED, inverted: false };
      let after: readonly string[] | null = null;
      for (;;) {
        const found: Scratchpad[] = await rows.list(tenant.userId, viewerId, { ...range, after });
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

const KNOWN = statement<{ known: boolean }>(
  'scratchpad_thread_known',
  `SELECT EXISTS (SELECT 1 FROM thread_heads h WHERE h.owner_id = $1 AND h.thread_id = $2)
     AND ($3::text IS NULL OR EXISTS (
       SELECT 1 FROM thread_members m WHERE m.owner_id = $1 AND m.thread_id = $2 AND m.participant_id = $3)) AS known`,
);

const isKnown = async (
  database: Database,
  ownerId: string,
  threadId: string,
  viewerId: string | null,
): Promise<boolean> => (await database.query(KNOWN, [ownerId, threadId, viewerId]))[0]?.known === true;

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

const required = <T>(row: T | undefined): T => {
  if (row === undefined) throw new Error('The database answered no row.');
  return row;
};
