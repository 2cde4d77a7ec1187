import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import {
  type Author,
  type Fenced,
  NO_ETAG,
  NOWHERE,
  type Pad,
  type PadPosition,
  type WriteKey,
} from '../../../src/scratchpads/pad.ts';
import type { PageWant } from '../../../src/scratchpads/plane.ts';
import { inputHash } from '../../../src/shared/canonical.ts';
import { grantAt, keysOf, newPad, tappedPlane } from '../../support/pads.ts';
import { until } from '../../support/until.ts';
import type { Action } from './history.ts';
import { everybody, type ModelEntry, ModelPad, ModelThread } from './model.ts';

/** A reader that folds what it is told; it never sees more than a page at once. */
class Follower {
  position: PadPosition = NOWHERE;
  entries: ModelEntry[] = [];
  content: string | null = null;
  resets = 0;
}

export const createPadWorld = (redis: Redis) => {
  /** As a driver does that lost a reply. */
  let sendsTwice = false;
  const plane = tappedPlane(
    { commands: redis },
    async (send) => {
      if (sendsTwice) await send();
      return send();
    },
    { partBytes: 12_000 },
  );
  const pad: Pad = newPad();
  const keys = keysOf(pad);
  const thread = new ModelThread();
  const unraised = new Set<number>();
  const follower = new Follower();
  let model = new ModelPad();
  let present: string = NO_ETAG;
  const etags = ['zzzzzzzzzzzz-1'];

  const lose = (): void => {
    model = new ModelPad();
    present = NO_ETAG;
  };

  /** As a service writes: authorise, and again under the mark as often as it is asked to. `done` updates the model. */
  const write = async <Outcome extends { kind: string }>(
    { who, age, isTwice, between }: Extract<Action, { kind: 'append' | 'set' | 'clear' }>,
    send: (grant: ReturnType<typeof grantAt>) => Promise<Outcome | Fenced>,
    done: (outcome: Outcome, threadSeq: number) => boolean,
  ): Promise<void> => {
    let threadSeq = Math.max(1, thread.head - age);
    let settles: string | null = null;
    // The statement of that moment says no.
    if (!thread.isActive(who, threadSeq)) return;
    sendsTwice = isTwice;
    for (let round = 0; round < 5 && thread.isActive(who, threadSeq); round += 1) {
      const outcome = await send(grantAt(threadSeq, settles));
      if (outcome.kind !== 'FENCED') {
        sendsTwice = false;
        const isNew = done(outcome as Outcome, threadSeq);
        // No change that Redis was told of came between the grant and the write.
        if (isNew) expect(thread.hasChangeAfter(threadSeq, (seq) => !unraised.has(seq))).toBe(false);
        return;
      }
      settles = (outcome as Fenced).mark;
      threadSeq = thread.head;
      if (round === 0 && between !== null) await act(between);
    }
    sendsTwice = false;
    expect(thread.isActive(who, threadSeq)).toBe(false);
  };

  /** Whether this is told again from a first time. */
  const isRepeat = (key: WriteKey | null, outcome: { kind: string }): boolean => {
    const first = key === null ? undefined : model.results.get(key.key);
    if (first === undefined) return false;
    if (first.hash === key?.hash) expect(outcome).toEqual(first.outcome);
    else expect(outcome).toEqual({ kind: 'KEY_REUSED' });
    return true;
  };

  const keep = (key: WriteKey | null, outcome: unknown): void => {
    if (key !== null) model.results.set(key.key, { hash: key.hash, outcome });
  };

  const authorOf = (who: number): Author => ({ authorId: `part_${who}`, runId: null, sourceIds: [] });

  const act = async (action: Action): Promise<void> => {
    switch (action.kind) {
      case 'append': {
        const { contents, who } = action;
        const key =
          action.key === null ? null : { key: `append ${who} ${action.key}`, hash: inputHash(contents) };
        return write(
          action,
          (grant) => plane.append(pad, grant, authorOf(who), { contents, key }),
          (outcome, threadSeq) => {
            if (isRepeat(key, outcome)) return false;
            if (outcome.kind !== 'DONE') throw new Error(outcome.kind);
            expect(outcome.entries).toMatchObject(model.append(threadSeq, contents));
            keep(key, outcome);
            return true;
          },
        );
      }
      case 'set': {
        const { text, who } = action;
        const key = action.key === null ? null : { key: `set ${who} ${action.key}`, hash: inputHash(text) };
        const named = { none: null, empty: NO_ETAG, present, old: etags[action.age % etags.length] ?? '' };
        return write(
          action,
          (grant) =>
            plane.setContent(pad, grant, authorOf(who), { text, expectedEtag: named[action.etag], key }),
          (outcome, threadSeq) => {
            if (isRepeat(key, outcome)) return false;
            const expected = named[action.etag];
            if (expected !== null && expected !== present) {
              expect(outcome).toEqual({ kind: 'ETAG_DIFFERS', etag: present });
              return false;
            }
            if (outcome.kind !== 'DONE') throw new Error(outcome.kind);
            model.set(threadSeq, text);
            expect(outcome.content).toMatchObject(model.content ?? {});
            expect(etags).not.toContain(outcome.content.etag);
            present = outcome.content.etag;
            etags.push(present);
            keep(key, outcome);
            return true;
          },
        );
      }
      case 'clear':
        return write(
          action,
          (grant) => plane.clear(pad, grant, authorOf(action.who), action.what),
          (outcome, threadSeq) => {
            const { rev } = model;
            model.clear(threadSeq, action.what);
            if (model.content === null) present = NO_ETAG;
            expect(outcome).toMatchObject({ kind: 'DONE', position: { rev: model.rev, seq: model.seq } });
            return model.rev > rev;
          },
        );
      case 'post':
        thread.head += action.count;
        return;
      case 'change': {
        const seq = thread.head + 1;
        if (action.raise === 'missed') unraised.add(seq);
        else await plane.raise(pad, seq);
        if (action.raise === 'twice') await plane.raise(pad, seq);
        thread.change(action.who);
        return;
      }
      case 'rolledBack':
        for (let step = 1; step <= action.count; step += 1) await plane.raise(pad, thread.head + step);
        return;
      case 'outbox':
        for (const seq of unraised) await plane.raise(pad, seq);
        unraised.clear();
        return;
      case 'wipe':
        await redis.unlink(...Object.values(keys));
        return lose();
      case 'expire': {
        const all = Object.values(keys);
        await Promise.all(all.map((key) => redis.pexpire(key, 1)));
        await until(async () => (await redis.exists(...all)) === 0, 1);
        return lose();
      }
      case 'evict':
        if ((await redis.unlink(keys[action.key])) === 1) lose();
        return;
      case 'follow':
        return follow();
      case 'page':
        return page(action);
      default:
        return action satisfies never;
    }
  };

  const readPage = async (want: PageWant) => {
    const [state] = await plane.read([
      { pad, grant: grantAt(thread.head), wants: { content: true, pages: [want] } },
    ]);
    if (state?.kind !== 'STATE') throw new Error(`Read: ${state?.kind}`);
    return state;
  };

  const page = async ({ who, ...want }: Extract<Action, { kind: 'page' }>): Promise<void> => {
    const state = await readPage({ ...want, windows: thread.windows(who) });
    const visible = model.entries.filter(({ threadSeq }) => thread.isActive(who, threadSeq));
    const inRange = visible.filter(({ seq }) => seq > (want.after ?? 0) && seq < (want.before ?? Infinity));
    const expected = want.isBackward ? inRange.slice(-want.limit) : inRange.slice(0, want.limit);
    const first = expected[0];
    expect(state.pages[0]?.entries).toMatchObject(expected);
    expect(state.pages[0]?.entries).toHaveLength(expected.length);
    expect(state.pages[0]?.total).toBe(visible.length);
    if (first !== undefined) expect(state.pages[0]?.skipped).toBe(visible.indexOf(first));
  };

  /** Exactly once and in order what is still there, the newest content, and every clear. */
  const follow = async (): Promise<void> => {
    for (;;) {
      const state = await readPage({
        windows: null,
        after: null,
        before: null,
        limit: 10_000,
        isBackward: false,
      });
      const [now] = await plane.read([
        { pad, grant: grantAt(thread.head), wants: { position: follower.position } },
      ]);
      if (now?.kind !== 'STATE') throw new Error('No state.');
      if (!now.positionHolds) {
        follower.resets += 1;
        follower.entries = [...(state.pages[0]?.entries ?? [])];
        follower.content = state.content?.text ?? null;
        follower.position = state.position;
      }
      if (now.position.epoch === '') return;
      const from = { ...now.position, rev: follower.position.rev };
      const changes = (await plane.changes(pad, from, 3)) ?? [];
      for (const change of changes) {
        expect(change.position).toBeGreaterThan(follower.position.rev);
        if (change.kind === 'ENTRY') {
          expect(change.entry.seq).toBeGreaterThan(follower.entries.at(-1)?.seq ?? 0);
          follower.entries.push(change.entry);
        } else if (change.kind === 'CONTENT') follower.content = change.content.text;
        else if (change.kind === 'CONTENT_CLEARED') follower.content = null;
        else follower.entries = [];
        follower.position = change.at;
      }
      if (changes.length === 0) return;
    }
  };

  /** What every member and the owner read agrees with the model, and so does the follower once it has caught up. */
  const check = async (): Promise<void> => {
    const state = await readPage({
      windows: null,
      after: null,
      before: null,
      limit: 10_000,
      isBackward: false,
    });
    expect(state.pages[0]?.entries).toMatchObject(model.entries);
    expect(state.count).toBe(model.entries.length);
    expect(state.content?.text).toBe(model.content?.text);
    expect(state.position).toMatchObject({ rev: model.rev, seq: model.seq });
    for (const who of everybody)
      await page({ kind: 'page', who, limit: 10_000, isBackward: false, after: null, before: null });
    await follow();
    expect(follower.entries).toMatchObject(model.entries);
    expect(follower.entries).toHaveLength(model.entries.length);
    expect(follower.content).toBe(model.content?.text ?? null);
  };

  return { act, check };
};
