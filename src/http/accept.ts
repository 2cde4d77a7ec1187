interface Accepted {
  readonly type: string;
  readonly quality: number;
}

/** Clients send the same few headers again and again. */
const known = new Map<string, readonly Accepted[]>();
const KNOWN_HEADERS = 200;
const KNOWN_LENGTH = 200;

const read = (header: string): readonly Accepted[] => {
  const before = known.get(header);
  if (before !== undefined) return before;
  const accepted = parse(header);
  if (known.size < KNOWN_HEADERS && header.length <= KNOWN_LENGTH) known.set(header, accepted);
  return accepted;
};

/** Best first; of equals as they stand. */
const parse = (header: string): Accepted[] =>
  header
    .split(',')
    .flatMap((part) => {
      const [type, ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
      if (type === undefined || type === '') return [];
      const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
      const charset = parameters.find((parameter) => parameter.startsWith('charset='));
      const isReadable = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
      return quality > 0 && isReadable ? [{ type, quality }] : [];
    })
    .sort((a, b) => b.quality - a.quality);

/**
 * The media type that the client likes best of `offered`; of equals the one it names first, and for a wildcard the
 * first offered. Null where it takes none of them. No header: the first offered.
 */
export const negotiate = <Type extends string>(
  header: string | undefined,
  offered: readonly Type[],
): Type | null => {
  for (const { type } of read(header || '*/*')) {
    const match = offered.find(
      (candidate) =>
        candidate === type ||
        type === '*/*' ||
        (type.endsWith('/*') && candidate.startsWith(type.slice(0, -1))),
    );
    if (match !== undefined) return match;
  }
  return null;
};

/** Whether the client names `type` itself. */
export const names = (header: string | undefined, type: string): boolean =>
  read(header ?? '').some((accepted) => accepted.type === type);
