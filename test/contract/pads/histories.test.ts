import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, test } from 'vitest';
import { type PadWorld, startPadWorld } from '../../support/pads.ts';
import { history } from './history.ts';
import { createPadWorld } from './world.ts';

const RUNS = 300;

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

test('whatever happens to a pad, its readers see what a plain model says', async () => {
  const { commands } = world.redis;
  if (!(commands instanceof Redis)) throw new Error('Not a single server.');
  await fc.assert(
    fc.asyncProperty(history, async (actions) => {
      const pad = createPadWorld(commands);
      for (const action of actions) await pad.act(action);
      await pad.check();
    }),
    { numRuns: RUNS },
  );
});
