import { keysetCursor, parseKeysetCursor } from './cursors.ts';
import { badInput, invalidCursor } from './errors.ts';
import { kindOfId } from './ids.ts';
import { LIMITS } from './input.ts';

/** The arguments of a connection, as Relay's specification names them. */
export interface PageArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

interface PageSize {
  readonly limit: number;
  /** The end of the range is asked for, by `last`. */
  readonly isBackward: boolean;
}

/** Throws `BAD_USER_INPUT` for `first` and `last` together, and for a size that is not 1 to 200. */
export const requirePageSize = ({ first, last }: PageArgs): PageSize => {
  if (isGiven(first) && isGiven(last)) throw badInput('Give `first` or `last`, not both.', { field: 'last' });
  const field = isGiven(last) ? 'last' : 'first';
  const limit = last ?? first ?? LIMITS.defaultPageSize;
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMITS.pageSize)
    throw badInput(`${field} must be 1 to ${LIMITS.pageSize}.`, { field, limit: LIMITS.pageSize });
  return { limit, isBackward: isGiven(last) };
};

const isGiven = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;

export interface Page<Item> {
  readonly edges: { readonly cursor: string; readonly node: Item }[];
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

type Key = readonly (string | number | bigint)[];

/** Items strictly between two keys (null: no bound), in the list's order, or against it if `inverted`; `limit` at most. */
export interface KeysetRange {
  readonly after: readonly string[] | null;
  readonly before: readonly string[] | null;
  readonly limit: number;
  readonly inverted: boolean;
}

/** A list in the total order of a unique key. */
export interface KeysetList<Item> {
  /** Keeps its cursors apart from those of other lists. */
  readonly name: string;
  /** What each part of a key looks like. */
  readonly parts: readonly RegExp[];
  key(item: Item): Key;
  read(range: KeysetRange): Promise<Item[]>;
}

/**
 * A page by keyset. `pageInfo` is right in both directions: what lies on the far side of `after` or `before` is
 * looked for, and never guessed from the cursor's presence.
 */
export const keysetPage = async <Item>(args: PageArgs, list: KeysetList<Item>): Promise<Page<Item>> => {
  const { limit, isBackward } = requirePageSize(args);
  const after = isGiven(args.after) ? parseKeysetCursor(args.after, list.name, list.parts, 'after') : null;
  const before = isGiven(args.before)
    ? parseKeysetCursor(args.before, list.name, list.parts, 'before')
    : null;
  const found = await list.read({ after, before, limit: limit + 1, inverted: isBackward });
  const hasMore = found.length > limit;
  const items = found.slice(0, limit);
  if (isBackward) items.reverse();

  const keyOf = (item: Item | undefined): string[] | null =>
    item === undefined ? null : list.key(item).map(String);
  const isAnything = async (range: Partial<KeysetRange>): Promise<boolean> =>
    (await list.read({ after: null, before: null, limit: 1, inverted: false, ...range })).length > 0;
  const lies = {
    above: () => (before === null ? false : isAnything({ after: keyOf(items.at(-1)) ?? after })),
    below: () => (after === null ? false : isAnything({ before: keyOf(items[0]) ?? before, inverted: true })),
  };
  const [hasNextPage, hasPreviousPage] = await Promise.all(
    isBackward ? [lies.above(), hasMore || lies.below()] : [hasMore || lies.above(), lies.below()],
  );

  const edges = items.map((node) => ({ cursor: keysetCursor(list.name, list.key(node)), node }));
  return {
    edges,
    pageInfo: {
      hasNextPage,
      hasPreviousPage,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
};

/** The `read` of a list whose few items are at hand, in its order; keys are a number and an id. */
export const readHeld =
  <Item>(items: readonly Item[], key: (item: Item) => Key, order: 'ASC' | 'DESC') =>
  async ({ after, before, limit, inverted }: KeysetRange): Promise<Item[]> => {
    const isBehind = (one: Key, other: Key): boolean =>
      order === 'ASC' ? isHigher(one, other) : isHigher(other, one);
    const within = items.filter(
      (item) =>
        (after === null || isBehind(key(item), after)) && (before === null || isBehind(before, key(item))),
    );
    return (inverted ? [...within].reverse() : within).slice(0, limit);
  };

const isHigher = ([number = 0, id = '']: Key, [otherNumber = 0, otherId = '']: Key): boolean =>
  BigInt(number) === BigInt(otherNumber)
    ? String(id) > String(otherId)
    : BigInt(number) > BigInt(otherNumber);

/** Prisma's `where`, `orderBy` and `take` for a list in the order of ids: the order of creation. */
export const idRange = ({ after, before, limit, inverted }: KeysetRange) => ({
  where: {
    id: { ...(after && { gt: idIn(after, 'after') }), ...(before && { lt: idIn(before, 'before') }) },
  },
  orderBy: { id: inverted ? ('desc' as const) : ('asc' as const) },
  take: limit,
});

const idIn = ([id = '']: readonly string[], field: string): string => {
  if (kindOfId(id) === undefined) throw invalidCursor(field);
  return id;
};
