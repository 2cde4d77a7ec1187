import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formattedView, requireViewCharacters } from '../../../src/scratchpads/formatted.ts';

const view = (text: string, entries: readonly string[], maxChars = 24_000): string =>
  formattedView({ text, newest: entries, total: entries.length }, maxChars);

describe('the view that a model reads', () => {
  test('has both planes, each under its heading', () => {
    expect(view('A plan', ['first', 'second\nline'])).toBe(
      '--- 📝 RESEARCH SCRATCHPAD ---\n\nWORKING BODY\nA plan\n\nAPPENDED ENTRIES\n[1] first\n[2] second\nline',
    );
  });

  test('says which plane has nothing', () => {
    expect(view('', ['first'])).toContain('WORKING BODY\n(empty)\n\nAPPENDED ENTRIES\n[1] first');
    expect(view('A plan', [])).toContain('WORKING BODY\nA plan\n\nAPPENDED ENTRIES\n(none)');
  });

  test('is one sentence in parentheses where both are empty, and names the tool to begin with', () => {
    expect(view('', [])).toMatch(/^\([^()]*update_scratchpad[^()]*\)$/);
  });

  test('keeps the newest entries, under their own numbers, and says which are left out', () => {
    const entries = Array.from({ length: 40 }, (_, index) => `finding ${index + 1} ${'x'.repeat(80)}`);
    const text = view('A plan', entries, 1_000);
    expect(text.length).toBeLessThanOrEqual(1_000);
    const kept = [...text.matchAll(/^\[(\d+)\] finding (\d+)/gm)].map(([, number, of]) => [number, of]);
    expect(kept.length).toBeGreaterThan(3);
    expect(kept.at(-1)).toEqual(['40', '40']);
    for (const [number, of] of kept) expect(number).toBe(of);
    expect(text).toContain(`(entries [1] to [${40 - kept.length}] are left out)`);
    expect(text).toContain('WORKING BODY\nA plan\n');
  });

  test('gives neither plane all of the room', () => {
    const text = view('b'.repeat(5_000), ['the newest', 'e'.repeat(5_000)], 1_000);
    expect(text.length).toBeLessThanOrEqual(1_000);
    expect(text).toMatch(/b{300,}… \(\d+ more characters are left out\)/);
    expect(text).toMatch(/\[2\] e{300,}… \(\d+ more characters are left out\)/);
    expect(text).toContain('(entry [1] is left out)');
  });

  test('is never longer than asked for, cuts no character in two, and is the same where not all entries were read', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 300 }),
        fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 3_000 }),
        (text, entries, maxChars) => {
          const whole = view(text, entries, maxChars);
          expect(whole.length).toBeLessThanOrEqual(maxChars);
          expect(whole.isWellFormed()).toBe(true);
          const read = entries.slice(-Math.max(1, entries.length - 5));
          const partly = formattedView({ text, newest: read, total: entries.length }, maxChars);
          expect(partly.length).toBeLessThanOrEqual(maxChars);
        },
      ),
    );
  });
});

test.each([0, -1, 1.5, 200_001])('maxChars of %d is refused', (maxChars) => {
  expect(() => requireViewCharacters(maxChars)).toThrow(/maxChars must be 1 to 200000/);
});
