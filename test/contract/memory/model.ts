import type { Json } from '../../../src/shared/canonical.ts';

/** What §7 says of memory, and §5 of messages, in a few plain lines. */
export interface Remembered {
  readonly id: string;
  readonly agent: number;
  readonly thread: number | null;
  readonly only: boolean | null;
  readonly payload: { readonly [key: string]: Json };
}

export interface Said {
  readonly id: string;
  readonly thread: number;
  readonly text: string;
  /** Who was active then. */
  readonly seenBy: ReadonlySet<number>;
}

export interface Question {
  readonly words: readonly string[];
  readonly match: Json | null;
}

const textsOf = (value: Json | undefined): string[] => {
  if (typeof value === 'string') return [value];
  if (value === null || typeof value !== 'object') return [];
  return Object.values(value).flatMap(textsOf);
};

/** Words with spaces around them count whole; the others anywhere. */
const has = (text: string, word: string): boolean =>
  /^[a-z]+$/.test(word) ? text.split(/[^a-z]+/).includes(word) : text.includes(word);

const contains = (value: Json | undefined, part: Json | undefined): boolean => {
  if (Array.isArray(value) && Array.isArray(part))
    return part.every((wanted) => value.some((item) => contains(item as Json, wanted as Json)));
  if (typeof value === 'object' && value !== null && typeof part === 'object' && part !== null)
    return (
      Array.isArray(value) === Array.isArray(part) &&
      Object.entries(part).every(([key, wanted]) => {
        const members = value as { readonly [key: string]: Json | undefined };
        return key in members && contains(members[key], wanted as Json);
      })
    );
  return value === part;
};

/** Newest first. */
export const recalled = (
  entries: readonly Remembered[],
  agent: number,
  thread: number,
  { words, match }: Question,
): Remembered[] => {
  const mine = entries
    .filter((entry) => entry.agent === agent)
    .filter(({ thread: where, only }) => where === thread || where === null || only === false)
    .filter(({ payload }) => match === null || contains(payload, match))
    .reverse();
  const with_ = (entry: Remembered, how: 'every' | 'some'): boolean => {
    const text = textsOf(entry.payload).join(' ');
    return words[how]((word) => has(text, word));
  };
  if (words.length === 0) return mine;
  const all = mine.filter((entry) => with_(entry, 'every'));
  return all.length > 0 ? all : mine.filter((entry) => with_(entry, 'some'));
};

export const found = (
  messages: readonly Said[],
  viewer: number | null,
  thread: number | null,
  words: readonly string[],
): Said[] =>
  messages.filter(
    ({ seenBy, thread: where, text }) =>
      (viewer === null || seenBy.has(viewer)) &&
      (thread === null || where === thread) &&
      words.every((word) => has(text, word)),
  );
