export const median = (values: readonly number[]): number => quantile(values, 0.5);

export const quantile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
};

export interface Side {
  readonly name: string;
  /** One measurement. */
  measure(): Promise<number>;
}

/** Measures every side in turn, round after round, so that what disturbs the machine disturbs all alike. */
export const alternate = async <Name extends string>(
  sides: readonly (Side & { readonly name: Name })[],
  rounds: number,
): Promise<Record<Name, number[]>> => {
  const results = Object.fromEntries(sides.map(({ name }) => [name, []])) as unknown as Record<
    Name,
    number[]
  >;
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? sides : [...sides].reverse();
    for (const side of order) results[side.name].push(await side.measure());
  }
  return results;
};

/** The median over the rounds of what one side measured to what the other did in the same round. */
export const ratio = (ours: readonly number[], theirs: readonly number[]): number =>
  median(ours.map((value, round) => value / (theirs[round] ?? Number.NaN)));

export interface Verdict {
  readonly what: string;
  readonly figure: number;
  readonly target?: { readonly atLeast: number } | { readonly atMost: number };
  readonly detail?: string;
}

/** One line, with the target where there is one; false where it is missed. */
export const report = ({ what, figure, target, detail = '' }: Verdict): boolean => {
  const met =
    target === undefined || ('atLeast' in target ? figure >= target.atLeast : figure <= target.atMost);
  const wanted =
    target === undefined
      ? ''
      : `${met ? ' ok' : ' MISSED'} (${'atLeast' in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`})`;
  console.log(`${what.padEnd(58)} ${round(figure).padStart(10)}${wanted}  ${detail}`.trimEnd());
  return met;
};

export const round = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(3);
