import fc from 'fast-check';

/**
 * What a generated history is made of. Numbers choose among what is there when the command's turn comes, so that
 * every history makes sense and still shrinks. `wild` chooses among everything instead: most of those are refused.
 */
export type Command =
  | { readonly act: 'open'; readonly members: number }
  | {
      readonly act: 'post';
      readonly thread: number;
      readonly by: number;
      readonly mention: number | null;
      readonly source: number | null;
      readonly originating: number | null;
      readonly acknowledge: number | null;
      readonly condition: number | null;
      readonly repeat: boolean;
      readonly wild: boolean;
    }
  | { readonly act: 'retract'; readonly target: number; readonly by: number; readonly wild: boolean }
  | {
      readonly act: 'remove' | 'readd';
      readonly thread: number;
      readonly member: number;
      readonly wild: boolean;
    }
  | { readonly act: 'leave'; readonly thread: number; readonly by: number; readonly wild: boolean }
  | {
      readonly act: 'extend';
      readonly thread: number;
      readonly by: number | null;
      readonly added: number;
      readonly wild: boolean;
    }
  | {
      readonly act: 'acknowledge';
      readonly thread: number;
      readonly by: number;
      readonly position: number;
      readonly wild: boolean;
    };

export const PARTICIPANTS = 6;

const any = fc.nat({ max: 10_000 });
const now = <T>(arbitrary: fc.Arbitrary<T>, freq: number): fc.Arbitrary<T | null> =>
  fc.option(arbitrary, { freq });
/** True once in a while, and false when it shrinks. */
const seldom = fc.nat({ max: 9 }).map((value) => value === 9);
/** Sets of participants, one bit each. */
const some = fc.nat({ max: 2 ** PARTICIPANTS - 1 });
const act = <Act extends Command['act']>(...acts: Act[]): fc.Arbitrary<Act> => fc.constantFrom(...acts);

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      act: act('post'),
      thread: any,
      by: any,
      mention: now(any, 3),
      source: now(any, 3),
      originating: now(any, 3),
      acknowledge: now(any, 3),
      condition: now(any, 5),
      repeat: seldom,
      wild: seldom,
    }),
  },
  { weight: 3, arbitrary: fc.record({ act: act('remove'), thread: any, member: any, wild: seldom }) },
  { weight: 3, arbitrary: fc.record({ act: act('readd'), thread: any, member: any, wild: seldom }) },
  { weight: 3, arbitrary: fc.record({ act: act('retract'), target: any, by: any, wild: seldom }) },
  {
    weight: 3,
    arbitrary: fc.record({ act: act('acknowledge'), thread: any, by: any, position: any, wild: seldom }),
  },
  { weight: 1, arbitrary: fc.record({ act: act('leave'), thread: any, by: any, wild: seldom }) },
  {
    weight: 2,
    arbitrary: fc.record({ act: act('extend'), thread: any, by: now(any, 3), added: some, wild: seldom }),
  },
  { weight: 1, arbitrary: fc.record({ act: act('open'), members: some }) },
);

const upTo60 = (minLength: number): fc.Arbitrary<Command[]> =>
  fc.array(command, { minLength, maxLength: 60, size: 'max' });

/** Short ones too, but mostly long ones. */
export const histories: fc.Arbitrary<readonly Command[]> = fc.oneof(
  { weight: 1, arbitrary: upTo60(0) },
  { weight: 2, arbitrary: upTo60(40) },
);
