import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import type { GraphQLContext } from '../../../src/graphql/context.ts';
import { countStreams } from '../../../src/graphql/presence.ts';

test('a participant’s stream hands over what came together as any other, and is counted until it ends', async () => {
  const schema = buildSchema('type Query { a: Int } type Subscription { numbers: Int }');
  const numbers = [2, 3];
  const stream = Object.assign(
    (async function* () {
      yield 1;
    })(),
    { more: () => numbers.shift() },
  );
  const field = schema.getSubscriptionType()?.getFields().numbers;
  Object.assign(field ?? {}, { subscribe: () => Promise.resolve(stream) });
  countStreams(schema);
  const held: string[] = [];
  const context = {
    actor: { kind: 'PARTICIPANT_TOKEN', userId: 'user_1', credentialId: 'cred_1', participantId: 'part_1' },
    signal: new AbortController().signal,
    services: {
      presence: {
        hold: (id: string) => {
          held.push(id);
          return () => held.pop();
        },
      },
    },
  } as unknown as GraphQLContext;
  const counted = (await field?.subscribe?.(undefined, {}, context, {} as never)) as typeof stream;
  expect(held).toEqual(['part_1']);
  expect(await counted.next()).toEqual({ value: 1, done: false });
  expect([counted.more(), counted.more(), counted.more()]).toEqual([2, 3, undefined]);
  expect((await counted.next()).done).toBe(true);
  expect(held).toEqual([]);
});
