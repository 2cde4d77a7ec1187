import { expect } from 'vitest';
import { type Ask, answered } from './callers.ts';
import { repeated } from './documents.ts';
import { countPairs, type Pairs } from './pairs.ts';
import { isMember, sees, type Viewer } from './rules.ts';
import { EVENT, shown, whole } from './shown.ts';
import type { World } from './world.ts';

interface Timeline {
  readonly thread: { readonly timeline: Readonly<Record<string, unknown>> };
}

const NODES = `query ($ids: [ID!]!, $as: ID) { nodes(ids: $ids, as: $as) { id ...Event } } ${EVENT}`;
const NODE = `query ($id: ID!, $as: ID) { node(id: $id, as: $as) { id ...Event } } ${EVENT}`;
const EVENTS_AT_ONCE = 60;
const eventsDocument = repeated(
  (numbers) => `query ($thread: ID!, $as: ID, ${numbers.map((n) => `$e${n}: ID!`).join(', ')}) {
    thread(id: $thread, as: $as) { timeline { ${numbers.map((n) => `e${n}: event(id: $e${n}) { id }`).join('\n')} } } }`,
);

export const compareById = async (
  world: World,
  ask: Ask,
  viewer: Viewer,
  pairs: Pairs,
  round: number,
): Promise<void> => {
  const { events } = world;
  const expected = events.map((event) => (sees(viewer, event) ? whole(viewer, event) : null));
  for (let begin = 0; begin < events.length; begin += 200) {
    const ids = events.slice(begin, begin + 200).map(({ id }) => id);
    expect(await ask(viewer, NODES, { ids })).toEqual({
      data: { nodes: expected.slice(begin, begin + 200) },
    });
  }
  const index = round % events.length;
  expect(await ask(viewer, NODE, { id: events[index]?.id })).toEqual({ data: { node: expected[index] } });
  countPairs(pairs, 'by id', events.length);

  for (const thread of world.threads) {
    if (!isMember(viewer, thread)) continue;
    // The thread's own, and some of others, which are none of its.
    const asked = [...thread.events, ...events.filter((event) => event.thread !== thread).slice(0, 20)];
    for (let begin = 0; begin < asked.length; begin += EVENTS_AT_ONCE) {
      const batch = asked.slice(begin, begin + EVENTS_AT_ONCE);
      const variables = Object.fromEntries(batch.map(({ id }, n) => [`e${n}`, id]));
      const answer = await ask<Timeline>(viewer, eventsDocument(batch.length), {
        thread: thread.id,
        ...variables,
      });
      const { timeline } = answered(answer).thread;
      batch.forEach((event, n) => {
        expect(timeline[`e${n}`]).toEqual(event.thread === thread ? shown(viewer, event) : null);
      });
    }
  }
};
