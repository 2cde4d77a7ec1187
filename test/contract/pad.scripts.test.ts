import { expect, test } from 'vitest';
import { openRedis } from '../../src/storage/redis.ts';
import { redisScript, runScript, runScripts } from '../../src/storage/redisScripts.ts';
import { startRedis } from '../support/redis.ts';

test('a pipeline in which several scripts fail rejects once, and leaves no rejection to nobody', async () => {
  const server = await startRedis();
  const redis = await openRedis(server.url);
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  try {
    const callOf = (text: string) => ({ script: redisScript(text), keys: [], args: [] });
    const known = callOf(`return redis.error_reply('ERR known')`);
    await expect(runScript(redis.commands, known)).rejects.toThrow('known');
    // The server does not know this one: it is sent again by its text.
    const unknown = callOf(`return redis.error_reply('ERR unknown')`);
    await expect(runScripts(redis.commands, [unknown, known])).rejects.toThrow();
    // Whatever was sent before this answer has been answered.
    await redis.ping();
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
    await redis.close();
    await server.stop();
  }
});
