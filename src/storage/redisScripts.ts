import { createHash } from 'node:crypto';
import { Cluster, type Redis } from 'ioredis';

/** A server-side script. Its keys lie in one slot. */
export interface RedisScript {
  readonly text: string;
  readonly digest: string;
}

export interface ScriptCall {
  readonly script: RedisScript;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** What a script returns: Lua's false and nil are null. */
export type Reply = string | number | null | readonly Reply[];

export const redisScript = (text: string): RedisScript => ({
  text,
  digest: createHash('sha1').update(text).digest('hex'),
});

/** One round trip, by digest; a server that does not know the script (yet, or any more) is told it, once. */
export const runScript = async (redis: Redis | Cluster, call: ScriptCall): Promise<Reply> => {
  const { script, keys, args } = call;
  try {
    return (await redis.evalsha(script.digest, keys.length, ...keys, ...args)) as Reply;
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return (await redis.eval(script.text, keys.length, ...keys, ...args)) as Reply;
  }
};

/** Many calls in one pipeline (of a Cluster: at once). Rejects if any of them fails. */
export const runScripts = async (redis: Redis | Cluster, calls: readonly ScriptCall[]): Promise<Reply[]> => {
  const [only] = calls;
  if (only === undefined) return [];
  if (calls.length === 1 || redis instanceof Cluster)
    return Promise.all(calls.map((call) => runScript(redis, call)));
  const pipeline = redis.pipeline();
  for (const { script, keys, args } of calls) pipeline.evalsha(script.digest, keys.length, ...keys, ...args);
  const results = (await pipeline.exec()) ?? [];
  return Promise.all(
    calls.map(async (call, index): Promise<Reply> => {
      const [error, reply] = results[index] ?? [new Error('Connection is closed.')];
      if (error === null) return reply as Reply;
      if (isUnknownScript(error)) return runScript(redis, call);
      throw error;
    }),
  );
};

const isUnknownScript = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('NOSCRIPT');
