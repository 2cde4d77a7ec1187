import { actingParticipant, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor, RunScope, TenantActor } from '../auth/actor.ts';
import { atMemory, runOf } from '../auth/sight.ts';
import { canonicalJson, inputHash, type Json } from '../shared/canonical.ts';
import { KEY_PART, keysetCursor, listOf, parseKeysetCursor } from '../shared/cursors.ts';
import { badInput, notFound } from '../shared/errors.ts';
import { newId } from '../shared/ids.ts';
import { LIMITS, requireBytes, requireIdempotencyKey, requireIds, requireJson } from '../shared/input.ts';
import type { Lanes } from '../shared/lanes.ts';
import { keysetPage, type Page, type PageArgs, requirePageSize } from '../shared/paging.ts';
import { type Database, required, statement } from '../storage/database.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import { type MemoryEntry, type MemoryRow, memoryFromRow } from './entries.ts';

export interface StoreInput {
  /** Where the agent works. An API key may store outside of any thread; a run's token stores in the run's own. */
  readonly threadId?: string | null | undefined;
  readonly payload: Json;
  readonly as?: string | null | undefined;
  readonly sourceIds?: readonly string[] | null | undefined;
  readonly idempotencyKey?: string | null | undefined;
}

interface RecallInput extends PageArgs {
  readonly threadId: string;
  readonly as?: string | null | undefined;
  /** Words in whatever language. None: the newest first. */
  readonly query?: string | null | undefined;
  /** Only payloads that contain this JSON, as PostgreSQL's `@>` means it. */
  readonly match?: Json | undefined;
}

/** Entries as one agent, or (null) the owner, sees them. */
export interface MemoryPage extends Page<MemoryEntry> {
  readonly viewerId: string | null;
  /** In which thread they are recalled; null: in none in particular. */
  readonly threadId: string | null;
}

/** Of the payloads of one page together, at most: the first entry always comes. */
const PAGE_BYTES = 1024 * 1024;

const STORE = statement<MemoryRow>(
  'store_memory',
  'SELECT * FROM store_memory($1, $2, $3, $4, $5::jsonb, $6, $7::text[], $8, $9, $10, $11)',
);

type RecallRow = MemoryRow & {
  has_previous: boolean;
  has_next: boolean;
  horizon: string;
  score: number;
};

const RECALL = statement<RecallRow>(
  'recall_memory',
  `SELECT f.has_previous, f.has_next, f.horizon, f.score, r.* FROM recall_memory($1, $2, $3, $4, $5::jsonb, $6::bigint[], $7::bigint[], $8, $9, $10, $11) f
   LEFT JOIN LATERAL (SELECT m.* FROM memory_rows m WHERE m.owner_id = $1 AND m.participant_id = $2 AND m.number = f.number LIMIT 1) r ON true
   ORDER BY f.place`,
);

const list = (order: 'ASC' | 'DESC') =>
  statement<MemoryRow>(
    `memories_${order.toLowerCase()}`,
    `SELECT r.* FROM memory_rows r WHERE r.owner_id = $1 AND r.participant_id = $2
       AND r.number < coalesce($3::bigint, 2147483648) AND r.number > coalesce($4::bigint, 0)
     ORDER BY r.number ${order} LIMIT $5`,
  );
const NEWEST = list('DESC');
const OLDEST = list('ASC');

/** One ordered append-only store for each agent or unit. */
export const createMemories = ({
  database,
  lanes,
  requireVisibleSources,
}: {
  database: Database;
  lanes: Lanes;
  /** Throws NOT_FOUND for a source that the agent may not see where it works. */
  requireVisibleSources(
    ownerId: string,
    viewerId: string,
    ids: readonly string[],
    run: RunScope | null,
    threadId: string | null,
  ): Promise<void>;
}) => ({
  /**
   * Stores an entry with the stamp of the thread in which the agent works, as its policy is now.
   * Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN (humans), PARTICIPANT_NOT_ACTIVE,
   * IDEMPOTENCY_KEY_REUSED, UNAVAILABLE.
   */
  async store(actor: Actor, input: StoreInput): Promise<{ entry: MemoryEntry; viewerId: string }> {
    const tenant = requireTenant(actor);
    const participantId = actingParticipant(tenant, input.as);
    const threadId = operatingThread(tenant, input.threadId);
    const payload = requireJson(input.payload, 'payload', LIMITS.memoryPayload);
    const sourceIds = requireIds(input.sourceIds, 'sourceIds', LIMITS.sources);
    const key = requireIdempotencyKey(input.idempotencyKey);
    const text = canonicalJson(payload);
    const bytes = Buffer.byteLength(text);
    const seen = await seesAll(
      sourceIds.length === 0
        ? Promise.resolve()
        : requireVisibleSources(tenant.userId, participantId, sourceIds, runOf(tenant), threadId),
    );
    const store = () =>
      database.query(STORE, [
        tenant.userId,
        participantId,
        threadId,
        newId('MemoryEntry'),
        text,
        bytes,
        sourceIds,
        seen.all,
        tenant.kind === 'RUN_TOKEN' ? tenant.runId : null,
        key,
        key === null ? null : inputHash({ payload, sourceIds }),
      ]);
    try {
      const lane = { ownerId: tenant.userId, bytes, key: threadId ?? participantId };
      const [row] = await lanes.runText(lane, store);
      return { entry: memoryFromRow(required(row)), viewerId: participantId };
    } catch (error) {
      // A replay does not look at its sources again; so their failure tells only where there was nothing to replay.
      throw seen.failure !== undefined && isUnseenSource(error) ? seen.failure : error;
    }
  },

  /**
   * What the agent remembers in a thread, also while removed: what it stored there, what is recalled everywhere.
   * By words the best first, of the newest 2,000; else the newest first. A page is bounded by 1 MiB of payloads too.
   * Errors: BAD_USER_INPUT, INVALID_CURSOR, NOT_FOUND, FORBIDDEN (humans).
   */
  async recall(actor: Actor, input: RecallInput): Promise<MemoryPage> {
    const tenant = requireTenant(actor);
    const viewerId = actingParticipant(tenant, input.as);
    const threadId = operatingThread(tenant, input.threadId);
    if (threadId === null) throw notFound('Thread');
    const { limit, isBackward } = requirePageSize(input);
    const query = input.query ?? null;
    if (query !== null) requireBytes(query, 'query', LIMITS.query);
    const match = input.match ?? null;
    if (match !== null) requireJson(match, 'match', LIMITS.match);
    const list = listOf('recall', [tenant.userId, viewerId, threadId, query, match]);
    const rows = await database.query(RECALL, [
      tenant.userId,
      viewerId,
      threadId,
      query,
      match === null ? null : canonicalJson(match),
      placeOf(list, input.after, 'after'),
      placeOf(list, input.before, 'before'),
      limit,
      isBackward,
      PAGE_BYTES,
      atMemory(runOf(tenant), { viewerId, threadId }).isHereOnly === true,
    ]);
    const [flags, ...found] = rows;
    const edges = found.map((row) => ({
      cursor: keysetCursor(list, [row.horizon, row.score, row.number]),
      node: memoryFromRow(row),
    }));
    return {
      viewerId,
      threadId,
      edges,
      pageInfo: {
        hasNextPage: flags?.has_next === true,
        hasPreviousPage: flags?.has_previous === true,
        startCursor: edges[0]?.cursor ?? null,
        endCursor: edges.at(-1)?.cursor ?? null,
      },
    };
  },

  /** All that a participant stored, newest first; null for whoever is not the owner. */
  async pageOf(actor: Actor, participantId: string, args: PageArgs): Promise<MemoryPage | null> {
    const tenant = requireTenant(actor);
    if (tenant.kind !== 'API_KEY' || viewerOf(tenant, null) !== null) return null;
    const page = await keysetPage<MemoryEntry>(args, {
      name: 'memory',
      parts: [KEY_PART.number],
      key: ({ number }) => [number],
      read: async ({ after, before, limit, inverted }) => {
        const rows = await database.query(inverted ? OLDEST : NEWEST, [
          tenant.userId,
          participantId,
          after?.[0] ?? null,
          before?.[0] ?? null,
          limit,
        ]);
        return rows.map(memoryFromRow);
      },
    });
    return { ...page, viewerId: null, threadId: null };
  },
});

/** The thread in which the agent works, as the credential or the caller says; null: none. */
const operatingThread = (tenant: TenantActor, threadId: string | null | undefined): string | null => {
  if (tenant.kind === 'RUN_TOKEN') {
    if (typeof threadId === 'string' && threadId !== tenant.conversationThreadId) throw notFound('Thread');
    return tenant.conversationThreadId;
  }
  if (threadId === null || threadId === undefined) {
    if (tenant.kind === 'API_KEY') return null;
    throw badInput('Say in which thread the agent works: threadId.', { field: 'threadId' });
  }
  requireThreadId(threadId);
  return threadId;
};

/** Whether one sees them all, and if not why. */
const seesAll = async (looking: Promise<void>): Promise<{ all: boolean; failure?: unknown }> => {
  try {
    await looking;
    return { all: true };
  } catch (failure) {
    return { all: false, failure };
  }
};

const isUnseenSource = (error: unknown): boolean =>
  error instanceof Error && 'facts' in error && (error.facts as { field?: unknown }).field === 'sourceIds';

const placeOf = (list: string, cursor: string | null | undefined, field: string): string[] | null =>
  cursor === null || cursor === undefined
    ? null
    : parseKeysetCursor(cursor, list, [KEY_PART.number, KEY_PART.number, KEY_PART.number], field);
