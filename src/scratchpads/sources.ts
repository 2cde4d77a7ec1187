import type { RunScope } from '../auth/actor.ts';
import { atMemory, atPad, atThread } from '../auth/sight.ts';
import { readVisibleMemories } from '../memory/entries.ts';
import { DomainError } from '../shared/errors.ts';
import { isId, readEntryId } from '../shared/ids.ts';
import type { Database } from '../storage/database.ts';
import { isVisible, type Look, readLooks, type WantedLook } from '../timeline/look.ts';
import { readEventsById } from '../timeline/reads.ts';
import type { Reading } from './reading.ts';
import type { PadRows } from './rows.ts';

interface SourceStores {
  readonly database: Database;
  readonly reading: Reading;
  readonly rows: Pick<PadRows, 'byId'>;
}

/** Which of these ids are those of entries that the viewer (null: the owner) may see now; `run` confines it. Errors: UNAVAILABLE. */
export type VisibleEntries = (
  ownerId: string,
  viewerId: string | null,
  ids: readonly string[],
  run: RunScope | null,
) => Promise<readonly string[]>;

/** However many they are: two statements and one pipeline. */
export const createVisibleEntries =
  ({ database, reading, rows }: SourceStores): VisibleEntries =>
  async (ownerId, viewerId, ids, run) => {
    const places = ids.map(readEntryId).filter((place) => place !== undefined);
    if (places.length === 0) return [];
    const padIds = [...new Set(places.map((place) => place.scratchpadId))];
    const pads = await rows.byId(ownerId, padIds, run === null ? viewerId : null);
    const sights = pads.map((pad) => atPad(run, pad, viewerId)).filter((sight) => sight !== null);
    const looks = await looksAt(
      database,
      sights.map((sight) => ({ ownerId, ...sight })),
    );
    const wanted = pads.flatMap((pad) => {
      const look = looks.get(pad.threadId);
      const seqs = places
        .filter(({ scratchpadId }) => scratchpadId === pad.scratchpadId)
        .map(({ seq }) => seq);
      return look === undefined ? [] : [{ pad, look, ask: { seqs } }];
    });
    // An entry of an earlier epoch with the seq of one that is there has another id.
    const there = new Set(
      (await reading.read(wanted)).flatMap((one) => one?.entries ?? []).map(({ id }) => id),
    );
    return ids.filter((id) => there.has(id));
  };

/**
 * Throws NOT_FOUND unless the writer (null: the owner) may see each of these: events, entries of scratchpads, and
 * memories as the writer recalls them where it works: in the thread that is named, or that of the named scratchpad.
 */
export type RequireVisibleSources = (
  ownerId: string,
  viewerId: string | null,
  ids: readonly string[],
  run: RunScope | null,
  place: string | null,
) => Promise<void>;

export const createRequireVisibleSources =
  (database: Database, visibleEntries: VisibleEntries, rows: Pick<PadRows, 'byId'>): RequireVisibleSources =>
  async (ownerId, viewerId, ids, run, place) => {
    const threadOf = async (): Promise<string | null> =>
      run === null && place !== null && isId('Scratchpad', place)
        ? ((await rows.byId(ownerId, [place], viewerId))[0]?.threadId ?? null)
        : place;
    const visibleEvents = async (eventIds: readonly string[]): Promise<string[]> => {
      if (eventIds.length === 0) return [];
      const events = (await readEventsById(database, ownerId, eventIds)).filter((event) => event !== null);
      const sights = events.map(({ threadId }) => atThread(run, { threadId, viewerId }));
      const looks = await looksAt(
        database,
        sights.filter((sight) => sight !== null).map((sight) => ({ ownerId, ...sight })),
      );
      return events
        .filter((event) => {
          const look = looks.get(event.threadId);
          return look !== undefined && isVisible(look, event);
        })
        .map(({ id }) => id);
    };
    const found = await Promise.all([
      visibleEvents(ids.filter((id) => isId('Event', id))),
      visibleEntries(ownerId, viewerId, ids, run),
      ids.some((id) => isId('MemoryEntry', id))
        ? visibleMemories(database, ownerId, viewerId, ids, await threadOf(), run)
        : [],
    ]);
    const visible = new Set(found.flat());
    if (!ids.every((id) => visible.has(id)))
      throw new DomainError('NOT_FOUND', 'Source not found.', { field: 'sourceIds' });
  };

/** Which of these ids are those of memories that the viewer (null: the owner) may see where it works; `run` confines it. */
export const visibleMemories = async (
  database: Database,
  ownerId: string,
  viewerId: string | null,
  ids: readonly string[],
  threadId: string | null,
  run: RunScope | null,
): Promise<string[]> => {
  const wanted = ids.filter((id) => isId('MemoryEntry', id));
  if (wanted.length === 0) return [];
  const found = await readVisibleMemories(
    database,
    ownerId,
    wanted.map((id) => atMemory(run, { id, viewerId, threadId })),
  );
  return found.flatMap((entry) => (entry === null ? [] : [entry.id]));
};

/** By thread; none for those that the viewer may not know of. */
const looksAt = async (
  database: Database,
  wanted: readonly WantedLook[],
): Promise<ReadonlyMap<string, Look>> => {
  const distinct = new Map(wanted.map((one) => [one.threadId, one]));
  const answers = await readLooks(database, [...distinct.values()]);
  return new Map(answers.flatMap((answer) => (answer ? [[answer.look.threadId, answer.look]] : [])));
};
