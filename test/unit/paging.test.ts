import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keysetCursor } from '../../src/shared/cursors.ts';
import { type KeysetList, keysetPage, type PageArgs } from '../../src/shared/paging.ts';

/** A list of numbers that reads as a database would. */
const listOf = (numbers: readonly number[]): KeysetList<number> => ({
  name: 'n',
  parts: [/^\d+$/],
  key: (item) => [item],
  read: async ({ after, before, limit, inverted }) => {
    const found = numbers
      .filter((item) => after === null || item > Number(after[0]))
      .filter((item) => before === null || item < Number(before[0]));
    return (inverted ? found.toReversed() : found).slice(0, limit);
  },
});

const cursor = (item: number): string => keysetCursor('n', [item]);

describe('keysetPage', () => {
  it('answers what the specification of connections says, with a right pageInfo, for any arguments', async () => {
    const bound = fc.option(fc.integer({ min: 0, max: 12 }), { nil: null });
    const size = fc.integer({ min: 1, max: 5 });
    const items = fc.uniqueArray(fc.integer({ min: 0, max: 12 }));
    await fc.assert(
      fc.asyncProperty(
        items,
        bound,
        bound,
        size,
        fc.boolean(),
        async (unsorted, after, before, limit, isBackward) => {
          const numbers = unsorted.toSorted((one, other) => one - other);
          const args: PageArgs = {
            [isBackward ? 'last' : 'first']: limit,
            after: after === null ? null : cursor(after),
            before: before === null ? null : cursor(before),
          };
          const { edges, pageInfo } = await keysetPage(args, listOf(numbers));
          const inRange = numbers.filter(
            (item) => (after === null || item > after) && (before === null || item < before),
          );
          const expected = isBackward ? inRange.slice(-limit) : inRange.slice(0, limit);
          expect(edges).toEqual(expected.map((node) => ({ cursor: cursor(node), node })));
          if (expected.length === 0) return;
          const [first = 0, last = 0] = [expected[0], expected.at(-1)];
          expect(pageInfo).toEqual({
            hasPreviousPage: numbers.some((item) => item < first),
            hasNextPage: numbers.some((item) => item > last),
            startCursor: cursor(first),
            endCursor: cursor(last),
          });
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('tells on an empty page what lies on the far side of its bound', async () => {
    const list = listOf([1, 2]);
    expect((await keysetPage({ after: cursor(2) }, list)).pageInfo).toEqual({
      hasNextPage: false,
      hasPreviousPage: true,
      startCursor: null,
      endCursor: null,
    });
    expect((await keysetPage({ last: 1, before: cursor(1) }, list)).pageInfo).toMatchObject({
      hasNextPage: true,
      hasPreviousPage: false,
    });
    expect((await keysetPage({ after: cursor(2) }, listOf([]))).pageInfo).toMatchObject({
      hasPreviousPage: false,
    });
  });

  it.each([
    [{ first: 1, last: 1 }, 'BAD_USER_INPUT', 'last'],
    [{ first: 0 }, 'BAD_USER_INPUT', 'first'],
    [{ first: 201 }, 'BAD_USER_INPUT', 'first'],
    [{ last: -1 }, 'BAD_USER_INPUT', 'last'],
    [{ after: 'garbage' }, 'INVALID_CURSOR', 'after'],
    [{ before: keysetCursor('other', [1]) }, 'INVALID_CURSOR', 'before'],
    [{ after: keysetCursor('n', [1, 2]) }, 'INVALID_CURSOR', 'after'],
  ])('refuses %j', async (args, code, field) => {
    await expect(keysetPage(args, listOf([1, 2]))).rejects.toMatchObject({ code, facts: { field } });
  });

  it('gives 50 if nothing is asked', async () => {
    const numbers = Array.from({ length: 60 }, (_, index) => index);
    const { edges, pageInfo } = await keysetPage({}, listOf(numbers));
    expect(edges).toHaveLength(50);
    expect(pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: false });
  });
});
