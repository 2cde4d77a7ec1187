import type { Cluster, Redis } from 'ioredis';
import { unavailable } from '../shared/errors.ts';
import { type Reply, runScript, runScripts, type ScriptCall } from '../storage/redisScripts.ts';
import { type PadAddress, padKeys } from './keys.ts';
import type { Fenced, Gone, Pad, PadChange, PadEntry, PadPosition } from './pad.ts';
import type { PadPage, PadRead, PadState, PadWants, PageWant, Plane, ThreadWindow } from './plane.ts';
import { isLate, LATE } from './planeWrites.ts';
import { holds, NO_LOG, type PadLog, padLog } from './positions.ts';
import { readContent, readEntry } from './records.ts';
import { SCRIPTS } from './scripts.ts';

/** What one call of the script reads at most, about; more is read by further calls as of the first look. */
const CALL_BYTES = 512 * 1024;
/** How often a look that was overtaken by a clear or a reset begins again. */
const ATTEMPTS = 5;

type Verbs = Pick<Plane, 'read' | 'changes' | 'heads'>;

interface Context {
  readonly redis: Redis | Cluster;
  readonly importLegacy: Plane['importLegacy'];
}

export const createPlaneReads = ({ redis, importLegacy }: Context): Verbs => {
  const admit = async ({ pad, grant }: PadRead): Promise<Gone | Fenced | null> => {
    if (pad.legacyPending) {
      const outcome = await importLegacy(pad, grant);
      if (outcome.kind !== 'DONE') return outcome;
    }
    return isLate(grant) ? LATE : null;
  };

  /** A whole answer from the first call's reply: by further calls where that one could not tell all. */
  const complete = async (read: PadRead, first: Reply): Promise<PadState | Gone | Fenced> => {
    let reply = parts(first);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      // Each such call finds and notes some windows more.
      while (reply[0] === 'MORE') reply = parts(await runScript(redis, lookCall(read)));
      if (reply[0] === 'GONE') return { kind: 'GONE' };
      if (reply[0] === 'FENCED') return { kind: 'FENCED', mark: String(reply[1]) };
      const state = await finish(read, reply);
      if (state !== null) return state;
      if (isLate(read.grant)) return LATE;
      reply = parts(await runScript(redis, lookCall(read)));
    }
    throw unavailable('The scratchpad is cleared again and again while it is read. Try again.');
  };

  const finish = async (read: PadRead, reply: readonly Reply[]): Promise<PadState | null> => {
    const { pad, wants } = read;
    const look = lookFrom(reply);
    const { position } = wants;
    const pages: PadPage[] = [];
    for (const [index, want] of (wants.pages ?? []).entries()) {
      const page = await readPage(pad, look, want, pagePart(look.pages[index]));
      if (page === null) return null;
      pages.push(page);
    }
    const entries = await readSingles(pad, look, wants.seqs ?? []);
    if (entries === null) return null;
    return {
      kind: 'STATE',
      position: look.log.end,
      count: look.log.end.seq - look.base,
      expiresAt: look.expiresAt,
      content: look.content === null ? null : readContent(look.content, look.log.end.epoch),
      pages,
      entries,
      positionHolds: position === undefined || holds(look.log, position),
    };
  };

  /** null: what the first look saw is no longer there. */
  const goOn = async (pad: PadAddress, look: Look, wants: object): Promise<Look | null> => {
    const { end } = look.log;
    const o = { e: end.epoch, q: end.seq, z: look.base };
    for (;;) {
      const args = [0, JSON.stringify({ ...wants, o }), '', 0];
      const reply = parts(await runScript(redis, { script: SCRIPTS.read, keys: padKeys(pad), args }));
      if (reply[0] === 'STATE') return lookFrom(reply);
      if (reply[0] !== 'MORE') return null;
    }
  };

  const readPage = async (
    pad: PadAddress,
    look: Look,
    want: PageWant,
    first: PagePart,
  ): Promise<PadPage | null> => {
    const { epoch } = look.log.end;
    const maxBytes = want.maxBytes ?? Number.POSITIVE_INFINITY;
    const entries: PadEntry[] = [];
    let bytes = 0;
    let { skipped } = first;
    for (let part = first; ; ) {
      // What is cut off an end of the page is shown all the same, before it if the page is read backwards.
      let cut = part.values.length;
      for (const value of part.values) {
        if (entries.length >= want.limit || bytes >= maxBytes) break;
        const entry = readEntry(value, pad.scratchpadId, epoch);
        entries.push(entry);
        bytes += Buffer.byteLength(entry.content);
        cut -= 1;
      }
      if (want.isBackward) skipped = part.skipped + cut;
      if (part.next === null || entries.length >= want.limit || bytes >= maxBytes) break;
      const rest = pageArgument(want, want.limit - entries.length, part.next);
      const further = await goOn(pad, look, pagesArgument([{ want, rest }]));
      if (further === null) return null;
      part = pagePart(further.pages[0]);
    }
    if (want.isBackward) entries.reverse();
    const { end } = look.log;
    return { entries, total: first.total, skipped, end: { ...end, seq: first.endSeq, rev: first.endRev } };
  };

  const readSingles = async (
    pad: PadAddress,
    look: Look,
    seqs: readonly number[],
  ): Promise<PadEntry[] | null> => {
    const values = [...look.entries];
    for (let next = look.next; next !== null; ) {
      const from = next;
      const further = await goOn(pad, look, { s: ascending(seqs).filter((seq) => seq >= from) });
      if (further === null) return null;
      values.push(...further.entries);
      next = further.next;
    }
    return values.map((value) => readEntry(value, pad.scratchpadId, look.log.end.epoch));
  };

  return {
    async read(reads) {
      const refusals = await Promise.all(reads.map(admit));
      const admitted = reads.filter((_, index) => refusals[index] === null);
      const replies = await runScripts(redis, admitted.map(lookCall));
      let turn = 0;
      return Promise.all(
        reads.map((read, index) => refusals[index] ?? complete(read, replies[turn++] ?? null)),
      );
    },
    async changes(pad, after, limit) {
      const call = { script: SCRIPTS.changes, keys: padKeys(pad), args: [after.rev, limit] };
      return changesFrom(parts(await runScript(redis, call)), pad, after, limit);
    },
    async heads(pads) {
      const calls = pads.map((pad): ScriptCall => ({ script: SCRIPTS.head, keys: padKeys(pad), args: [] }));
      return (await runScripts(redis, calls)).map((reply) => {
        const [kind, epoch, rev, seq, tags] = parts(reply);
        return kind === 'GONE' ? null : padLog(String(epoch), Number(rev), Number(seq), String(tags)).end;
      });
    },
  };
};

/** One look at a pad, as the script gives it. */
interface Look {
  readonly log: PadLog;
  readonly base: number;
  readonly expiresAt: number | null;
  readonly content: string | null;
  readonly pages: readonly Reply[];
  readonly entries: readonly string[];
  readonly next: number | null;
}

interface PagePart {
  /** In the order of reading. */
  readonly values: readonly string[];
  readonly next: number | null;
  readonly total: number;
  readonly skipped: number;
  readonly endSeq: number;
  readonly endRev: number;
}

const parts = (reply: Reply | undefined): readonly Reply[] => (Array.isArray(reply) ? reply : []);

const lookFrom = (reply: readonly Reply[]): Look => {
  const [, epoch, rev, seq, base, tags, expiry, content, pages, entries, next] = reply;
  if (epoch === '') return { ...NOTHING };
  return {
    log: padLog(String(epoch), Number(rev), Number(seq), String(tags)),
    base: Number(base),
    expiresAt: Number(expiry) < 0 ? null : Number(expiry),
    content: typeof content === 'string' ? content : null,
    pages: parts(pages),
    entries: parts(entries) as readonly string[],
    next: typeof next === 'number' ? next : null,
  };
};

const EMPTY = { base: 0, expiresAt: null, content: null, pages: [], entries: [], next: null };
const NOTHING: Look = { log: NO_LOG, ...EMPTY };

const pagePart = (reply: Reply | undefined): PagePart => {
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

const timeToLive = ({ legacyPending, ttlSeconds }: Pad): number => (legacyPending ? 0 : ttlSeconds);

const lookCall = ({ pad, grant, wants }: PadRead): ScriptCall => ({
  script: SCRIPTS.read,
  keys: padKeys(pad),
  args: [grant.threadSeq, JSON.stringify(wantsArgument(wants)), grant.settles ?? '', timeToLive(pad)],
});

const wantsArgument = ({ content, pages = [], seqs = [] }: PadWants): object => ({
  ...(content === true ? { c: true } : {}),
  ...pagesArgument(pages.map((want) => ({ want, rest: pageArgument(want, want.limit, null) }))),
  ...(seqs.length > 0 ? { s: ascending(seqs) } : {}),
});

const ascending = (seqs: readonly number[]): number[] => [...new Set(seqs)].sort((one, other) => one - other);

/** Windows that pages share are sent, and looked up, once for all of them. */
const pagesArgument = (pages: readonly { readonly want: PageWant; readonly rest: object }[]): object => {
  if (pages.length === 0) return {};
  const lists = [...new Set(pages.flatMap(({ want: { windows } }) => (windows === null ? [] : [windows])))];
  const p = pages.map(({ want: { windows }, rest }) =>
    windows === null ? rest : { ...rest, w: lists.indexOf(windows) + 1 },
  );
  const bounds = ({ from, until }: ThreadWindow) => (until === null ? [from] : [from, until]);
  const w = lists.map((windows) => windows.map(bounds));
  return { p, w };
};

/** `next`: where an earlier part of the page left off. */
const pageArgument = (want: PageWant, limit: number, next: number | null): object => {
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

const changesFrom = (
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
