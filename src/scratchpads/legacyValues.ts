import type { Cluster, Redis } from 'ioredis';
import type { LegacyKeys } from './keys.ts';
import { PAD_LIMITS } from './pad.ts';

/** What earlier versions left of a pad. */
export interface LegacyState {
  readonly content: { readonly text: string; readonly at: string } | null;
  readonly entries: readonly { readonly content: string; readonly at: string }[];
  /** Keys of which not everything could be read. */
  readonly unreadable: readonly { readonly key: string; readonly reason: string }[];
}

const PAGE = 200;

/** Plain reads, key by key: in a Cluster each may lie elsewhere. The newer of two contents counts. */
export const readLegacy = async (redis: Redis | Cluster, keys: LegacyKeys): Promise<LegacyState> => {
  const unreadable: { key: string; reason: string }[] = [];
  /** undefined: nothing there, or nothing that can be read. */
  const guarded = async <T>(key: string, read: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      unreadable.push({ key, reason: error.message });
      return undefined;
    }
  };
  const [notebook, content, entries] = await Promise.all([
    guarded(keys.notebook, async () => contentOf(await redis.get(keys.notebook), 'last_updated')),
    guarded(keys.content, async () => contentOf(await redis.get(keys.content), 'updated_at')),
    guarded(keys.entries, () => readEntries(redis, keys.entries, unreadable)),
  ]);
  const contents = [notebook, content].filter((one) => one !== undefined && one !== null);
  contents.sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
  return { content: contents[0] ?? null, entries: entries ?? [], unreadable };
};

class Unreadable extends Error {}

const isUnreadable = (error: unknown): error is Error =>
  error instanceof Unreadable || (error instanceof Error && error.message.startsWith('WRONGTYPE'));

const contentOf = (json: string | null, time: string) => {
  if (json === null) return null;
  const { content, at } = textOf(json, time);
  if (Buffer.byteLength(content) > PAD_LIMITS.content) throw new Unreadable('larger than a content may be');
  return { text: content, at };
};

const textOf = (json: string, time: string): { content: string; at: string } => {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new Unreadable('not JSON');
  }
  const object = value as Record<string, unknown> | null;
  const content = typeof object === 'object' ? object?.content : undefined;
  if (typeof content !== 'string' || !content.isWellFormed()) throw new Unreadable('without a text');
  return { content, at: timestampOf(object?.[time]) };
};

/** Unix seconds or a timestamp; what is neither counts as now. */
const timestampOf = (value: unknown): string => {
  const time =
    typeof value === 'number' ? value * 1_000 : typeof value === 'string' ? Date.parse(value) : Date.now();
  const date = new Date(time);
  return (Number.isNaN(date.getTime()) ? new Date() : date).toISOString();
};

/** Those that cannot be read are left out. Of a list that no pad can hold nothing is taken. */
const readEntries = async (
  redis: Redis | Cluster,
  key: string,
  unreadable: { key: string; reason: string }[],
): Promise<{ content: string; at: string }[]> => {
  const length = await redis.llen(key);
  if (length > PAD_LIMITS.entries) throw new Unreadable('more entries than a pad may have');
  const entries: { content: string; at: string }[] = [];
  let bytes = 0;
  let left = 0;
  for (let start = 0; start < length; start += PAGE) {
    for (const json of await redis.lrange(key, start, start + PAGE - 1)) {
      try {
        const entry = textOf(json, 'created_at');
        const size = Buffer.byteLength(entry.content);
        if (size === 0 || size > PAD_LIMITS.entry) throw new Unreadable('empty or too large');
        bytes += size;
        entries.push(entry);
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        left += 1;
      }
    }
  }
  if (bytes > PAD_LIMITS.bytes) throw new Unreadable('more bytes than a pad may have');
  if (left > 0) unreadable.push({ key, reason: `${left} of ${length} entries` });
  return entries;
};
