import type { Cluster, Redis } from 'ioredis';
import { unavailable } from '../shared/errors.ts';
import { type Reply, runScript, runScripts, type ScriptCall } from '../storage/redisScripts.ts';
import { type PadAddress, padKeys } from './keys.ts';
import { pageArgument, pagesArgument, wantsArgument } from './lookArguments.ts';
import { changesFrom, type Look, lookFrom, type PagePart, pagePart, parts } from './lookReplies.ts';
import { type Fenced, type Gone, type Pad, type PadEntry, ttlOf } from './pad.ts';
import type { PadPage, PadRead, PadState, PadWants, PageWant, Plane } from './plane.ts';
import { isLate, LATE } from './planeWrites.ts';
import { holds, padLog } from './positions.ts';
import { readContent, readEntry } from './records.ts';
import { SCRIPTS } from './scripts.ts';

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
    const entries = await readSingles(pad, look, wants);
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
      over: look.over,
    };
  };

  /** null: what the first look saw is no longer there. */
  const goOn = async (pad: PadAddress, look: Look, wants: object): Promise<Look | null> => {
    const { end } = look.log;
    const o = { e: end.epoch, q: end.seq, z: look.base };
    for (;;) {
      const args = [0, JSON.stringify({ ...wants, o }), '', NEVER];
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
    { seqs = [], seqWindows = null }: PadWants,
  ): Promise<PadEntry[] | null> => {
    const values = [...look.entries];
    for (let next = look.next; next !== null; ) {
      const from = next;
      const rest = seqs.filter((seq) => seq >= from);
      const further = await goOn(pad, look, wantsArgument({ seqs: rest, seqWindows }));
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

const NEVER = ttlOf({ ttlSeconds: 0, ttlVersion: 0 });

const timeToLive = (pad: Pad): string => (pad.legacyPending ? NEVER : ttlOf(pad));

const lookCall = ({ pad, grant, wants }: PadRead): ScriptCall => ({
  script: SCRIPTS.read,
  keys: padKeys(pad),
  args: [grant.threadSeq, JSON.stringify(wantsArgument(wants)), grant.settles ?? '', timeToLive(pad)],
});
