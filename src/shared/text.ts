/** The beginning of a text, at most `length` UTF-16 units of it, never through the middle of a character. */
export const cut = (text: string, length: number): string => {
  if (text.length <= length) return text;
  const end = text.charCodeAt(length - 1);
  return text.slice(0, end >= 0xd800 && end < 0xdc00 ? length - 1 : length);
};

/** A stretch of a text. */
export interface Piece {
  readonly text: string;
  /** Where the next one begins, in UTF-16 units of the whole; null: this is the last. */
  readonly next: number | null;
}

/**
 * What begins at `from`, at most so many bytes of it, never through the middle of a character; null where no piece of this text
 * begins. `bytesOf`: what a text takes there, as many bytes as it has UTF-16 units at least. Any character must fit.
 */
export const pieceOf = (
  text: string,
  from: number,
  maxBytes: number,
  bytesOf: (text: string) => number = Buffer.byteLength,
): Piece | null => {
  const before = text.charCodeAt(from - 1);
  if (from > 0 && (from >= text.length || (before >= 0xd800 && before < 0xdc00))) return null;
  const stretch = text.slice(from, from + maxBytes + 1);
  let fits = 0;
  let over = Math.min(stretch.length, maxBytes) + 1;
  while (over - fits > 1) {
    const middle = (fits + over) >> 1;
    if (bytesOf(cut(stretch, middle)) <= maxBytes) fits = middle;
    else over = middle;
  }
  const kept = cut(stretch, fits);
  const next = from + kept.length;
  return { text: kept, next: next < text.length ? next : null };
};
