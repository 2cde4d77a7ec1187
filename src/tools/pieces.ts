import { KEY_PART, keysetCursor, parseKeysetCursor } from '../shared/cursors.ts';
import { DomainError, invalidCursor } from '../shared/errors.ts';
import { type Piece, pieceOf } from '../shared/text.ts';

/** Bytes that a client receives of one answer at most, be it of a tool or a page of a resource: JSON, with all around the text. */
export const ANSWER_BYTES = 32_768;
/** For what is around the text: the protocol's words, ids, addresses. */
const AROUND = 2_048;
/** For the text, in bytes of JSON. */
export const TEXT_BYTES = ANSWER_BYTES - AROUND;

/** What an object that a model reads takes of an answer: it is JSON, told as a text of JSON. */
export const bytesOfShown = (shown: unknown): number => bytesOfText(JSON.stringify(shown));

/** What a text takes of an answer, without its quotes. */
export const bytesOfText = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2;

const bytesInShown = (text: string): number => bytesOfShown(text) - 4;

/** A cursor under its name. */
const CURSOR = 256;
/** Of an object with a list of objects: what it has beside them. */
const BESIDE = CURSOR + 128;

/** For a list of objects and whatever stands beside it. */
export const listBytes = (beside: object = {}): number => TEXT_BYTES - BESIDE - bytesOfShown(beside);

/** Less is not worth a piece. Any character fits into it. */
export const LEAST_PIECE = 64;

/** A piece of a text that stands in a shown object, with the cursor of its rest. Errors: INVALID_CURSOR, as `pieceIn`. */
export const shownPiece = (text: string, from: number, maxBytes: number): Piece =>
  pieceIn(text, from, Math.max(LEAST_PIECE, maxBytes - CURSOR), bytesInShown);

/** How many objects fit, from the first on; 0: not even that. */
export const countFitting = (shown: readonly object[], maxBytes: number): number => {
  let bytes = 0;
  const over = shown.findIndex((one) => {
    bytes += bytesOfShown(one) + 1;
    return bytes > maxBytes;
  });
  return over === -1 ? shown.length : over;
};

/** Errors: INVALID_CURSOR where no piece begins there. */
export const pieceIn = (text: string, from: number, maxBytes: number, bytesOf = bytesOfText): Piece => {
  const piece = pieceOf(text, from, maxBytes, bytesOf);
  if (piece === null) throw invalidCursor('cursor');
  return piece;
};

/** What texts of messages and memories are, as far as their rests go. */
type Texts = 'content' | 'data' | 'memory';

/** Where the rest of a long text begins: whose, and after how many UTF-16 units. */
export interface RestOf {
  readonly id: string;
  readonly from: number;
}

export const restCursor = (of: Texts, id: string, from: number): string =>
  keysetCursor(`rest-${of}`, [id, from]);

/** Null for any other cursor. */
export const readRestCursor = (of: Texts, cursor: string): RestOf | null => {
  try {
    const [id = '', from] = parseKeysetCursor(cursor, `rest-${of}`, [KEY_PART.id, KEY_PART.number], 'cursor');
    return { id, from: Number(from) };
  } catch (error) {
    if (error instanceof DomainError) return null;
    throw error;
  }
};
