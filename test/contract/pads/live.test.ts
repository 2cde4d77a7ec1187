import { cp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createHub } from '../../../src/live/hub.ts';
import { createRedisBus } from '../../../src/live/redisBus.ts';
import { padLogKey, padSource } from '../../../src/scratchpads/log.ts';
import { NOWHERE, type Pad, type PadChange, type PadPosition } from '../../../src/scratchpads/pad.ts';
import { log, setLogLevel } from '../../../src/shared/log.ts';
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

/** What a follower was told, in a few words each, and where it stands. */
interface Told {
  readonly words: string[];
  position: PadPosition;
}

const wordOf = (change: PadChange): string => {
  switch (change.kind) {
    case 'ENTRY':
      return change.entry.content.slice(0, 20);
    case 'CONTENT':
      return `content ${change.content.text.slice(0, 20)}`;
    default:
      return change.kind;
  }
};

/** Follows as a service does: a log that is gone under its key is looked at again, until the pad is. */
const follow = (pad: Pad, start: PadPosition = NOWHERE): Told => {
  const { redis, plane } = world;
  const bus = createRedisBus({ ...redis, log });
  const hub = createHub({ bus, log, pollMs: 20 });
  const logs = hub.logs(padSource(plane));
  const abort = new AbortController();
  const told: Told = { words: [], position: start };
  const run = async (): Promise<void> => {
    while (!abort.signal.aborted) {
      const all = { windows: null, after: null, before: null, limit: 1_000, isBackward: false };
      const wants = { position: told.position, pages: [all] };
      const answers = await plane
        .read([{ pad, grant: grantAt(Number.MAX_SAFE_INTEGER), wants }])
        .catch(() => new Promise<null>((resolve) => setImmediate(resolve, null)));
      const state = answers?.[0];
      if (state?.kind === 'GONE') {
        told.words.push('gone');
        return;
      }
      if (state?.kind !== 'STATE') continue;
      if (!state.positionHolds) {
        told.words.push(`reset [${contentsOf(state).join(' ')}]`);
        told.position = state.position;
      }
      const { rev } = told.position;
      for await (const step of logs.follow(padLogKey(pad, state.position), rev, abort.signal)) {
        if (step.item === undefined) continue;
        told.words.push(wordOf(step.item));
        told.position = step.item.at;
      }
    }
  };
  const running = run();
  onTestFinished(async () => {
    abort.abort();
    await running;
    hub.close();
    bus.close();
  });
  return told;
};

const tells = (told: Told, words: string[]): Promise<void> =>
  expect.poll(() => told.words, { timeout: 10_000, interval: 5 }).toEqual(words) as Promise<void>;

test('a follower is told every entry, content and clear, from an empty pad on', async () => {
  const { plane } = world;
  const pad = newPad();
  const told = follow(pad);
  await append(plane, pad, 1, 'a');
  await append(plane, pad, 1, 'b', 'c');
  await setContent(plane, pad, 1, 'text');
  await append(plane, pad, 1, 'large'.padEnd(20_000));
  await tells(told, ['a', 'b', 'c', 'content text', 'large'.padEnd(20)]);
  await plane.clear(pad, grantAt(1), newAuthor(), 'ALL');
  await tells(told, [...told.words.slice(0, 5), 'CONTENT_CLEARED', 'ENTRIES_CLEARED']);
  expect(told.position).toEqual((await look(plane, pad)).position);

  const later = follow(pad, { ...told.position, rev: 3, seq: 3 });
  await tells(later, ['CONTENT_CLEARED', 'ENTRIES_CLEARED']);
});

test('a wipe is told as a reset, and what comes after it as usual', async () => {
  const { plane, redis } = world;
  const pad = newPad();
  const told = follow(pad);
  await append(plane, pad, 1, 'a', 'b');
  await tells(told, ['a', 'b']);
  await redis.commands.unlink(...Object.values(keysOf(pad)));
  await tells(told, ['a', 'b', 'reset []']);
  await append(plane, pad, 1, 'c');
  await tells(told, ['a', 'b', 'reset []', 'c']);
  await redis.commands.unlink(keysOf(pad).meta);
  await append(plane, pad, 1, 'd');
  await until(() => told.words.at(-1) === 'd' || told.words.at(-1) === 'reset [d]');
  expect(told.words.filter((word) => word.startsWith('reset'))).toHaveLength(2);
});

test('a purge ends it', async () => {
  const { plane } = world;
  const pad = newPad();
  const told = follow(pad);
  await append(plane, pad, 1, 'a');
  await tells(told, ['a']);
  await plane.purge(pad);
  await tells(told, ['a', 'gone']);
});

test('a restart that loses nothing resets nobody', async () => {
  const { plane, server, redis } = world;
  const pad = newPad();
  const told = follow(pad);
  await append(plane, pad, 1, 'a', 'b');
  await tells(told, ['a', 'b']);
  const old = told.position;
  await server.kill9();
  await server.restart();
  await until(() =>
    redis.ping().then(
      () => true,
      () => false,
    ),
  );
  await append(plane, pad, 1, 'c');
  await tells(told, ['a', 'b', 'c']);
  expect(told.position.tag).not.toBe(old.tag);
  expect(await look(plane, pad, { position: old })).toMatchObject({ positionHolds: true });
});

test.each([
  ['nothing is written meanwhile', []],
  ['others write as much again at once', ['x', 'y', 'z', 'u']],
])('an older append-only file is told as a reset, though %s', async (_, written) => {
  const { plane, server, redis } = world;
  const pad = newPad();
  const told = follow(pad);
  await append(plane, pad, 1, 'a', 'b', 'c');
  await tells(told, ['a', 'b', 'c']);
  const kept = told.position;
  const files = join(dirname(server.path), 'appendonlydir');
  await cp(files, `${files}.old`, { recursive: true });
  await append(plane, pad, 1, 'lost 1', 'lost 2');
  await tells(told, ['a', 'b', 'c', 'lost 1', 'lost 2']);
  const lost = told.position;

  await server.kill9();
  await rm(files, { recursive: true });
  await cp(`${files}.old`, files, { recursive: true });
  await rm(`${files}.old`, { recursive: true });
  await server.restart();
  await until(
    () =>
      redis.commands.ping().then(
        () => true,
        () => false,
      ),
    1,
  );
  for (const content of written) await append(plane, pad, 1, content);
  const isTold = (): boolean => {
    const reset = told.words.findIndex((word) => word.startsWith('reset'));
    const [, ...shown] = /\[(.*)\]/.exec(told.words[reset] ?? '') ?? [];
    const after = [...(shown[0] ?? '').split(' '), ...told.words.slice(reset + 1)];
    return reset === 5 && after.join() === ['a', 'b', 'c', ...written].join();
  };
  await until(isTold);
  expect(await look(plane, pad, { position: lost })).toMatchObject({ positionHolds: false });
  expect(await look(plane, pad, { position: kept })).toMatchObject({ positionHolds: true });
});
