import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { schedules } from './choose.ts';
import { Processes } from './processes.ts';
import { playSchedule } from './schedule.ts';

/** INBOX_SCHEDULES=… for more of them, INBOX_SEED=… for the same again. */
const COUNT = Number(process.env.INBOX_SCHEDULES ?? 3);
const SEED = Number(process.env.INBOX_SEED ?? randomInt(2 ** 31));
/** So many are played at once, each by a tenant of its own: what takes long is that processes begin again. */
const AT_ONCE = Math.min(COUNT, 10);

let processes: Processes;
beforeAll(async () => {
  processes = await Processes.start();
});
afterAll(() => processes[Symbol.asyncDispose]());

test('whatever is killed, cut or slow, each inbox gives what the rules say, in order, once, and all of it', {
  timeout: 60_000 + COUNT * 30_000,
}, async () => {
  process.stdout.write(`INBOX_SEED=${SEED} INBOX_SCHEDULES=${COUNT}\n`);
  const drawn = fc.sample(schedules(AT_ONCE), { seed: SEED, numRuns: Math.ceil(COUNT / AT_ONCE) });
  for (const [index, schedule] of drawn.entries()) {
    try {
      const tally = await playSchedule(processes, schedule);
      process.stdout.write(`schedule ${index}: ${JSON.stringify(tally)}\n`);
      // Otherwise nothing was tried. Of a few schedules none may happen to be refused or noticed.
      expect(tally.deliveries).toBeGreaterThan(0);
      if (AT_ONCE === 10) expect(Math.min(tally.refused, tally.notices)).toBeGreaterThan(0);
    } catch (error) {
      throw new Error(`Schedule ${index} of INBOX_SEED=${SEED}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
});
