import fc from 'fast-check';
import type { ClearWhat } from '../../../src/scratchpads/plane.ts';

/** Whose grant: of the present head, or one kept from `age` positions ago. */
interface Writer {
  readonly who: number;
  readonly age: number;
  /** The driver sends the command twice. */
  readonly isTwice: boolean;
  /** Comes between the statement that authorises again, if one is asked for, and what is sent then. */
  readonly between: Membership | null;
}

type Membership =
  /** Of one member, to the other state. Missed: Redis was away, the outbox raises it later. */
  | { readonly kind: 'change'; readonly who: number; readonly raise: 'raised' | 'missed' | 'twice' }
  | { readonly kind: 'rolledBack'; readonly count: number };

/** What can happen to a pad and its thread. */
export type Action =
  | ({ readonly kind: 'append'; readonly contents: readonly string[]; readonly key: number | null } & Writer)
  | ({
      readonly kind: 'set';
      readonly text: string;
      readonly etag: 'none' | 'empty' | 'present' | 'old';
      readonly key: number | null;
    } & Writer)
  | ({ readonly kind: 'clear'; readonly what: ClearWhat } & Writer)
  | { readonly kind: 'post'; readonly count: number }
  | Membership
  | { readonly kind: 'outbox' }
  | { readonly kind: 'wipe' | 'expire' }
  | { readonly kind: 'evict'; readonly key: 'meta' | 'content' | 'entries' }
  | { readonly kind: 'follow' }
  | {
      readonly kind: 'page';
      readonly who: number;
      readonly limit: number;
      readonly isBackward: boolean;
      readonly after: number | null;
      readonly before: number | null;
    };

export const MEMBERS = 3;

const who = fc.nat(MEMBERS - 1);
const change: fc.Arbitrary<Membership> = fc.record({
  kind: fc.constant('change' as const),
  who,
  raise: fc.constantFrom('raised', 'raised', 'raised', 'missed', 'twice'),
});
const rolledBack: fc.Arbitrary<Membership> = fc.record({
  kind: fc.constant('rolledBack' as const),
  count: fc.integer({ min: 1, max: 3 }),
});
const writer = {
  between: fc.option(fc.oneof(change, rolledBack), { freq: 2 }),
  who,
  age: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(4)),
  isTwice: fc.boolean(),
};
const key = fc.option(fc.nat(2), { freq: 2 });
const position = fc.option(fc.nat(30), { freq: 1 });
const text = fc.constantFrom('a', 'b "é"', '\u2028c', 'x'.repeat(20_000));

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      contents: fc.oneof(
        { weight: 6, arbitrary: fc.array(text, { minLength: 1, maxLength: 3 }) },
        { weight: 1, arbitrary: fc.constant(Array.from({ length: 150 }, (_, index) => String(index))) },
      ),
      key,
      ...writer,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      text: fc.constantFrom('', 'one', 'two'),
      etag: fc.constantFrom('none', 'none', 'empty', 'present', 'old'),
      key,
      ...writer,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('clear' as const),
      what: fc.constantFrom<ClearWhat>('CONTENT', 'ENTRIES', 'ALL'),
      ...writer,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('post' as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 5, arbitrary: change },
  { weight: 3, arbitrary: rolledBack },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('outbox' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('wipe' as const, 'expire' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('evict' as const),
      key: fc.constantFrom('meta' as const, 'content' as const, 'entries' as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('follow' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('page' as const),
      who,
      limit: fc.constantFrom(1, 2, 5, 50, 200),
      isBackward: fc.boolean(),
      after: position,
      before: position,
    }),
  },
);

export const history = fc.array(action, { minLength: 5, maxLength: 40, size: 'max' });
