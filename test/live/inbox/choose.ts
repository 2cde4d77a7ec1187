import fc from 'fast-check';

export const PEOPLE = ['ann', 'bob'] as const;
/** The second does one thing at a time. */
export const AGENTS = ['bot', 'solo'] as const;
/** Who is in which thread. */
export const THREADS = {
  'ann’s': ['ann', 'bot', 'solo'],
  'bob’s': ['bob', 'bot', 'solo'],
  both: ['ann', 'bob', 'bot', 'solo'],
  'solo’s': ['ann', 'bob', 'solo'],
} as const;
export const THREAD_NAMES = Object.keys(THREADS) as (keyof typeof THREADS)[];

const thread = fc.nat({ max: THREAD_NAMES.length - 1 });
const agent = fc.constantFrom(...AGENTS);
/** Counted from the newest. */
const which = fc.nat({ max: 11 });
const batch = fc.constantFrom(1, 1, 3);

const command = fc.oneof(
  {
    weight: 15,
    arbitrary: fc.record({
      act: fc.constant('post' as const),
      thread,
      who: fc.constantFrom(...PEOPLE, ...PEOPLE, ...AGENTS),
      isLarge: fc.nat({ max: 5 }).map((value) => value === 0),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      act: fc.constant('take' as const),
      agent,
      batch,
      max: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      act: fc.constant('finish' as const),
      which,
      how: fc.constantFrom(
        'delivery' as const,
        'delivery' as const,
        'answer' as const,
        'upTo' as const,
        'part' as const,
      ),
      /** Any delivery, whatever became of it. */
      isLate: fc.nat({ max: 3 }).map((value) => value === 0),
    }),
  },
  { weight: 4, arbitrary: fc.record({ act: fc.constant('lapse' as const), which }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('timePasses' as const), agent, thread }) },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant('extend' as const), which, seconds: fc.constantFrom(0, 600) }),
  },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('retract' as const), which }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constant('move' as const), agent, thread }) },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('open' as const),
      agent,
      batch,
      standby: fc.nat({ max: 4 }).map((value) => value === 0),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant('leave' as const), which, isRude: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('pause' as const), which }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('resume' as const), which }) },
);

export type Command = (typeof command extends fc.Arbitrary<infer T> ? T : never) & { readonly on: number };

/** Who is killed, after so many requests and milliseconds. */
interface Kill {
  readonly after: number;
  readonly ms: number;
  readonly which: readonly number[];
}

/** What several tenants do at once until processes are killed, and once more with those that took their place. */
export interface Phase {
  /** Of each tenant what is begun one after the other; what stands together is begun together. */
  readonly steps: readonly (readonly (readonly Command[])[])[];
  readonly kill: Kill;
}

export interface Schedule {
  readonly phases: readonly Phase[];
  /** Whether what is left at the end is taken by streams. */
  readonly isStreamed: boolean;
}

const STEPS = 24;

const opened = (who: (typeof AGENTS)[number]): fc.Arbitrary<Command> =>
  fc
    .tuple(batch, fc.nat({ max: 1 }))
    .map(([size, on]) => ({ act: 'open', agent: who, batch: size, standby: false, on }));

export const schedules = (tenants: number): fc.Arbitrary<Schedule> => {
  const together = fc.array(
    fc.tuple(command, fc.nat({ max: 1 })).map(([one, on]): Command => ({ ...one, on })),
    { minLength: 1, maxLength: 5, size: 'max' },
  );
  // Each agent listens at first.
  const begin = fc.tuple(...AGENTS.map(opened));
  const then = fc.array(together, { minLength: STEPS / 2, maxLength: STEPS, size: 'max' });
  const steps = fc.tuple(begin, then).map(([first, others]) => [first, ...others]);
  const phase = fc.record({
    steps: fc.array(steps, { minLength: tenants, maxLength: tenants, size: 'max' }),
    kill: fc.record({
      after: fc.integer({ min: 5 * tenants, max: 25 * tenants }),
      ms: fc.nat({ max: 12 }),
      which: fc.constantFrom([0], [1], [0], [1], [0, 1]),
    }),
  });
  // The first that are drawn would be small ones otherwise.
  return fc.noBias(fc.record({ phases: fc.tuple(phase, phase), isStreamed: fc.boolean() }));
};
