import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster, Redis } from 'ioredis';
import { unavailable } from '../shared/errors.ts';
import { newEpoch } from '../shared/ids.ts';
import { log } from '../shared/log.ts';
import { runScript } from '../storage/redisScripts.ts';
import { draftKey, importKey, type LegacyKeys, legacyKeys, padChannel, padKeys } from './keys.ts';
import { type LegacyState, readLegacy } from './legacyValues.ts';
import type { Grant, Pad } from './pad.ts';
import type { Plane, PlaneOptions } from './plane.ts';
import { afterLoss, DRAFT_BYTES, DRAFT_MS, isLate, LATE, newRequestId } from './planeWrites.ts';
import { SCRIPTS } from './scripts.ts';

/** What one script takes over at a time. */
const CHUNK_ENTRIES = 500;
const CHUNK_BYTES = 384 * 1024;
/** Another takes over the same list: it is done soon, or was killed and what it laid aside is gone in 10 s. */
const ATTEMPTS = 3;
const BUSY_ATTEMPTS = 60;
const BUSY_MS = 50;

interface Context extends PlaneOptions {
  /** Lets it expire, from now on. */
  expire(pad: Pad): Promise<void>;
}

/**
 * Takes over what an earlier version left, at most once in a pad's life: the old values are read, one script makes
 * them the state unless there is one, then the SQL row says so, then the old keys go. Killed anywhere the repeat does
 * no harm: until the row says so the state does not expire, so that the script finds it. Values that cannot be read
 * are kept and reported, and hold up nothing.
 */
export const createImportLegacy =
  ({ redis, markLegacyChecked, expire }: Context): Plane['importLegacy'] =>
  async (pad, grant) => {
    if (!pad.legacyPending) return { kind: 'DONE' };
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (isLate(grant)) return LATE;
      const keys = legacyKeys(pad);
      const legacy = await readLegacy(redis, keys);
      const outcome = await takeOver(redis, pad, grant, legacy);
      if (outcome === 'BUSY') {
        await othersDone(redis, pad);
        continue;
      }
      if (outcome !== 'DONE') return outcome;
      await markLegacyChecked(pad);
      for (const { key, reason } of legacy.unreadable)
        log.warn({ key, scratchpadId: pad.scratchpadId, reason }, UNREADABLE);
      await dropRead(redis, keys, legacy);
      await expire(pad);
      return { kind: 'DONE' };
    }
    throw unavailable('The scratchpad is being taken over from an earlier version. Try again.');
  };

const UNREADABLE = 'What an earlier version left of a scratchpad cannot be read; it is kept under its key.';

const othersDone = async (redis: Redis | Cluster, pad: Pad): Promise<void> => {
  const staging = importKey(pad);
  for (let attempt = 0; attempt < BUSY_ATTEMPTS; attempt += 1) {
    if ((await redis.exists(staging)) === 0) return;
    await delay(BUSY_MS);
  }
};

const dropRead = async (
  redis: Redis | Cluster,
  keys: LegacyKeys,
  { unreadable }: LegacyState,
): Promise<void> => {
  const kept = new Set(unreadable.map(({ key }) => key));
  await Promise.all(
    Object.values(keys)
      .filter((key) => !kept.has(key))
      .map((key) => redis.unlink(key)),
  );
};

const takeOver = async (redis: Redis | Cluster, pad: Pad, grant: Grant, legacy: LegacyState) => {
  if (legacy.content === null && legacy.entries.length === 0) return 'DONE' as const;
  const { threadSeq } = grant;
  const byNobody = { author: null, run: null, sources: [] };
  // The numbers first: the scripts find them by their place.
  const values = legacy.entries.map(({ content, at }, index) => {
    const numbers = { seq: index + 1, rev: index + 1, thread_seq: threadSeq };
    return JSON.stringify({ ...numbers, created_at: at, ...byNobody, content });
  });
  const content =
    legacy.content === null
      ? ''
      : JSON.stringify({
          version: 1,
          rev: values.length + 1,
          thread_seq: threadSeq,
          updated_at: legacy.content.at,
          ...byNobody,
          content: legacy.content.text,
        });
  const chunks = chunked(values);
  const token = chunks.length > 1 ? newEpoch() : '';
  const call = (script: (typeof SCRIPTS)['import'], args: (string | number)[], ...more: string[]) =>
    runScript(redis, { script, keys: [...padKeys(pad), ...more], args });
  const requestId = newRequestId();
  const head = [requestId, threadSeq, grant.settles ?? ''];
  if (token !== '') {
    let staged = 0;
    for (const chunk of chunks) {
      if (isLate(grant)) return LATE;
      const [kind, mark] = (await call(SCRIPTS.stage, [...head, token, staged, ...chunk])) as [
        string,
        string?,
      ];
      if (kind === 'GONE') return { kind } as const;
      if (kind === 'FENCED') return { kind, mark: mark ?? null } as const;
      if (kind === 'PRESENT') return 'DONE' as const;
      if (kind === 'BUSY') return 'BUSY' as const;
      staged += chunk.length;
    }
  }
  const bytes = legacy.entries.reduce((sum, entry) => sum + Buffer.byteLength(entry.content), 0);
  const draft = Buffer.byteLength(content) > DRAFT_BYTES ? draftKey(pad, requestId) : null;
  const own = [padChannel(pad.scratchpadId), draft === null ? content : '', values.length, bytes, token];
  const takeIn = async (): Promise<[kind: string, mark?: string]> => {
    if (draft !== null) await redis.set(draft, content, 'PX', DRAFT_MS);
    const args = [...head, ...own, ...(token === '' ? values : [])];
    return (await call(SCRIPTS.import, args, ...(draft === null ? [] : [draft]))) as [string, string?];
  };
  let [kind, mark]: [string, string?] = ['LOST'];
  for (let attempt = 1; kind === 'LOST'; attempt += 1) {
    if (isLate(grant)) return LATE;
    [kind, mark] = await takeIn();
    if (kind === 'LOST') await afterLoss(attempt);
  }
  switch (kind) {
    case 'GONE':
      return { kind } as const;
    case 'FENCED':
      return { kind, mark: mark ?? null } as const;
    case 'BUSY':
      return 'BUSY' as const;
    default:
      return 'DONE' as const;
  }
};

const chunked = (values: readonly string[]): string[][] => {
  const chunks: string[][] = [];
  let bytes = 0;
  for (const value of values) {
    const last = chunks.at(-1);
    const size = Buffer.byteLength(value);
    bytes += size;
    if (last === undefined || last.length >= CHUNK_ENTRIES || bytes > CHUNK_BYTES) {
      chunks.push([value]);
      bytes = size;
    } else last.push(value);
  }
  return chunks;
};
