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

test('long texts of one tenant wait for each other, whichever threads they are for; short ones and other tenants do not', async () => {
  const lanes = createLanes({ width: 2, patienceMs: 60_000 });
  const started = new Map<string, () => void>();
  const write = (ownerId: string, bytes: number, key: string): Promise<void> =>
    lanes.runText({ ownerId, bytes, key }, () => new Promise((resolve) => started.set(key, resolve)));
  const all = [
    write('a', 262_144, 'a1'),
    write('a', 65_537, 'a2'),
    write('a', 262_144, 'a3'),
    write('a', 65_536, 'short'),
    write('b', 262_144, 'b1'),
  ];
  await new Promise(setImmediate);
  expect([...started.keys()].sort()).toEqual(['a1', 'a2', 'b1', 'short']);
  started.get('a1')?.();
  await all[0];
  await new Promise(setImmediate);
  expect(started.has('a3')).toBe(true);
  for (const done of started.values()) done();
  await Promise.all(all);
});
