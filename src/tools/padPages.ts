import type { Loaders } from '../loaders.ts';
import { type Arranged, arrangedOf, VIEW_CHARACTERS, viewAsk } from '../scratchpads/formatted.ts';
import type { PadAnswer, PadReply } from '../scratchpads/loading.ts';
import type { PadEntry } from '../scratchpads/pad.ts';
import type { PadPage } from '../scratchpads/plane.ts';
import type { PageAsk } from '../scratchpads/reading.ts';
import type { ViewedPad } from '../scratchpads/scratchpads.ts';
import { KEY_PART, keysetCursor, listOf, parseKeysetCursor } from '../shared/cursors.ts';
import { DomainError, notFound } from '../shared/errors.ts';
import { bytesOfText, pieceIn, TEXT_BYTES } from './pieces.ts';

/** A part of a scratchpad as a model reads it, and the cursor of what is left. */
export interface PadText {
  readonly text: string;
  /** Null: nothing is. */
  readonly next: string | null;
}

/** What is still to be shown: first the body from `body` on (0: it is done), then entries, back from `before` (0: they are). */
interface Rest {
  readonly epoch: string;
  /** Of the content that the first part was of. */
  readonly version: number;
  readonly body: number;
  readonly before: number;
  /** UTF-16 units of the entry `before` that were shown already; 0: it was shown whole. */
  readonly shown: number;
}

/** Of the note that says how to read on: bytes and characters. */
const NOTE = 300;
/** Bytes of a part without its note. */
const PART = TEXT_BYTES - NOTE;
/** Of what stands before a piece. */
const TITLE = 64;
const LIMIT = 100;

/**
 * The formatted view, and what it leaves out in parts that fit into an answer: the rest of the body, then entries, the
 * newest first, each of them once. `note` says how to read on. Errors: NOT_FOUND, PARTICIPANT_NOT_ACTIVE, UNAVAILABLE,
 * INVALID_CURSOR (also where the body was replaced since).
 */
export const padPart = async (
  loaders: Loaders,
  viewed: ViewedPad,
  cursor: string | undefined,
  note: (cursor: string) => string,
): Promise<PadText> => {
  const list = listOf('view', [viewed.pad.scratchpadId]);
  const { text, rest } =
    cursor === undefined
      ? await firstPart(loaders, viewed)
      : await nextPart(loaders, viewed, restIn(list, cursor));
  if (rest === null) return { text, next: null };
  const { epoch, version, body, before, shown } = rest;
  const next = keysetCursor(list, [epoch, version, body, before, shown]);
  return { text: `${text}\n\n${note(next)}`, next };
};

interface Part {
  readonly text: string;
  readonly rest: Rest | null;
}

const restIn = (list: string, cursor: string): Rest => {
  const { number } = KEY_PART;
  const parts = parseKeysetCursor(cursor, list, [/^[\w-]{1,32}$/, number, number, number, number], 'cursor');
  const [epoch = '', ...numbers] = parts;
  const [version = 0, body = 0, before = 0, shown = 0] = numbers.map(Number);
  return { epoch, version, body, before, shown };
};

const firstPart = async (loaders: Loaders, viewed: ViewedPad): Promise<Part> => {
  const { usual } = VIEW_CHARACTERS;
  const answer = requireReadable(await loaders.padState.load({ ...viewed, ...viewAsk(usual) }));
  const whole = arrangedOf(answer, usual);
  if (restOf(answer, whole) === null && bytesOfText(whole.text) <= TEXT_BYTES)
    return { text: whole.text, rest: null };
  const view = fittingView(answer, usual - NOTE);
  return { text: view.text, rest: restOf(answer, view) };
};

/** JSON needs at most so many bytes for one UTF-16 unit. */
const BYTES_PER_UNIT = 6;
/** Characters more or less that are not worth another try. */
const NEAR = 64;

/** As large as fits, about. */
const fittingView = (answer: PadAnswer, maxChars: number): Arranged => {
  const whole = arrangedOf(answer, maxChars);
  if (bytesOfText(whole.text) <= PART) return whole;
  let fits = Math.floor(PART / BYTES_PER_UNIT);
  let over = maxChars;
  while (over - fits > NEAR) {
    const middle = (fits + over) >> 1;
    if (bytesOfText(arrangedOf(answer, middle).text) <= PART) fits = middle;
    else over = middle;
  }
  return arrangedOf(answer, fits);
};

const restOf = ({ seen, page }: PadAnswer, { body, entries, newest }: Arranged): Rest | null => {
  const length = seen.content?.text.length ?? 0;
  const all = page?.entries ?? [];
  const isAll = entries === page?.total;
  if (body === length && isAll) return null;
  const last = entries > 0 ? all.at(-entries) : all.at(-1);
  return {
    epoch: seen.position.epoch,
    version: seen.content?.version ?? 0,
    body: body === length ? 0 : body,
    before: isAll || last === undefined ? 0 : last.seq + (entries > 0 || newest > 0 ? 0 : 1),
    shown: entries > 0 ? 0 : newest,
  };
};

const nextPart = async (loaders: Loaders, viewed: ViewedPad, rest: Rest): Promise<Part> => {
  if (rest.body > 0) return bodyPart(loaders, viewed, rest);
  const before = rest.before + (rest.shown > 0 ? 1 : 0);
  const page: PageAsk = { after: null, before, limit: LIMIT, isBackward: true, maxBytes: PART };
  const answer = await load(loaders, viewed, rest, { content: false, page });
  if (answer.page === null) throw new Error('No page was asked for.');
  return entriesPart(answer.page, rest);
};

const bodyPart = async (loaders: Loaders, viewed: ViewedPad, rest: Rest): Promise<Part> => {
  const { seen } = await load(loaders, viewed, rest, { content: true });
  if (seen.content?.version !== rest.version) throw changed();
  const piece = pieceIn(seen.content.text, rest.body, PART - TITLE);
  const isLast = piece.next === null && rest.before === 0;
  return {
    text: `WORKING BODY, from character ${rest.body + 1}\n${piece.text}`,
    rest: isLast ? null : { ...rest, body: piece.next ?? 0 },
  };
};

/** As many as fit whole; else a piece of the newest. */
const entriesPart = ({ entries, skipped }: PadPage, rest: Rest): Part => {
  const newest = entries.at(-1);
  if (newest === undefined) return { text: '(no earlier entries)', rest: null };
  const number = (entry: PadEntry): number => skipped + entries.indexOf(entry) + 1;
  const from = newest.seq === rest.before ? rest.shown : 0;
  if (rest.shown > 0 && from === 0) throw changed();
  if (from > 0 || TITLE + bytesOfText(newest.content) > PART) {
    const piece = pieceIn(newest.content, from, PART - TITLE);
    const title = `[${number(newest)}] ${from === 0 ? '' : `from character ${from + 1}: `}`;
    const isLast = piece.next === null && number(newest) === 1;
    return {
      text: title + piece.text,
      rest: isLast ? null : { ...rest, before: newest.seq, shown: piece.next ?? 0 },
    };
  }
  const kept = fitting(entries);
  const [oldest = newest] = kept;
  return {
    text: kept.map((entry) => `[${number(entry)}] ${entry.content}`).join('\n'),
    rest: number(oldest) === 1 ? null : { ...rest, before: oldest.seq, shown: 0 },
  };
};

/** Of an entry's number and the end of its line. */
const NUMBER = 16;

/** The newest that fit. */
const fitting = (entries: readonly PadEntry[]): readonly PadEntry[] => {
  let bytes = 0;
  const over = entries.findLastIndex(({ content }) => {
    bytes += bytesOfText(content) + NUMBER;
    return bytes > PART;
  });
  return entries.slice(over + 1);
};

/** As of the state that the first part was of. */
const load = async (
  loaders: Loaders,
  viewed: ViewedPad,
  { epoch }: Rest,
  ask: { readonly content: boolean; readonly page?: PageAsk },
): Promise<PadAnswer> => {
  const answer = requireReadable(await loaders.padState.load({ ...viewed, ...ask }));
  if (answer.seen.position.epoch !== epoch) throw changed();
  return answer;
};

const changed = (): DomainError =>
  new DomainError(
    'INVALID_CURSOR',
    'What this cursor goes on with was replaced or cleared meanwhile. Read the scratchpad from its beginning, without a cursor.',
    { field: 'cursor' },
  );

/** Content is readable while one is active. Errors: NOT_FOUND, PARTICIPANT_NOT_ACTIVE. */
const requireReadable = (reply: PadReply): PadAnswer => {
  if (reply === 'HIDDEN' || reply === 'GONE') throw notFound('Scratchpad');
  if (!reply.seen.isActive)
    throw new DomainError(
      'PARTICIPANT_NOT_ACTIVE',
      'The participant is not active in this thread; only an active member may read its scratchpad.',
    );
  return reply;
};
