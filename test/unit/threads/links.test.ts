import { expect, test } from 'vitest';
import { firstOfLinked, type Link } from '../../../src/threads/links.ts';

const sorted = (links: readonly Link[]) => [...firstOfLinked(links)].sort();

test('names the first of each set of connected threads, in whatever order the links come', () => {
  const links: Link[] = [
    ['d', 'c'],
    ['f', 'g'],
    ['b', 'c'],
    ['d', 'a'],
    ['a', 'd'],
  ];
  const expected = [
    ['a', 'a'],
    ['b', 'a'],
    ['c', 'a'],
    ['d', 'a'],
    ['f', 'f'],
    ['g', 'f'],
  ];
  expect(sorted(links)).toEqual(expected);
  expect(sorted(links.toReversed())).toEqual(expected);
  expect(sorted([])).toEqual([]);
});

test('takes a star and a chain of twenty thousand links', () => {
  const name = (index: number): string => String(index).padStart(6, '0');
  const size = 20_000;
  const star = Array.from({ length: size }, (_, index): Link => [name(size), name(index)]);
  const chain = Array.from(
    { length: size },
    (_, index): Link => [name(size - index), name(size - index - 1)],
  );
  for (const links of [star, chain]) {
    const first = firstOfLinked(links);
    expect(first.size).toBe(size + 1);
    expect(new Set(first.values())).toEqual(new Set([name(0)]));
  }
});
