/** Two threads that continue each other, as far as a viewer may see. */
export type Link = readonly [one: string, other: string];

/**
 * Of each thread that is linked, the first (lowest id) of those it is connected with over any number of links. In time
 * that grows with the links alone, whatever shape they have.
 */
export const firstOfLinked = (links: readonly Link[]): ReadonlyMap<string, string> => {
  const parents = new Map<string, string>();
  const rootOf = (threadId: string): string => {
    let root = threadId;
    for (let next = parents.get(root); next !== undefined && next !== root; next = parents.get(root))
      root = next;
    for (let at = threadId; at !== root; ) {
      const next = parents.get(at) ?? root;
      parents.set(at, root);
      at = next;
    }
    return root;
  };
  for (const [one, other] of links) {
    const [a, b] = [rootOf(one), rootOf(other)];
    const [first, second] = a < b ? [a, b] : [b, a];
    parents.set(first, first);
    parents.set(second, first);
  }
  return new Map([...parents.keys()].map((threadId) => [threadId, rootOf(threadId)]));
};
