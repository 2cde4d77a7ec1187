import { DomainError } from '../shared/errors.ts';
import { type EntryPlace, isId, readEntryId } from '../shared/ids.ts';
import type { Database } from '../storage/database.ts';
import { isVisible, type Look, readLooks } from '../timeline/look.ts';
import { readEventsById } from '../timeline/reads.ts';
import type { Reading } from './reading.ts';
import type { PadRows } from './rows.ts';

/** Throws NOT_FOUND unless the writer (null: the owner) may see each of these: events, and entries of scratchpads. */
export type RequireVisibleSources = (
  ownerId: string,
  viewerId: string | null,
  ids: readonly string[],
) => Promise<void>;

export const createRequireVisibleSources =
  ({
    database,
    reading,
    rows,
  }: {
    database: Database;
    reading: Reading;
    rows: Pick<PadRows, 'byId'>;
  }): RequireVisibleSources =>
  async (ownerId, viewerId, ids) => {
    const looksAt = async (threadIds: readonly string[]): Promise<ReadonlyMap<string, Look>> => {
      const distinct = [...new Set(threadIds)];
      const answers = await readLooks(
        database,
        distinct.map((threadId) => ({ ownerId, threadId, viewerId })),
      );
      return new Map(answers.flatMap((answer) => (answer ? [[answer.look.threadId, answer.look]] : [])));
    };

    const visibleEvents = async (eventIds: readonly string[]): Promise<string[]> => {
      if (eventIds.length === 0) return [];
      const events = (await readEventsById(database, ownerId, eventIds)).filter((event) => event !== null);
      const looks = await looksAt(events.map(({ threadId }) => threadId));
      return events
        .filter((event) => {
          const look = looks.get(event.threadId);
          return look !== undefined && isVisible(look, event);
        })
        .map(({ id }) => id);
    };

    const visibleEntries = async (places: readonly EntryPlace[]): Promise<string[]> => {
      if (places.length === 0) return [];
      const pads = await rows.byId(
        ownerId,
        [...new Set(places.map((place) => place.scratchpadId))],
        viewerId,
      );
      const looks = await looksAt(pads.map(({ threadId }) => threadId));
      const wanted = pads.flatMap((pad) => {
        const look = looks.get(pad.threadId);
        const seqs = places
          .filter(({ scratchpadId }) => scratchpadId === pad.scratchpadId)
          .map(({ seq }) => seq);
        return look === undefined ? [] : [{ pad, look, ask: { seqs } }];
      });
      const seen = await reading.read(wanted);
      return seen.flatMap((one) => one?.entries.map(({ id }) => id) ?? []);
    };

    const visible = new Set(
      (
        await Promise.all([
          visibleEvents(ids.filter((id) => isId('Event', id))),
          visibleEntries(ids.map(readEntryId).filter((place) => place !== undefined)),
        ])
      ).flat(),
    );
    if (!ids.every((id) => visible.has(id)))
      throw new DomainError('NOT_FOUND', 'Source not found.', { field: 'sourceIds' });
  };
