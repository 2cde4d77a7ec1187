import type { ThreadNotice } from '../timeline/live.ts';
import { isSeqInRanges, type Look } from '../timeline/look.ts';

/** What was heard of one thread since it was last told: a few numbers, however much it was. */
export interface Heard {
  /** The first and last position that was announced; null for none. */
  readonly first: number | null;
  readonly last: number | null;
  /** Something changed beside the timeline. */
  readonly isOther: boolean;
  /** The thread is gone, and this viewer was a member (or is the owner). */
  readonly isGone: boolean;
}

/** Something may have changed, and nobody heard what. */
export const UNHEARD: Heard = { first: null, last: null, isOther: true, isGone: false };

/** Joins a notice to what was heard; unchanged (or undefined) where it is not this viewer's business. */
export const hear = (
  heard: Heard | undefined,
  notice: ThreadNotice,
  viewerId: string | null,
): Heard | undefined => {
  const { seq, last: until = seq, participantId, deletedFor } = notice;
  const { first = null, last = null, isOther = false, isGone = false } = heard ?? {};
  if (deletedFor !== undefined)
    return viewerId === null || deletedFor.includes(viewerId)
      ? { first, last, isOther, isGone: true }
      : heard;
  if (participantId !== undefined && participantId !== viewerId) return heard;
  if (seq === undefined || until === undefined) return { first, last, isOther: true, isGone };
  return { first: Math.min(first ?? seq, seq), last: Math.max(last ?? until, until), isOther, isGone };
};

/** Whether anything of it goes through the viewer's window. */
export const concerns = (look: Look, { first, last, isOther }: Heard): boolean => {
  if (isOther) return true;
  if (first === null || last === null) return false;
  const isSeen = (seq: number): boolean => seq <= look.end.seq && isSeqInRanges(look, seq);
  return isSeen(first) || isSeen(last) || look.ranges.some(({ low, high }) => first < low && high < last);
};
