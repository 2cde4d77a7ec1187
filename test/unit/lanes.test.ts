import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLanes } from '../../src/shared/lanes.ts';

test('no more than the width of one key run at once, in order, and other keys do not wait', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 8 }),
      async (s, width, count) => {
        const lanes = createLanes({ width, patienceMs: 60_000 });
        const started: string[] = [];
        let running = 0;
        let most = 0;
        const task = (name: string) => async () => {
          started.push(name);
          running += 1;
          most = Math.max(most, running);
          await s.schedule(Promise.resolve(), name);
          running -= 1;
          return name;
        };
        const mine = Array.from({ length: count }, (_, index) => lanes.run('a', task(`${index}`)));
        await lanes.run('b', async () => undefined);
        await s.waitFor(Promise.all(mine));
        expect(started).toEqual([...started].sort((one, other) => Number(one) - Number(other)));
        expect(started).toHaveLength(count);
        expect(most).toBe(Math.min(width, count));
      },
    ),
  );
});

test('a task that fails lets the next one in', async () => {
  const lanes = createLanes({ width: 1, patienceMs: 60_000 });
  const failed = lanes.run('a', () => Promise.reject(new Error('no')));
  const next = lanes.run('a', () => Promise.resolve('yes'));
  await expect(failed).rejects.toThrow('no');
  await expect(next).resolves.toBe('yes');
});

test('whoever waits too long is told so, and takes no place', async () => {
  const lanes = createLanes({ width: 1, patienceMs: 5 });
  let finish: () => void = () => undefined;
  const first = lanes.run('a', () => new Promise<void>((resolve) => (finish = resolve)));
  await expect(lanes.run('a', () => Promise.resolve())).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  finish();
  await first;
  await expect(lanes.run('a', () => Promise.resolve('again'))).resolves.toBe('again');
});
