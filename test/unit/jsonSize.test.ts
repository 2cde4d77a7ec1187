import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonSize } from '../../src/shared/jsonSize.ts';

const bytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

test('a value is never taken for smaller than it is as JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const size = jsonSize(value, bytes(value));
      expect(size).toBeGreaterThanOrEqual(bytes(value));
    }),
  );
});

test.each([
  ['plain text', 'x'.repeat(1_000)],
  ['text that is escaped', '\u0001"\\\n'.repeat(1_000)],
  ['text of several bytes', 'é界😀'.repeat(1_000)],
  ['a lone surrogate', '\ud800'.repeat(1_000)],
  ['members with names', { ['界'.repeat(500)]: ['\u0000'.repeat(500), null, true] }],
])('%s is measured as it will be', (_name, value) => {
  const size = jsonSize(value, bytes(value));
  expect(size).toBeGreaterThanOrEqual(bytes(value));
  expect(size).toBeLessThan(bytes(value) + 40);
  expect(jsonSize(value, bytes(value) - 1)).toBeGreaterThan(bytes(value) - 1);
});

test('what is named many times is not gone over once its bound is passed', () => {
  const text = 'x'.repeat(1_000_000);
  let looked = 0;
  const values = Array.from({ length: 1_000 }, () => ({
    toJSON: () => {
      looked += 1;
      return text;
    },
  }));
  expect(jsonSize(values, 10_000_000)).toBeGreaterThan(10_000_000);
  expect(looked).toBeLessThan(20);
});

test('an error is measured as what is told of it', () => {
  const error = { toJSON: () => ({ message: 'm'.repeat(100) }), hidden: 'h'.repeat(10_000) };
  expect(jsonSize(error, 1_000_000)).toBeLessThan(200);
});
