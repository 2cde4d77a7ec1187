import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster, Redis } from 'ioredis';
import { unavailable } from '../shared/errors.ts';
import { newEpoch } from '../shared/ids.ts';
import { type RedisScript, type Reply, runScript } from '../storage/redisScripts.ts';
import { draftKey, legacyKeys, type PadAddress, padChannel, padKeys } from './keys.ts';
import {
  type Author,
  type Cleared,
  type Fenced,
  type Gone,
  type Grant,
  NOWHERE,
  PAD_LIMITS,
  type Pad,
  type TooLarge,
  ttlOf,
  type WriteKey,
} from './pad.ts';
import type { AppendInput, Plane } from './plane.ts';
import { commonMembers, contentOf, entriesOf, readResult, type WriteResult } from './records.ts';
import { SCRIPTS } from './scripts.ts';

/** No command is sent later than this after its authorisation. */
const GRANT_MS = 10_000;
const BUSY_MS = 2;
/** So often is begun again what was lost between two commands: where Redis lets go of it each time, it has no room. */
const LOST_ATTEMPTS = 5;
/** A longer text is no argument of a script: in bytes of its JSON. */
export const DRAFT_BYTES = 64 * 1024;
/** Longer than any grant, so that none is lost before its script comes; what a killed process left is gone then. */
export const DRAFT_MS = 2 * GRANT_MS;
/** Bytes of a content's members, beside the common ones. */
const HEAD_BYTES = 200;

export const isLate = (grant: Grant): boolean =>
  performance.now() - grant.readAt > (grant.goodForMs ?? GRANT_MS);

export const LATE: Fenced = { kind: 'FENCED', mark: null };

/** Names one write of a caller, so that it acts once, however many commands it takes and however often they arrive. */
export const newOperation = newEpoch;

/** Names one attempt: first its operation, also an epoch that it may make; then what also names a mark. */
export const newRequestId = (operation: string = newOperation()): string => operation + newEpoch();

type Refusal = Gone | Fenced | TooLarge | { kind: 'KEY_REUSED' } | { kind: 'ETAG_DIFFERS'; etag: string };

interface Done {
  readonly kind: 'DONE';
  readonly result: WriteResult | null;
}

/** Of a batch that comes in parts: another's is coming in, go on with the next part, begin again. */
interface Unfinished {
  readonly kind: 'BUSY' | 'MORE' | 'LOST';
}

type Verbs = Pick<
  Plane,
  'append' | 'setContent' | 'clear' | 'replayAppend' | 'replayContent' | 'raise' | 'purge' | 'retime'
> & {
  /** As any write does it. */
  expire(pad: Pad): Promise<void>;
};

/** The verbs that change a pad, or tell again how one did. */
export const createPlaneWrites = (redis: Redis | Cluster, partBytes: number): Verbs => {
  const run = (
    script: RedisScript,
    pad: PadAddress,
    args: readonly (string | number)[],
    ...more: readonly string[]
  ) => runScript(redis, { script, keys: [...padKeys(pad), ...more], args });

  /** Waits while a large batch of another comes in, which is a matter of milliseconds. */
  const write = async (
    script: RedisScript,
    pad: Pad,
    grant: Grant,
    key: WriteKey | null,
    own: readonly (string | number)[],
    id: string,
    ...keys: readonly string[]
  ): Promise<Done | Unfinished | Refusal> => {
    const args = [
      id,
      key?.key ?? '',
      key?.hash ?? '',
      grant.threadSeq,
      grant.settles ?? '',
      ttlOf(pad),
      padChannel(pad.scratchpadId),
      ...own,
    ];
    for (;;) {
      if (isLate(grant)) return LATE;
      const outcome = outcomeOf(await run(script, pad, args, ...keys));
      if (outcome.kind !== 'BUSY') return outcome;
      await delay(BUSY_MS);
    }
  };

  /** All parts under one request id; from the beginning where it was not fast enough, or the state was lost. */
  const writeParts = async (
    pad: Pad,
    grant: Grant,
    author: Author,
    { contents, key, operation }: AppendInput,
    bytes: number,
  ): Promise<Done | Refusal> => {
    const common = commonMembers(author);
    const values = contents.map((content) => JSON.stringify(content));
    for (let attempt = 1; ; attempt += 1) {
      const id = newRequestId(operation);
      let before = 0;
      for (const part of partsOf(values, partBytes)) {
        const own = [bytes, common, values.length, before, ...part];
        const outcome = await write(SCRIPTS.append, pad, grant, key, own, id);
        if (outcome.kind === 'LOST') break;
        if (outcome.kind !== 'MORE') return outcome.kind === 'DONE' ? outcome : finished(outcome);
        before += part.length;
      }
      await afterLoss(attempt);
    }
  };

  /** A long text is laid aside first, by a plain command; its script takes it from there, or away. */
  const writeText = async (
    pad: Pad,
    grant: Grant,
    key: WriteKey | null,
    [etag, common]: readonly [string, string],
    json: string,
    id: string,
  ): Promise<Done | Unfinished | Refusal> => {
    if (Buffer.byteLength(json) <= DRAFT_BYTES)
      return write(SCRIPTS.setContent, pad, grant, key, [etag, common, json], id);
    const draft = draftKey(pad, id);
    const room = ' '.repeat(common.length + HEAD_BYTES);
    for (let attempt = 1; ; attempt += 1) {
      if (isLate(grant)) return LATE;
      await redis.set(draft, `${room}${json}}`, 'PX', DRAFT_MS);
      const outcome = await write(SCRIPTS.setContent, pad, grant, key, [etag, common, ''], id, draft);
      if (outcome === LATE) await redis.unlink(draft);
      if (outcome.kind !== 'LOST') return outcome;
      await afterLoss(attempt);
    }
  };

  const replay = async (pad: PadAddress, { key, hash }: WriteKey) =>
    outcomeOf(await run(SCRIPTS.replay, pad, [key, hash]));

  return {
    async append(pad, grant, author, input) {
      const { contents } = input;
      const sizes = contents.map((content) => Buffer.byteLength(content));
      const bytes = sizes.reduce((sum, size) => sum + size, 0);
      const tooLarge = batchRefusal(sizes, bytes);
      if (tooLarge !== null) return tooLarge;
      const outcome = await writeParts(pad, grant, author, input, bytes);
      if (outcome.kind !== 'DONE') return expected(outcome, 'ETAG_DIFFERS');
      return appended(outcome.result, pad, author, contents);
    },
    async setContent(pad, grant, author, { text, expectedEtag, key, operation }) {
      if (Buffer.byteLength(text) > PAD_LIMITS.content)
        return { kind: 'TOO_LARGE', what: 'CONTENT', limit: PAD_LIMITS.content };
      const args = [expectedEtag === null ? '' : `=${expectedEtag}`, commonMembers(author)] as const;
      const outcome = await writeText(pad, grant, key, args, JSON.stringify(text), newRequestId(operation));
      return outcome.kind === 'DONE' ? contentSet(outcome.result, author, text) : finished(outcome);
    },
    async clear(pad, grant, author, what, operation): Promise<Cleared | Gone | Fenced> {
      const own = [what, author.authorId ?? ''];
      const outcome = await write(SCRIPTS.clear, pad, grant, null, own, newRequestId(operation));
      if (outcome.kind === 'DONE') return { kind: 'DONE', position: outcome.result?.position ?? NOWHERE };
      return expected(finished(outcome), 'ETAG_DIFFERS', 'KEY_REUSED', 'TOO_LARGE');
    },
    async replayAppend(pad, author, { contents, key }) {
      const outcome = await replay(pad, key);
      if (outcome.kind !== 'DONE') return expected(finished(outcome), 'ETAG_DIFFERS', 'TOO_LARGE', 'FENCED');
      return outcome.result === null ? null : appended(outcome.result, pad, author, contents);
    },
    async replayContent(pad, author, { text, key }) {
      const outcome = await replay(pad, key);
      if (outcome.kind !== 'DONE') return expected(finished(outcome), 'ETAG_DIFFERS', 'TOO_LARGE', 'FENCED');
      return outcome.result === null ? null : contentSet(outcome.result, author, text);
    },
    async raise(pad, threadSeq, isHeld = () => false) {
      const [, epoch, ...place] = (await run(SCRIPTS.raise, pad, [threadSeq, newEpoch()])) as Reply[];
      if (epoch === '' || Number(place[0]) < threadSeq || !isHeld()) return;
      await run(SCRIPTS.note, pad, [threadSeq, String(epoch), ...place.map(Number)]);
    },
    async purge(pad) {
      await run(SCRIPTS.purge, pad, [padChannel(pad.scratchpadId)]);
      await Promise.all(Object.values(legacyKeys(pad)).map((key) => redis.unlink(key)));
    },
    async retime(pad) {
      await run(SCRIPTS.retime, pad, [ttlOf(pad), 'NEW']);
    },
    async expire(pad) {
      await run(SCRIPTS.retime, pad, [ttlOf(pad), '']);
    },
  };
};

/** Before it is begun again; throws `UNAVAILABLE` after the last attempt. */
export const afterLoss = async (attempt: number): Promise<void> => {
  if (attempt >= LOST_ATTEMPTS) throw unavailable('Redis has no room for what is written. Try again.');
  await delay(BUSY_MS);
};

const outcomeOf = (reply: Reply): Done | Unfinished | Refusal => {
  const [kind, fact] = reply as readonly string[];
  switch (kind) {
    case 'DONE':
      return { kind, result: fact ? readResult(fact) : null };
    case 'NONE':
      return { kind: 'DONE', result: null };
    case 'FENCED':
      return { kind, mark: fact ?? null };
    case 'ETAG_DIFFERS':
      return { kind, etag: fact ?? '' };
    case 'TOO_LARGE':
      return fact === 'PAD_ENTRIES'
        ? { kind, what: fact, limit: PAD_LIMITS.entries }
        : { kind, what: 'PAD_BYTES', limit: PAD_LIMITS.bytes };
    case 'GONE':
    case 'KEY_REUSED':
    case 'BUSY':
    case 'MORE':
    case 'LOST':
      return { kind };
    default:
      throw new Error(`A script of a scratchpad answered ${JSON.stringify(reply)}.`);
  }
};

const finished = (outcome: Unfinished | Refusal): Refusal => {
  switch (outcome.kind) {
    case 'BUSY':
    case 'MORE':
    case 'LOST':
      throw new Error(`A script answered ${outcome.kind}.`);
    default:
      return outcome;
  }
};

/** So many contents at a time that one script is not long at them: counted in bytes, as they travel. */
const partsOf = (values: readonly string[], partBytes: number): string[][] => {
  const parts: string[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const value of values) {
    // Some bytes more for what stands beside it.
    const bytes = Buffer.byteLength(value) + 200;
    size += bytes;
    if (size > partBytes) {
      parts.push([]);
      size = bytes;
    }
    parts.at(-1)?.push(value);
  }
  return parts;
};

/** Without the kinds that this verb's script never answers. */
const expected = <Kind extends Refusal['kind']>(
  refusal: Refusal,
  ...never: Kind[]
): Exclude<Refusal, { kind: Kind }> => {
  if ((never as string[]).includes(refusal.kind)) throw new Error(`A script answered ${refusal.kind}.`);
  return refusal as Exclude<Refusal, { kind: Kind }>;
};

const batchRefusal = (sizes: readonly number[], bytes: number): TooLarge | null => {
  const refuse = (what: TooLarge['what'], limit: number): TooLarge => ({ kind: 'TOO_LARGE', what, limit });
  if (sizes.some((size) => size > PAD_LIMITS.entry)) return refuse('ENTRY', PAD_LIMITS.entry);
  if (sizes.length > PAD_LIMITS.batchEntries) return refuse('BATCH_ENTRIES', PAD_LIMITS.batchEntries);
  return bytes > PAD_LIMITS.batchBytes ? refuse('BATCH_BYTES', PAD_LIMITS.batchBytes) : null;
};

const appended = (
  result: WriteResult | null,
  { scratchpadId }: PadAddress,
  author: Author,
  contents: readonly string[],
) => {
  if (result === null) throw new Error('An append left no result.');
  return {
    kind: 'DONE' as const,
    entries: entriesOf(result, scratchpadId, author, contents),
    position: result.position,
  };
};

const contentSet = (result: WriteResult | null, author: Author, text: string) => {
  if (result === null) throw new Error('Setting the content left no result.');
  return { kind: 'DONE' as const, content: contentOf(result, author, text), position: result.position };
};
