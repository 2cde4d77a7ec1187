/** How many pairs of event and viewer each surface was compared for. */
export type Pairs = Map<string, number>;

export const countPairs = (pairs: Pairs, surface: string, count: number): void => {
  pairs.set(surface, (pairs.get(surface) ?? 0) + count);
};

/** Whether a surface still lacks pairs: what has enough is compared no more. */
export const lacks = (pairs: Pairs, surface: string, wanted: number): boolean =>
  (pairs.get(surface) ?? 0) < wanted;
