import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cut, pieceOf } from '../../src/shared/text.ts';

test('a text is whole again from its pieces, each bounded by bytes and none through a character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 4, max: 40 }), (text, maxBytes) => {
      const pieces: string[] = [];
      for (let from: number | null = 0; from !== null; ) {
        const piece = pieceOf(text, from, maxBytes);
        if (piece === null) throw new Error(`No piece begins at ${from}.`);
        expect(Buffer.byteLength(piece.text)).toBeLessThanOrEqual(maxBytes);
        expect(piece.text.isWellFormed()).toBe(true);
        pieces.push(piece.text);
        from = piece.next;
      }
      expect(pieces.join('')).toBe(text);
      // No more of them than there must be: a character has four bytes at most.
      expect(pieces.length).toBeLessThanOrEqual(1 + Buffer.byteLength(text) / (maxBytes - 3));
      for (let length = 0; length <= text.length; length += 1) {
        expect(cut(text, length).isWellFormed()).toBe(true);
        expect(length - cut(text, length).length).toBeLessThanOrEqual(1);
      }
    }),
  );
});

test.each([
  ['ab', 2],
  ['ab', 7],
  ['a😀', 2],
])('no piece of %j begins at %d', (text, from) => {
  expect(pieceOf(text, from, 4)).toBe(null);
});
