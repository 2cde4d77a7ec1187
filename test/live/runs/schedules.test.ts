import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import { type Server, startApp, startProcess } from '../../support/app.ts';
import { schedules } from './choose.ts';
import { playSchedule } from './schedule.ts';
import type { Here } from './world.ts';

/** RUN_SCHEDULES=… for more of them, RUN_SEED=… for the same again. */
const COUNT = Number(process.env.RUN_SCHEDULES ?? 3);
const SEED = Number(process.env.RUN_SEED ?? randomInt(2 ** 31));
const ROOMY = {
  MAX_QUERY_COST: '10000000',
  MAX_SUBSCRIPTIONS_PER_SOCKET: '10000',
  MAX_SOCKETS_PER_CREDENTIAL: '10000',
};

let here: Here;
let there: Server;
beforeAll(async () => {
  here = await startApp(ROOMY);
  there = await startProcess(here.stores, ROOMY);
});
afterAll(async () => {
  await there.close();
  await here.close();
});

test('whatever is done with runs, by whom and at once, is what a plain model says', {
  timeout: 60_000 + COUNT * 30_000,
}, async () => {
  process.stdout.write(`RUN_SEED=${SEED} RUN_SCHEDULES=${COUNT}\n`);
  await fc.assert(
    fc.asyncProperty(schedules(24), (schedule) => playSchedule([here, there], schedule)),
    { seed: SEED, numRuns: COUNT, endOnFailure: process.env.RUN_SHRINK !== 'true' },
  );
});
