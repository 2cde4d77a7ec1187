import { afterAll, beforeAll, expect, test } from 'vitest';
import { legacyKeys } from '../../src/scratchpads/keys.ts';
import { grantAt, keysOf, look, newPad, type PadWorld, settled, startPadWorld } from '../support/pads.ts';

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

test('what an import that was cut off at its very end left expires from the next look on', async () => {
  const { plane, redis } = world;
  const pad = newPad({ ttlSeconds: 3_600, legacyPending: true });
  const { notebook } = legacyKeys(pad);
  await redis.commands.set(notebook, JSON.stringify({ content: 'text', last_updated: 1 }));
  await settled(1, (grant) => plane.importLegacy(pad, grant));
  const { meta, content } = keysOf(pad);
  await redis.commands.hset(meta, 'hold', 'open');
  for (const key of [meta, content]) await redis.commands.persist(key);
  const later = { ...pad, legacyPending: false };
  expect((await look(plane, later)).content?.text).toBe('text');
  for (const key of [meta, content]) expect(await redis.commands.pttl(key)).toBeGreaterThan(3_500_000);
  expect(await plane.read([{ pad: later, grant: grantAt(1), wants: {} }])).toMatchObject([
    { kind: 'STATE', expiresAt: expect.any(Number) },
  ]);
});
