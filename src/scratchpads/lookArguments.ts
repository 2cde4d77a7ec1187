import type { PadWants, PageWant, ThreadWindow } from './plane.ts';

/** What one call of the script reads at most, about; more is read by further calls as of the first look. */
const CALL_BYTES = 512 * 1024;

export const wantsArgument = ({ content, pages = [], seqs = [], seqWindows = null }: PadWants): object => ({
  ...(content === true ? { c: true } : {}),
  ...pagesArgument(
    pages.map((want) => ({ want, rest: pageArgument(want, want.limit, null) })),
    ascending(seqs),
    seqWindows,
  ),
});

const ascending = (seqs: readonly number[]): number[] => [...new Set(seqs)].sort((one, other) => one - other);

/** Windows that pages share are sent, and looked up, once for all of them. */
export const pagesArgument = (
  pages: readonly { readonly want: PageWant; readonly rest: object }[],
  s: readonly number[] = [],
  seqWindows: PageWant['windows'] = null,
): object => {
  if (pages.length === 0 && s.length === 0) return {};
  const asked = [...pages.map(({ want: { windows } }) => windows), s.length === 0 ? null : seqWindows];
  const lists = [...new Set(asked.filter((windows) => windows !== null))];
  const p = pages.map(({ want: { windows }, rest }) =>
    windows === null ? rest : { ...rest, w: lists.indexOf(windows) + 1 },
  );
  const singles = seqWindows === null ? { s } : { s, v: lists.indexOf(seqWindows) + 1 };
  const bounds = ({ from, until }: ThreadWindow) => (until === null ? [from] : [from, until]);
  const w = lists.map((windows) => windows.map(bounds));
  return { p, w, ...(s.length === 0 ? {} : singles) };
};

/** `next`: where an earlier part of the page left off. */
export const pageArgument = (want: PageWant, limit: number, next: number | null): object => {
  const after = next !== null && !want.isBackward ? next - 1 : want.after;
  const before = next !== null && want.isBackward ? next + 1 : want.before;
  return {
    ...(after === null ? {} : { a: after }),
    ...(before === null ? {} : { b: before }),
    ...(want.isBackward ? { r: true } : {}),
    l: limit,
    k: Math.min(CALL_BYTES, (want.maxBytes ?? CALL_BYTES) * 1.25 + 8_192),
  };
};
