import { expect } from 'vitest';
import { type Ask, answered } from './callers.ts';
import { repeated } from './documents.ts';
import { countPairs, type Pairs } from './pairs.ts';
import {
  isMember,
  lastEvent,
  type OracleEventType,
  type OraclePageInput,
  type OracleThread,
  pageOf,
  type Viewer,
} from './rules.ts';
import { connection } from './shown.ts';
import type { World } from './world.ts';

const TYPE_SETS: readonly (readonly OracleEventType[] | undefined)[] = [
  undefined,
  ['MESSAGE'],
  ['RETRACTION'],
  ['PARTICIPANT_STATE_CHANGED', 'SYSTEM'],
  ['SYSTEM', 'RETRACTION', 'MESSAGE'],
];
const PAGES_AT_ONCE = 60;
const PAGE = /* GraphQL */ `
  fragment Page on TimelineEventConnection {
    edges { cursor node { id } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }`;

interface Timeline {
  readonly thread: { readonly timeline: Readonly<Record<string, unknown>> };
}

const pagesDocument = repeated((numbers) => {
  const variables = numbers.map(
    (n) => `$f${n}: Int, $l${n}: Int, $a${n}: Cursor, $b${n}: Cursor, $t${n}: [TimelineEventType!]`,
  );
  const fields = numbers.map(
    (n) =>
      `p${n}: events(first: $f${n}, last: $l${n}, after: $a${n}, before: $b${n}, types: $t${n}) { ...Page }`,
  );
  return `query ($id: ID!, $as: ID, ${variables.join(', ')}) {
    thread(id: $id, as: $as) { timeline { ${fields.join('\n')} } } } ${PAGE}`;
});

/** Each page of a walk begins where the one before it ended. */
const walk = (
  viewer: Viewer,
  thread: OracleThread,
  size: number,
  isForward: boolean,
  types: readonly OracleEventType[] | undefined,
): OraclePageInput[] => {
  const inputs: OraclePageInput[] = [];
  let from: number | undefined;
  for (;;) {
    const input: OraclePageInput = isForward
      ? { first: size, after: from, types }
      : { last: size, before: from, types };
    const { events, hasNextPage, hasPreviousPage } = pageOf(viewer, thread, input);
    inputs.push(input);
    if (!(isForward ? hasNextPage : hasPreviousPage)) return inputs;
    from = (isForward ? events.at(-1) : events[0])?.seq;
  }
};

/** From every other position, also those that the viewer cannot see: forwards, backwards, or between two of them. */
const fromEverywhere = (viewer: Viewer, thread: OracleThread, round: number): OraclePageInput[] => {
  const end = lastEvent(viewer, thread).seq;
  return Array.from({ length: Math.floor(end / 2) + 1 }, (_, index): OraclePageInput => {
    const position = Math.min(2 * index + (round % 2), end);
    const types = TYPE_SETS[(round + position) % TYPE_SETS.length];
    const before = position + 1 + ((position * 7 + round) % (end + 1 - position));
    switch ((round + position) % 4) {
      case 0:
        return { first: 2, after: position, types };
      case 1:
        return { last: 2, before: Math.max(position, 1), types };
      case 2:
        return before > end ? { last: 3, after: position } : { last: 3, after: position, before };
      default:
        return before > end ? { first: 3, after: position } : { first: 3, after: position, before, types };
    }
  });
};

export const compareHistory = async (
  world: World,
  ask: Ask,
  viewer: Viewer,
  pairs: Pairs,
  round: number,
): Promise<void> => {
  for (const thread of world.threads) {
    if (!isMember(viewer, thread)) continue;
    const typed = TYPE_SETS[1 + (round % (TYPE_SETS.length - 1))];
    const isEven = round % 2 === 0;
    // Each event both ways in pages of 7 and 50; those of 1 and of 2 take turns, and so do their directions.
    const inputs = [
      {},
      ...(isEven
        ? walk(viewer, thread, 1, round % 4 === 0, undefined)
        : [
            ...walk(viewer, thread, 2, round % 4 === 1, undefined),
            ...fromEverywhere(viewer, thread, Math.floor(round / 2)),
          ]),
      ...walk(viewer, thread, 2, isEven, typed),
      ...[7, 50].flatMap((size) =>
        [true, false].flatMap((isForward) => walk(viewer, thread, size, isForward, undefined)),
      ),
    ];
    for (let begin = 0; begin < inputs.length; begin += PAGES_AT_ONCE) {
      const batch = inputs.slice(begin, begin + PAGES_AT_ONCE);
      const variables: Record<string, unknown> = { id: thread.id };
      batch.forEach(({ first, last, after, before, types }, n) => {
        Object.assign(variables, { [`f${n}`]: first, [`l${n}`]: last, [`t${n}`]: types });
        if (after !== undefined) variables[`a${n}`] = world.cursorAt(thread, after);
        if (before !== undefined) variables[`b${n}`] = world.cursorAt(thread, before);
      });
      const { timeline } = answered(
        await ask<Timeline>(viewer, pagesDocument(batch.length), variables),
      ).thread;
      batch.forEach((input, n) => {
        const expected = connection(viewer, thread, input, (_, { id }) => ({ id }));
        expect(timeline[`p${n}`], JSON.stringify({ viewer, input })).toEqual(expected);
      });
    }
    countPairs(pairs, 'history', thread.events.length);
  }
};
