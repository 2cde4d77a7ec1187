import { badInput } from '../shared/errors.ts';
import { cut } from '../shared/text.ts';
import type { PadAnswer } from './loading.ts';
import type { PageAsk } from './reading.ts';

/** Of the text a model reads, in UTF-16 units, as JavaScript counts them. */
export const VIEW_CHARACTERS = { usual: 24_000, most: 200_000 } as const;

/** Throws `BAD_USER_INPUT` for what is not 1 to 200,000. */
export const requireViewCharacters = (maxChars: number | null | undefined): number => {
  const { usual, most } = VIEW_CHARACTERS;
  const characters = maxChars ?? usual;
  if (!Number.isInteger(characters) || characters < 1 || characters > most)
    throw badInput(`maxChars must be 1 to ${most}.`, { field: 'maxChars', limit: most });
  return characters;
};

/** An entry takes at least so many characters: one of its own, its number and the end of its line. */
const LEAST_LINE = 6;
/** UTF-8 needs at most so many bytes for one UTF-16 unit. */
const BYTES_PER_UNIT = 3;

/** What a view of so many characters can show at most. */
export const viewAsk = (maxChars: number): { readonly content: true; readonly page: PageAsk } => ({
  content: true,
  page: {
    after: null,
    before: null,
    limit: Math.ceil(maxChars / LEAST_LINE) + 1,
    isBackward: true,
    maxBytes: BYTES_PER_UNIT * maxChars,
  },
});

/** The answer to `viewAsk` as a text. */
export const viewOf = (answer: PadAnswer, maxChars: number): string => arrangedOf(answer, maxChars).text;

/** As `viewOf`, and what of both planes it shows. */
export const arrangedOf = ({ seen, page }: PadAnswer, maxChars: number): Arranged => {
  if (page === null) throw new Error('No page was asked for.');
  const newest = page.entries.map(({ content }) => content);
  return arranged({ text: seen.content?.text ?? '', newest, total: page.total }, maxChars);
};

/** What the formatted view is made of: what one viewer may see of both planes. */
interface Planes {
  /** The working body; empty where there is none. */
  readonly text: string;
  /** The newest entries, ascending; all of them where they are as many as `total`. */
  readonly newest: readonly string[];
  readonly total: number;
}

const NOTHING =
  '(The scratchpad is empty: write a plan with update_scratchpad, or add a finding with append_scratchpad.)';
const HEAD = '--- 📝 RESEARCH SCRATCHPAD ---\n\nWORKING BODY\n';
const MIDDLE = '\n\nAPPENDED ENTRIES\n';

/**
 * Both planes as one text that a model reads, at most `maxChars` long. Neither plane crowds the other out: each has half
 * of the room, and what the other does not need. Of the entries the newest stay; what is left out is said. `[n]` counts
 * what is visible, so an entry keeps its number while older ones are left out.
 */
export const formattedView = (planes: Planes, maxChars: number): string => arranged(planes, maxChars).text;

/** A view, and what of the planes is in it. */
export interface Arranged {
  readonly text: string;
  /** UTF-16 units of the body, from its beginning. */
  readonly body: number;
  /** How many of the newest entries, whole. */
  readonly entries: number;
  /** UTF-16 units of the newest entry, where not even that is whole. */
  readonly newest: number;
}

const arranged = ({ text, newest, total }: Planes, maxChars: number): Arranged => {
  if (text === '' && total === 0) return { text: cut(NOTHING, maxChars), body: 0, entries: 0, newest: 0 };
  const room = Math.max(0, maxChars - HEAD.length - MIDDLE.length);
  const wanted = total === newest.length ? lengthOf(newest) : room;
  const body = clip(text, room - Math.min(wanted, Math.floor(room / 2)));
  const shown = text === '' ? '(empty)' : body.text;
  const list = total === 0 ? NO_ENTRIES : listed(newest, total, room - shown.length);
  return { ...list, text: cut(HEAD + shown + MIDDLE + list.text, maxChars), body: body.kept };
};

const NO_ENTRIES = { text: '(none)', entries: 0, newest: 0 };

const numbered = (newest: readonly string[], total: number): string[] =>
  newest.map((content, index) => `[${total - newest.length + index + 1}] ${content}`);

const lengthOf = (newest: readonly string[]): number =>
  numbered(newest, newest.length).reduce((sum, line) => sum + line.length + 1, 0);

const listed = (
  newest: readonly string[],
  total: number,
  room: number,
): Pick<Arranged, 'text' | 'entries' | 'newest'> => {
  const lines = numbered(newest, total);
  const all = lines.join('\n');
  if (total === newest.length && all.length <= room) return { text: all, entries: total, newest: 0 };
  const noteRoom = leftOut(total).length + 1;
  const kept: string[] = [];
  let length = 0;
  for (const line of lines.toReversed()) {
    length += line.length + 1;
    if (length > room - noteRoom) break;
    kept.unshift(line);
  }
  const entries = kept.length;
  // Not even the newest has room: as much of it as there is.
  const part = entries === 0 ? clip(lines.at(-1) ?? '', Math.max(0, room - noteRoom)) : null;
  if (part !== null) kept.push(part.text);
  const text = [...(kept.length < total ? [leftOut(total - kept.length)] : []), ...kept].join('\n');
  return { text, entries, newest: part === null ? 0 : Math.max(0, part.kept - `[${total}] `.length) };
};

const leftOut = (count: number): string =>
  count === 1 ? '(entry [1] is left out)' : `(entries [1] to [${count}] are left out)`;

const clip = (text: string, room: number): { readonly text: string; readonly kept: number } => {
  if (text.length <= room) return { text, kept: text.length };
  const note = (count: number): string => `… (${count} more characters are left out)`;
  const kept = cut(text, Math.max(0, room - note(text.length).length));
  return { text: cut(kept + note(text.length - kept.length), room), kept: kept.length };
};
