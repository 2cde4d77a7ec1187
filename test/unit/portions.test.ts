import { expect, test } from 'vitest';
import { createPortions } from '../../src/shared/portions.ts';

test('a few portions are read at a time, and none once there is too much', async () => {
  const portions = createPortions(10);
  let running = 0;
  let most = 0;
  let reads = 0;
  const read = async (): Promise<number> => {
    running += 1;
    reads += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return 4;
  };
  const taken = await Promise.allSettled(
    Array.from({ length: 30 }, () => portions.take(read, (bytes) => bytes)),
  );
  expect(most).toBe(4);
  expect(reads).toBeLessThanOrEqual(3 + most);
  expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(reads);
  expect(taken.at(-1)).toMatchObject({
    reason: { code: 'QUERY_TOO_EXPENSIVE', facts: { limit: 10 } },
  });
});

test('one that fails makes room for the next', async () => {
  const portions = createPortions(10);
  const failed = await Promise.allSettled(
    Array.from({ length: 10 }, () =>
      portions.take(
        () => Promise.reject(new Error('No.')),
        () => 0,
      ),
    ),
  );
  expect(failed.every(({ status }) => status === 'rejected')).toBe(true);
  expect(
    await portions.take(
      async () => 'read',
      () => 11,
    ),
  ).toBe('read');
});
