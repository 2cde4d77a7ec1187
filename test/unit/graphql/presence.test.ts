import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import type { GraphQLContext } from '../../../src/graphql/context.ts';
import { countStreams } from '../../../src/graphql/presence.ts';

const held: string[] = [];
const contextOf = (actor: object) =>
  ({
    actor: { userId: 'user_1', credentialId: 'cred_1', ...actor },
    signal: new AbortController().signal,
    loaders: {
      participant: {
        load: async (id: string) => {
          if (id === 'part_away') throw new Error('The database is away.');
          return id === 'part_1' ? { id } : null;
        },
      },
    },
    services: {
      presence: {
        hold: (...whose: string[]) => {
          held.push(whose.join(' '));
          return () => held.pop();
        },
      },
    },
  }) as unknown as GraphQLContext;

/** A schema whose one subscription gives a stream. */
const subscriptionTo = (stream: object) => {
  const schema = buildSchema('type Query { a: Int } type Subscription { numbers: Int }');
  const field = schema.getSubscriptionType()?.getFields().numbers;
  Object.assign(field ?? {}, { subscribe: () => Promise.resolve(stream) });
  countStreams(schema);
  return async (actor: object, args = {}) =>
    field?.subscribe?.(undefined, args, contextOf(actor), {} as never);
};

test('a participant’s stream hands over what came together as any other, and is counted until it ends', async () => {
  const numbers = [2, 3];
  const stream = Object.assign(
    (async function* () {
      yield 1;
    })(),
    { more: () => numbers.shift() },
  );
  const counted = (await subscriptionTo(stream)({
    kind: 'PARTICIPANT_TOKEN',
    participantId: 'part_1',
  })) as typeof stream;
  expect(held).toEqual(['user_1 part_1']);
  expect(await counted.next()).toEqual({ value: 1, done: false });
  expect([counted.more(), counted.more(), counted.more()]).toEqual([2, 3, undefined]);
  expect((await counted.next()).done).toBe(true);
  expect(held).toEqual([]);
});

test('a key’s stream is counted for a participant of its tenant alone, and given out all the same', async () => {
  const stream = (async function* () {
    yield 1;
  })();
  const subscribe = subscriptionTo(stream);
  const key = { kind: 'API_KEY', actAs: null };
  for (const as of [undefined, 'part_of_another', 'part_away'])
    expect(await subscribe(key, { as })).toBe(stream);
  expect(held).toEqual([]);
  await subscribe(key, { as: 'part_1' });
  expect(held).toEqual(['user_1 part_1']);
});
