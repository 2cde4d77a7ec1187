import fc from 'fast-check';
import { MEMBERS, type Member, VIEWERS, type Viewer } from './model.ts';

/** What can happen to a pad, its members and whoever follows it. */
export type Act =
  | { readonly kind: 'append'; readonly by: Viewer }
  | { readonly kind: 'set'; readonly by: Viewer }
  | { readonly kind: 'clear'; readonly by: Viewer; readonly what: 'Content' | 'Entries' | '' }
  | { readonly kind: 'change'; readonly who: Member }
  | { readonly kind: 'post' }
  /** All state is gone from the store, as after an expiry. */
  | { readonly kind: 'wipe' }
  | { readonly kind: 'cut'; readonly choice: number }
  /** Everybody catches up, and what they hold is compared. */
  | { readonly kind: 'compare' };

const by = fc.constantFrom<Viewer>(...VIEWERS);

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('append' as const), by }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('set' as const), by }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('clear' as const),
      by,
      what: fc.constantFrom<'Content' | 'Entries' | ''>('Content', 'Entries', ''),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('change' as const), who: fc.constantFrom<Member>(...MEMBERS) }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'post' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'wipe' as const }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('cut' as const), choice: fc.nat(7) }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'compare' as const }) },
);

export const history = fc.array(act, { minLength: 10, maxLength: 45, size: 'max' });
