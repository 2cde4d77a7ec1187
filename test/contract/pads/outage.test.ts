import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Appended } from '../../../src/scratchpads/pad.ts';
import type { WriteRefusal } from '../../../src/scratchpads/plane.ts';
import { setLogLevel } from '../../../src/shared/log.ts';
import {
  append,
  contentsOf,
  grantAt,
  look,
  newAuthor,
  newPad,
  type PadWorld,
  setContent,
  startPadWorld,
} from '../../support/pads.ts';
import { until } from '../../support/until.ts';

setLogLevel('silent');

let world: PadWorld;
beforeAll(async () => {
  world = await startPadWorld();
  await world.redis.commands.config('SET', 'appendfsync', 'always');
});
afterAll(() => world[Symbol.asyncDispose]());

test('Redis killed under load: what was acknowledged is there, and what is sent again under its key stands once', async () => {
  const { plane, server, redis } = world;
  const pad = newPad();
  await append(plane, pad, 1, 'first');
  const acknowledged: string[] = [];
  let isKilling = true;
  const write = async (writer: number): Promise<void> => {
    for (let count = 0; isKilling; count += 1) {
      const contents = [`${writer}-${count}`];
      const key = { key: contents.join(), hash: 'h' };
      let mark: string | null = null;
      for (let isDone = false; !isDone; ) {
        const outcome: Appended | WriteRefusal | null = await plane
          .append(pad, grantAt(1, mark), newAuthor(), { contents, key })
          .catch(() => new Promise<null>((resolve) => setImmediate(resolve, null)));
        isDone = outcome?.kind === 'DONE';
        // Another server knows no fence until it is settled.
        if (outcome?.kind === 'FENCED') mark = outcome.mark;
      }
      acknowledged.push(...contents);
    }
  };
  const writers = Array.from({ length: 16 }, (_, writer) => write(writer));
  for (let kill = 0; kill < 3; kill += 1) {
    const before = acknowledged.length;
    await until(() => acknowledged.length > before + 500);
    await server.kill9();
    await server.restart();
    await until(() =>
      redis.ping().then(
        () => true,
        () => false,
      ),
    );
  }
  isKilling = false;
  await Promise.all(writers);
  await setContent(plane, pad, 1, 'text');
  const state = await look(plane, pad);
  const entries = state.pages[0]?.entries ?? [];
  expect(contentsOf(state).sort()).toEqual(['first', ...acknowledged].sort());
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
});
