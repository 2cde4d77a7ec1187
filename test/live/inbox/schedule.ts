import { expect } from 'vitest';
import { AGENTS, type Schedule, THREAD_NAMES, THREADS } from './choose.ts';
import { drain } from './drain.ts';
import { unexplained } from './explain.ts';
import { passedOver } from './fair.ts';
import type { Observation } from './observed.ts';
import { Play } from './play.ts';
import type { Processes } from './processes.ts';
import { type RecordedEvent, readRecord } from './record.ts';
import { notToldRight } from './told.ts';
import { World } from './world.ts';

/** How often it came to what. */
export interface Tally {
  readonly deliveries: number;
  /** Of them those that were handed out before. */
  readonly again: number;
  /** Acknowledgements and answers with a delivery that was not in flight any more. */
  readonly refused: number;
  /** Of which nobody heard whether they were done. */
  readonly lost: number;
  /** Deliveries that were taken, and came to nobody. */
  readonly unseen: number;
  readonly notices: number;
}

/** Plays a schedule, takes what is left at the end, and compares all that was seen with the rules. */
export const playSchedule = async (
  processes: Processes,
  { phases, isStreamed }: Schedule,
): Promise<Tally> => {
  const tenants = phases[0]?.steps.length ?? 0;
  const plays = await Promise.all(
    Array.from({ length: tenants }, async () => Play.of(await World.create(processes))),
  );
  for (const { steps, kill } of phases) {
    await processes.allUp();
    processes.killAfter(kill.after, kill.ms, kill.which);
    await Promise.all(
      plays.map(async (play, index) => {
        for (const commands of steps[index] ?? []) await play.step(commands);
      }),
    );
    await processes.killed();
    for (const play of plays) play.world.settled();
    // What was lost stands or does not: from now on it is known which.
    await Promise.all(plays.map((play) => play.look(0)));
  }
  await processes.allUp();
  await Promise.all(
    plays.map(async (play) => {
      await play.hands.leaveAll();
      await drain(play, isStreamed);
      await judge(play);
    }),
  );
  return tallyOf(plays);
};

const tallyOf = (plays: readonly Play[]): Tally => {
  const seen = plays.flatMap(({ world }) => AGENTS.flatMap((agent) => world.seenBy(agent)));
  const given = new Set(seen.flatMap((one) => (one.kind === 'GIVEN' ? one.deliveryId : [])));
  const asked = plays.flatMap(({ world }) => world.asked);
  const isLate = (one: Observation): boolean => 'code' in one && one.code === 'CONFLICT';
  const isLost = (one: Observation): boolean => 'code' in one && one.code === 'LOST';
  return {
    deliveries: given.size,
    again: seen.filter((one) => one.kind === 'GIVEN' && one.attempt > 1).length,
    refused: seen.filter(isLate).length,
    lost: seen.filter(isLost).length + asked.filter(({ seq }) => seq === null).length,
    unseen: seen.filter((one) => one.kind === 'LAPSED' && one.found !== null && !given.has(one.found)).length,
    notices: plays.reduce((sum, { world }) => sum + world.notices.length, 0),
  };
};

const judge = async ({ world }: Play): Promise<void> => {
  const records = (await Promise.all(THREAD_NAMES.map((thread) => readRecord(world, thread)))).flat();
  for (const agent of AGENTS) {
    const seen = [
      ...records
        .filter(({ thread }) => THREADS[thread as keyof typeof THREADS].some((who) => who === agent))
        .map((one) => observed(one, agent)),
      ...world.seenBy(agent),
    ];
    const who = { handle: agent, isConcurrent: agent !== 'solo' };
    expect(unexplained(who, seen, world.unseenBy(agent))).toBe(null);
    expect(passedOver(who, seen)).toEqual([]);
    expect(notToldRight(agent, seen, world.notices, world.unreadBy(agent))).toEqual([]);
  }
};

const observed = ({ thread, event, span, answers }: RecordedEvent, agent: string): Observation => ({
  kind: 'EVENT',
  thread,
  event,
  span,
  answers: answers?.agent === agent ? answers.deliveryId : null,
});
