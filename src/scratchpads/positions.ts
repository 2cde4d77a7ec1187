import { NOWHERE, type PadPosition } from './pad.ts';

/** A pad's log as a script found it: where it ends, and which stretches of it were written between fail-overs. */
export interface PadLog {
  readonly end: PadPosition;
  readonly stretches: readonly { readonly tag: string; readonly after: number }[];
}

export const NO_LOG: PadLog = { end: NOWHERE, stretches: [] };

/** `tags`: `<tag>:<rev after which it began>,…`, the present one last. */
export const padLog = (epoch: string, rev: number, seq: number, tags: string): PadLog => {
  if (epoch === '') return NO_LOG;
  const stretches = [...tags.matchAll(/(\w{8}):(\d+),/g)].map(([, tag = '', after]) => ({
    tag,
    after: Number(after),
  }));
  return { end: { epoch, rev, seq, tag: stretches.at(-1)?.tag ?? '' }, stretches };
};

/**
 * Whether a reader who stands there has seen nothing but what is still this log's past. A position of the same epoch
 * that a fail-over lost lies behind the place where the next stretch began, or behind the end. Nothing of an empty pad
 * was seen, so from there every log can be followed.
 */
export const holds = ({ end, stretches }: PadLog, position: PadPosition): boolean => {
  if (position.epoch === '') return true;
  if (position.epoch !== end.epoch || position.rev > end.rev) return false;
  const index = stretches.findIndex(({ tag }) => tag === position.tag);
  if (index < 0) return false;
  const next = stretches[index + 1];
  return next === undefined || position.rev <= next.after;
};
