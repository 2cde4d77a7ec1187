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

/** Which of these ids are those of entries that the viewer (null: the owner) may see now. Errors: UNAVAILABLE. */
export type VisibleEntries = (
  ownerId: string,
  viewerId: string | null,
  ids: readonly string[],
) => Promise<readonly string[]>;

/** However many they are: two statements and one pipeline. */
export const createVisibleEntries =
  ({ database, reading, rows }: SourceStores): VisibleEntries =>
  async (ownerId, viewerId, ids) => {
    const places = ids.map(readEntryId).filter((place) => place !== undefined);
    if (places.length === 0) return [];
    const pads = await rows.byId(ownerId, [...new Set(places.map((place) => place.scratchpadId))], viewerId);
    const looks = await looksAt(
      database,
      pads.map(({ threadId }) => ({ ownerId, threadId, viewerId })),
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

/** Throws NOT_FOUND unless the writer (null: the owner) may see each of these: events, and entries of scratchpads. */
export type RequireVisibleSources = (
  ownerId: string,
  viewerId: string | null,
  ids: readonly string[],
) => Promise<void>;

export const createRequireVisibleSources =
  (database: Database, visibleEntries: VisibleEntries): RequireVisibleSources =>
  async (ownerId, viewerId, ids) => {
    const visibleEvents = async (eventIds: readonly string[]): Promise<string[]> => {
      if (eventIds.length === 0) return [];
      const events = (await readEventsById(database, ownerId, eventIds)).filter((event) => event !== null);
      const looks = await looksAt(
        database,
        events.map(({ threadId }) => ({ ownerId, threadId, viewerId })),
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
      visibleEntries(ownerId, viewerId, ids),
    ]);
    const visible = new Set(found.flat());
    if (!ids.every((id) => visible.has(id)))
      throw new DomainError('NOT_FOUND', 'Source not found.', { field: 'sourceIds' });
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
