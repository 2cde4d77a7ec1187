import { expect } from 'vitest';
import { until } from '../../support/until.ts';
import { AGENTS, THREAD_NAMES, THREADS } from './choose.ts';
import type { Play } from './play.ts';
import { type RecordedEvent, readRecord } from './record.ts';

/**
 * At the end nothing is cut any more, time has passed for all that is in somebody's hands, and everybody is back: now all that waits is
 * handed out, to an agent that does one thing at a time the longest waiting first, and then nothing waits.
 */
export const drain = async (play: Play, isStreamed: boolean): Promise<void> => {
  for (const agent of AGENTS) {
    const mine = THREAD_NAMES.filter((thread) => THREADS[thread].some((who) => who === agent));
    for (const thread of mine) await play.lapse(agent, thread, null);
    // To whoever is away nothing of there is given: what comes is compared with the rules later.
    await play.take(agent, 0, 50, 3);
    for (const thread of mine) {
      const last = (await readRecord(play.world, thread)).findLast(
        ({ event }) => event.kind === 'CHANGE' && event.subject === agent,
      );
      const isAway = last?.event.kind === 'CHANGE' && !last.event.isActive;
      play.knows(agent, thread, isAway);
      if (isAway) await play.move(agent, thread, 1);
    }
    for (const thread of mine) await play.lapse(agent, thread, null);
    const waiting = new Map<string, number[]>();
    for (const thread of mine) waiting.set(thread, [...(await play.pending(agent, thread, 1))]);
    const records = (await Promise.all(mine.map((thread) => readRecord(play.world, thread)))).flat();
    await (isStreamed ? byStream : byPull)(play, agent, waiting, records);
    expect([agent, [...waiting.values()].flat()]).toEqual([agent, []]);
    for (const thread of mine) expect(await play.pending(agent, thread, 0)).toEqual([]);
    // What it was not told yet; nothing else is left.
    for (let more = true; more; ) {
      const given = await play.take(agent, 0, 50, 3);
      expect(given?.filter(({ channel }) => channel === 'MESSAGE')).toEqual([]);
      more = (given?.length ?? 0) > 0;
    }
  }
};

type Waiting = Map<string, number[]>;

/** Threads in the order in which they wait. */
const inOrder = (waiting: Waiting, records: readonly RecordedEvent[]): string[] => {
  const since = (thread: string): string => {
    const [seq] = waiting.get(thread) ?? [];
    const found = records.find((one) => one.thread === thread && one.event.seq === seq);
    return found?.event.kind === 'MESSAGE' ? found.event.at : '';
  };
  return [...waiting]
    .flatMap(([thread, seqs]) => (seqs.length > 0 ? thread : []))
    .sort((one, other) => (since(one) < since(other) ? -1 : 1));
};

const byPull = async (
  play: Play,
  agent: string,
  waiting: Waiting,
  records: readonly RecordedEvent[],
): Promise<void> => {
  for (let turn = 0; ; turn += 1) {
    const batch = 1 + (turn % 3);
    const max = 1 + (turn % 4);
    const before = play.hands.held.length;
    await play.take(agent, turn % 2, max, batch);
    const given = play.hands.held.slice(before);
    const due = inOrder(waiting, records).slice(0, agent === 'solo' ? 1 : max);
    expect([agent, given.map(({ thread, events }) => [thread, events.map(({ seq }) => seq)])]).toEqual([
      agent,
      due.map((thread) => [thread, waiting.get(thread)?.slice(0, batch)]),
    ]);
    // Nothing more of what is in hand, and of another nothing at all.
    if (agent === 'solo' && due.length > 0) {
      await play.take(agent, turn % 2, 5, 5);
      expect(play.hands.held).toHaveLength(before + due.length);
    }
    for (const one of given) {
      await play.acknowledge(one, 1 - (turn % 2), one.deliveryId, null);
      waiting.get(one.thread)?.splice(0, one.events.length);
    }
    if (due.length === 0) return;
  }
};

const byStream = async (
  play: Play,
  agent: string,
  waiting: Waiting,
  records: readonly RecordedEvent[],
): Promise<void> => {
  const { held } = play.hands;
  let done = held.length;
  await play.hands.open(agent, 1, 2, false);
  for (let turn = 0; ; turn += 1) {
    const order = inOrder(waiting, records);
    if (order.length === 0) break;
    const due = agent === 'solo' ? order.slice(0, 1) : order;
    await until(() => held.length >= done + due.length).catch(() => {
      throw new Error(`${agent} is not given what waits: ${JSON.stringify([...waiting])}`);
    });
    const given = held.slice(done);
    done = held.length;
    expect(
      given.map(({ thread, events }) => `${thread} ${events.map(({ seq }) => seq).join(' ')}`).sort(),
    ).toEqual(due.map((thread) => `${thread} ${waiting.get(thread)?.slice(0, 2).join(' ')}`).sort());
    // All are done with before the next may come, but for what comes meanwhile.
    for (const one of given) waiting.get(one.thread)?.splice(0, one.events.length);
    await Promise.all(given.map((one) => play.acknowledge(one, turn % 2, one.deliveryId, null)));
  }
  await play.hands.leaveAll();
};
