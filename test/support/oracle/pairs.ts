/** How many pairs of event and viewer each surface was compared for. */
export type Pairs = Map<string, number>;

export const countPairs = (pairs: Pairs, surface: string, count: number): void => {
  pairs.set(surface, (pairs.get(surface) ?? 0) + count);
};
