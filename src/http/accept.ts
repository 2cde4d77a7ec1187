interface Accepted {
  readonly type: string;
  readonly quality: number;
}

const read = (header: string): Accepted[] =>
  header.split(',').flatMap((part) => {
    const [type, ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    if (type === undefined || type === '') return [];
    const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
    const charset = parameters.find((parameter) => parameter.startsWith('charset='));
    const isReadable = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
    return quality > 0 && isReadable ? [{ type, quality }] : [];
  });

/**
 * The media type that the client likes best of `offered`; of equals the one it names first, and for a wildcard the
 * first offered. Null where it takes none of them. No header: the first offered.
 */
export const negotiate = <Type extends string>(
  header: string | undefined,
  offered: readonly Type[],
): Type | null => {
  const accepted = read(header || '*/*').sort((a, b) => b.quality - a.quality);
  for (const { type } of accepted) {
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
