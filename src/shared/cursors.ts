import { inputHash, type Json } from './canonical.ts';
import { invalidCursor } from './errors.ts';
import { ID_PREFIX, idSuffix } from './ids.ts';

/**
 * A position in a thread's timeline. `tag` is the end of the id of the event that stands there, so that a
 * cursor is recognised as another log's (or as that of a log which was rolled back) instead of silently
 * pointing elsewhere. Position 0 is the start, before the first event.
 */
export interface TimelinePosition {
  readonly threadId: string;
  readonly seq: number;
  readonly tag: string;
}

const TAG_LENGTH = 6;
const START_TAG = '0'.repeat(TAG_LENGTH);

const timelineTag = (eventId: string): string => eventId.slice(-TAG_LENGTH);

/** The opaque cursor of the event `eventId` at `seq`; of the start where `seq` is 0. */
export const timelineCursor = (threadId: string, seq: number, eventId: string | null): string => {
  const tag = seq === 0 || eventId === null ? START_TAG : timelineTag(eventId);
  return Buffer.from(`t1 ${idSuffix(threadId)} ${seq} ${tag}`).toString('base64url');
};

const TIMELINE = /^t1 ([0-9a-z]{26}) (0|[1-9][0-9]{0,9}) ([0-9a-z]{6})$/;
const MAX_SEQ = 2_147_483_647;

/** A position that no thread ever reaches. */
export const NOWHERE = { seq: MAX_SEQ, tag: '' } as const;

/** Reads a timeline cursor of whichever thread; undefined for anything else. */
export const readTimelineCursor = (cursor: string): TimelinePosition | undefined => {
  const [, suffix, digits, tag] = TIMELINE.exec(decode(cursor)) ?? [];
  const seq = Number(digits);
  if (suffix === undefined || tag === undefined || !(seq <= MAX_SEQ)) return undefined;
  if (seq === 0 && tag !== START_TAG) return undefined;
  return { threadId: `${ID_PREFIX.Thread}_${suffix}`, seq, tag };
};

/** Reads a timeline cursor. Throws `INVALID_CURSOR` for anything that is not one of `threadId`'s. */
export const parseTimelineCursor = (cursor: string, threadId: string, field = 'after'): TimelinePosition => {
  const position = readTimelineCursor(cursor);
  if (position?.threadId !== threadId) throw invalidCursor(field);
  return position;
};

/** A position in the log of a scratchpad's changes; of one without state all are '' and 0. */
export interface PadPlace {
  readonly epoch: string;
  readonly rev: number;
  /** Of the last entry up to there. */
  readonly seq: number;
  readonly tag: string;
}

/** The opaque cursor of a position in a scratchpad: follow after it, or page its entries from it. */
export const padCursor = (scratchpadId: string, { epoch, rev, seq, tag }: PadPlace): string =>
  Buffer.from(`p1 ${idSuffix(scratchpadId)} ${epoch} ${rev} ${seq} ${tag}`).toString('base64url');

/** The opaque cursor of one entry: page from it. It goes on working when older entries are cleared. */
export const entryCursor = (scratchpadId: string, epoch: string, seq: number): string =>
  Buffer.from(`p2 ${idSuffix(scratchpadId)} ${epoch} ${seq}`).toString('base64url');

/** The cursor of a reader that waits for the thread's scratchpad to be made. */
export const noPadCursor = (threadId: string): string =>
  Buffer.from(`p0 ${idSuffix(threadId)}`).toString('base64url');

const PAD = /^p1 ([0-9a-z]{26}) ([\w-]{0,32}) (0|[1-9][0-9]{0,14}) (0|[1-9][0-9]{0,14}) ([\w-]{0,32})$/;
const ENTRY = /^p2 ([0-9a-z]{26}) ([\w-]{1,32}) ([1-9][0-9]{0,14})$/;
const NO_PAD = /^p0 ([0-9a-z]{26})$/;

const readPadCursor = (cursor: string): (PadPlace & { readonly scratchpadId: string }) | undefined => {
  const [, suffix, epoch, rev, seq, tag] = PAD.exec(decode(cursor)) ?? [];
  if (suffix === undefined || epoch === undefined || tag === undefined) return undefined;
  // Without state there is one position. Any other of no epoch would ask how far another log reaches.
  if (epoch === '' && (rev !== '0' || seq !== '0' || tag !== '')) return undefined;
  return {
    scratchpadId: `${ID_PREFIX.Scratchpad}_${suffix}`,
    epoch,
    rev: Number(rev),
    seq: Number(seq),
    tag,
  };
};

/** Reads a cursor to follow after. Throws `INVALID_CURSOR` for anything that is not one of this scratchpad's. */
export const parsePadCursor = (cursor: string, scratchpadId: string, field = 'after'): PadPlace => {
  const place = readPadCursor(cursor);
  if (place?.scratchpadId !== scratchpadId) throw invalidCursor(field);
  const { epoch, rev, seq, tag } = place;
  return { epoch, rev, seq, tag };
};

/**
 * Where a stream stands: in which log, and how far. A scratchpad is another log in each epoch, after each fail-over within
 * one, and before it is made.
 */
export interface StreamPosition {
  readonly log: string;
  readonly position: number;
}

/** Reads the cursor of whichever stream; undefined for anything else. */
export const readStreamCursor = (cursor: string): StreamPosition | undefined => {
  const timeline = readTimelineCursor(cursor);
  if (timeline !== undefined) return { log: timeline.threadId, position: timeline.seq };
  const pad = readPadCursor(cursor);
  if (pad !== undefined)
    return {
      log: [pad.scratchpadId, pad.epoch, pad.tag].join(' '),
      position: Math.min(pad.rev, MAX_SEQ),
    };
  const suffix = NO_PAD.exec(decode(cursor))?.[1];
  return suffix === undefined
    ? undefined
    : { log: `no scratchpad ${ID_PREFIX.Thread}_${suffix}`, position: 0 };
};

/** Reads a cursor to page entries from, of either kind. Throws `INVALID_CURSOR` as `parsePadCursor`. */
export const parseEntryCursor = (
  cursor: string,
  scratchpadId: string,
  field = 'after',
): Pick<PadPlace, 'epoch' | 'seq'> => {
  const [, suffix, epoch, seq] = ENTRY.exec(decode(cursor)) ?? [];
  if (epoch === undefined) return parsePadCursor(cursor, scratchpadId, field);
  if (suffix !== idSuffix(scratchpadId)) throw invalidCursor(field);
  return { epoch, seq: Number(seq) };
};

/** Whether it is the cursor of somebody who waited for the scratchpad of this thread. */
export const isNoPadCursor = (cursor: string, threadId: string): boolean =>
  NO_PAD.exec(decode(cursor))?.[1] === idSuffix(threadId);

/** A keyset cursor of a list: the sort key's parts, in order. `list` keeps cursors of different lists apart. */
export const keysetCursor = (list: string, parts: readonly (string | number | bigint)[]): string =>
  Buffer.from(`k1 ${list} ${parts.map(String).join(' ')}`).toString('base64url');

/** What a part of a list's sort key looks like: anything else was never given out, and never reaches the database. */
export const KEY_PART = { id: /^[a-z]{2,8}_[0-9a-z]{1,30}$/, number: /^[0-9]{1,18}$/ } as const;

/**
 * The list of what answers one question: a cursor made for it is none of another's, in which it would point elsewhere.
 */
export const listOf = (name: string, question: Json): string => `${name}-${inputHash(question).slice(0, 16)}`;

export const parseKeysetCursor = (
  cursor: string,
  list: string,
  shapes: readonly RegExp[],
  field = 'after',
): string[] => {
  const [version, name, ...parts] = decode(cursor).split(' ');
  const fits =
    parts.length === shapes.length && shapes.every((shape, index) => shape.test(parts[index] ?? ''));
  if (version !== 'k1' || name !== list || !fits) throw invalidCursor(field);
  return parts;
};

const decode = (cursor: string): string =>
  cursor.length > 512 || !/^[A-Za-z0-9_-]+$/.test(cursor)
    ? ''
    : Buffer.from(cursor, 'base64url').toString('utf8');
