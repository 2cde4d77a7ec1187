import fc from 'fast-check';

/** How an item is announced: carried, by position alone, never, twice, or only at some later time. */
export type Announcement = 'carried' | 'bare' | 'lost' | 'twice' | 'late';

/** What can happen while logs are followed. `log`, `at` and `who` are taken modulo what there is. */
export type Action =
  | { readonly kind: 'append'; readonly log: number; readonly count: number; readonly how: Announcement }
  | { readonly kind: 'announceLate'; readonly which: number }
  | { readonly kind: 'follow'; readonly log: number; readonly process: number; readonly at: number }
  | { readonly kind: 'stall' | 'resume' | 'abort'; readonly who: number }
  | { readonly kind: 'storage'; readonly isFailing: boolean }
  | { readonly kind: 'slow'; readonly isSlow: boolean }
  | { readonly kind: 'cut' }
  | { readonly kind: 'noise'; readonly log: number; readonly message: string }
  | { readonly kind: 'delete'; readonly log: number }
  | { readonly kind: 'breathe' };

const log = fc.nat(1);
const who = fc.nat(20);

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      log,
      count: fc.oneof(
        { weight: 5, arbitrary: fc.integer({ min: 1, max: 4 }) },
        { weight: 1, arbitrary: fc.constant(90) },
      ),
      how: fc.constantFrom<Announcement>('carried', 'carried', 'bare', 'lost', 'twice', 'late'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('announceLate' as const), which: fc.nat(50) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('follow' as const), log, process: fc.nat(1), at: fc.nat(400) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('stall', 'resume', 'abort'), who }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('storage' as const), isFailing: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('slow' as const), isSlow: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('noise' as const),
      log,
      message: fc.constantFrom('gone', '?', 'garbage', 'at 1', 'at 7', 'at 100000'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), log }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('breathe' as const) }) },
);

export const history = fc.array(action, { minLength: 5, maxLength: 60, size: 'max' });
