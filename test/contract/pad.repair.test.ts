import { afterAll, beforeAll, expect, test } from 'vitest';
import { legacyKeys } from '../../src/scratchpads/keys.ts';
import {
  append,
  contentsOf,
  grantAt,
  keysOf,
  look,
  newAuthor,
  newPad,
  type PadWorld,
  setContent,
  settled,
  startPadWorld,
} from '../support/pads.ts';

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

test('a state that lost only its epoch is begun anew, and nothing that is written then is lost', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  await append(plane, pad, 1, 'one', 'two');
  await settled(1, (grant) => plane.clear(pad, grant, newAuthor(), 'ENTRIES'));
  await setContent(plane, pad, 1, 'text');
  await redis.commands.hdel(keysOf(pad).meta, 'epoch');
  const { position } = await append(plane, pad, 1, 'three');
  expect(position).toMatchObject({ rev: 1, seq: 1 });
  const state = await look(plane, pad);
  expect(contentsOf(state)).toEqual(['three']);
  expect(state.content).toBeNull();
});
