import { entryCursor, parseEntryCursor } from '../shared/cursors.ts';
import { invalidCursor } from '../shared/errors.ts';
import { readEntryId } from '../shared/ids.ts';
import { type PageArgs, requirePageSize } from '../shared/paging.ts';
import type { PadAnswer } from './loading.ts';
import type { PadEntry } from './pad.ts';
import type { PageAsk } from './reading.ts';

type Bound = ReturnType<typeof parseEntryCursor>;

/** A page of entries as it is asked for, and where its cursors said that it begins and ends. */
interface EntriesAsk {
  readonly page: PageAsk;
  readonly bounds: readonly { readonly field: string; readonly at: Bound }[];
}

/** Throws BAD_USER_INPUT (`first`, `last`), INVALID_CURSOR (not of this pad). */
export const entriesAsk = (scratchpadId: string, args: PageArgs): EntriesAsk => {
  const { limit, isBackward } = requirePageSize(args);
  const boundOf = (cursor: string | null | undefined, field: string): Bound | null =>
    cursor === null || cursor === undefined ? null : parseEntryCursor(cursor, scratchpadId, field);
  const after = boundOf(args.after, 'after');
  const before = boundOf(args.before, 'before');
  return {
    page: { after: after?.seq ?? null, before: before?.seq ?? null, limit, isBackward },
    bounds: [
      ...(after === null ? [] : [{ field: 'after', at: after }]),
      ...(before === null ? [] : [{ field: 'before', at: before }]),
    ],
  };
};

export interface EntriesPage {
  readonly entries: readonly PadEntry[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

/**
 * Throws INVALID_CURSOR for a cursor of another epoch, or beyond what the viewer may see. The start of a pad without
 * state is that of whatever came later.
 */
export const entriesPage = ({ bounds }: EntriesAsk, { seen, page }: PadAnswer): EntriesPage => {
  if (page === null) throw new Error('No page was asked for.');
  for (const { field, at } of bounds) {
    const isOther = at.epoch !== '' && at.epoch !== seen.position.epoch;
    if (isOther || at.seq > page.end.seq) throw invalidCursor(field);
  }
  const { entries, skipped, total } = page;
  return { entries, hasNextPage: skipped + entries.length < total, hasPreviousPage: skipped > 0 };
};

/** Where an entry stands in its pad, to page from. */
export const cursorOfEntry = ({ id, seq }: Pick<PadEntry, 'id' | 'seq'>): string => {
  const place = readEntryId(id);
  if (place === undefined) throw new Error('An entry has an id that is none.');
  return entryCursor(place.scratchpadId, place.epoch, seq);
};
