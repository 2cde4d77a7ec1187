import { expect, test, vi } from 'vitest';
import { log } from '../../src/shared/log.ts';
import { openRedis } from '../../src/storage/redis.ts';
import { startRedis } from '../support/redis.ts';

test.each([
  ['allkeys-lru', 1],
  ['volatile-ttl', 1],
  ['noeviction', 0],
])('a Redis with maxmemory-policy %s: %i warning at start', async (policy, warnings) => {
  const warn = vi.spyOn(log, 'warn');
  const server = await startRedis({ settings: { 'maxmemory-policy': policy } });
  const redis = await openRedis(server.url);
  // The question was asked before this one, and is answered before it.
  await redis.commands.ping();
  await new Promise(setImmediate);
  const about = warn.mock.calls.filter(([, message]) => message?.includes('noeviction'));
  expect(about).toHaveLength(warnings);
  if (warnings > 0) expect(about[0]?.[0]).toEqual({ policy });
  await redis.close();
  await server.stop();
  warn.mockRestore();
});
