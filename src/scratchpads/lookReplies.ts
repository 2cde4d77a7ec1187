import type { Reply } from '../storage/redisScripts.ts';
import type { PadAddress } from './keys.ts';
import type { PadChange, PadPosition } from './pad.ts';
import { NO_LOG, type PadLog, padLog } from './positions.ts';
import { readContent, readEntry } from './records.ts';

/** One look at a pad, as the script gives it. */
export interface Look {
  readonly log: PadLog;
  readonly base: number;
  readonly expiresAt: number | null;
  readonly content: string | null;
  readonly pages: readonly Reply[];
  readonly entries: readonly string[];
  readonly next: number | null;
  readonly over: number;
}

export interface PagePart {
  /** In the order of reading. */
  readonly values: readonly string[];
  readonly next: number | null;
  readonly total: number;
  readonly skipped: number;
  readonly endSeq: number;
  readonly endRev: number;
}

export const parts = (reply: Reply | undefined): readonly Reply[] => (Array.isArray(reply) ? reply : []);

export const lookFrom = (reply: readonly Reply[]): Look => {
  const [, epoch, rev, seq, base, tags, expiry, content, pages, entries, next, over] = reply;
  if (epoch === '') return { ...NOTHING };
  return {
    log: padLog(String(epoch), Number(rev), Number(seq), String(tags)),
    base: Number(base),
    expiresAt: Number(expiry) < 0 ? null : Number(expiry),
    content: typeof content === 'string' ? content : null,
    pages: parts(pages),
    entries: parts(entries) as readonly string[],
    next: typeof next === 'number' ? next : null,
    over: Number(over),
  };
};

const EMPTY = { base: 0, expiresAt: null, content: null, pages: [], entries: [], next: null, over: 0 };
const NOTHING: Look = { log: NO_LOG, ...EMPTY };

export const pagePart = (reply: Reply | undefined): PagePart => {
  const [values, next, total, skipped, endSeq, endRev] = parts(reply);
  return {
    values: parts(values) as readonly string[],
    next: typeof next === 'number' ? next : null,
    total: Number(total ?? 0),
    skipped: Number(skipped ?? 0),
    endSeq: Number(endSeq ?? 0),
    endRev: Number(endRev ?? 0),
  };
};

export const changesFrom = (
  reply: readonly Reply[],
  { scratchpadId }: PadAddress,
  after: PadPosition,
  limit: number,
): readonly PadChange[] | null => {
  const [kind, epoch, rev, seq, tags, startSeq, entries, content, contentCleared, entriesCleared] = reply;
  if (kind === 'GONE') return null;
  const { end } = padLog(String(epoch), Number(rev ?? 0), Number(seq ?? 0), String(tags ?? ''));
  if (end.epoch !== after.epoch || end.tag !== after.tag || after.rev > end.rev) return null;
  if (end.epoch === '') return [];
  const position = { epoch: end.epoch, tag: end.tag };
  const changes: Change[] = (parts(entries) as readonly string[]).map((value) => {
    const entry = readEntry(value, scratchpadId, end.epoch);
    return { kind: 'ENTRY', position: entry.rev, entry };
  });
  if (typeof content === 'string') {
    const present = readContent(content, end.epoch);
    changes.push({ kind: 'CONTENT', position: present.rev, content: present });
  }
  const cleared = (which: 'CONTENT_CLEARED' | 'ENTRIES_CLEARED', fact: Reply | undefined): void => {
    const [at, threadSeq, actor] = parts(fact);
    if (typeof at === 'number')
      changes.push({
        kind: which,
        position: at,
        threadSeq: Number(threadSeq),
        actorId: (actor as string) || null,
      });
  };
  cleared('CONTENT_CLEARED', contentCleared);
  cleared('ENTRIES_CLEARED', entriesCleared);
  changes.sort((one, other) => one.position - other.position);
  let last = Number(startSeq);
  return changes.slice(0, limit).map((change): PadChange => {
    if (change.kind === 'ENTRY') last = change.entry.seq;
    return { ...change, at: { ...position, rev: change.position, seq: last } };
  });
};

type WithoutAt<T> = T extends unknown ? Omit<T, 'at'> : never;
type Change = WithoutAt<PadChange>;
