import { describe, expect, test } from 'vitest';
import { unexplained } from './explain.ts';
import { passedOver } from './fair.ts';
import type { Observation, Seen, Span } from './observed.ts';
import { notToldRight } from './told.ts';
import type { Notice } from './world.ts';

const BOT = { handle: 'bot', isConcurrent: true };
const SOLO = { handle: 'solo', isConcurrent: false };

/** What is seen one after the other; `during`: begun before the last one ended. */
class Story {
  readonly seen: Observation[] = [];
  readonly #heads = new Map<string, number>();
  #now = 0;

  see(thread: string, seen: Seen, span?: Span): this {
    this.#now += 10;
    this.seen.push({ thread, span: span ?? { from: this.#now, to: this.#now + 5 }, ...seen });
    return this;
  }
  #event(thread: string): number {
    const seq = (this.#heads.get(thread) ?? 0) + 1;
    this.#heads.set(thread, seq);
    return seq;
  }
  post(thread: string, sender: string, answers: string | null = null): this {
    const seq = this.#event(thread);
    const at = String(this.#now).padStart(6, '0');
    return this.see(thread, { kind: 'EVENT', event: { kind: 'MESSAGE', seq, sender, at }, answers });
  }
  retract(thread: string, message: number): this {
    const seq = this.#event(thread);
    return this.see(thread, { kind: 'EVENT', event: { kind: 'RETRACTION', seq, message }, answers: null });
  }
  move(thread: string, subject: string, isActive: boolean): this {
    const seq = this.#event(thread);
    return this.see(thread, {
      kind: 'EVENT',
      event: { kind: 'CHANGE', seq, subject, isActive },
      answers: null,
    });
  }
  give(thread: string, deliveryId: string, seqs: readonly number[], attempt = 1, batch = 1): this {
    return this.see(thread, { kind: 'GIVEN', deliveryId, seqs, attempt, batch });
  }
  acknowledge(thread: string, deliveryId: string, code: 'OK' | 'CONFLICT' | 'LOST' = 'OK'): this {
    // What was lost may have been done until long after.
    const span = code === 'LOST' ? { from: this.#now + 10, to: this.#now + 15 } : undefined;
    return this.see(thread, { kind: 'ACKNOWLEDGED', deliveryId, upTo: null, code }, span);
  }
  lapse(thread: string, found: string | null): this {
    return this.see(thread, { kind: 'LAPSED', deliveryId: found, found });
  }
  extend(thread: string, deliveryId: string, seconds: number, code: 'OK' | 'CONFLICT' = 'OK'): this {
    return this.see(thread, { kind: 'EXTENDED', deliveryId, seconds, code });
  }
  pending(thread: string, ...seqs: number[]): this {
    return this.see(thread, { kind: 'PENDING', seqs });
  }
}

const story = (): Story => new Story().post('a', 'ann').post('a', 'ann').post('a', 'ann');
const isExplained = ({ seen }: Story, agent = BOT, unseen: readonly Span[] = []): boolean =>
  unexplained(
    agent,
    seen,
    unseen.map((span) => ({ span, batch: 1 })),
  ) === null;

describe('what the rules give is explained', () => {
  test('one after the other, also again once a lease has run out', () => {
    const good = story().give('a', 'd1', [1]).acknowledge('a', 'd1').give('a', 'd2', [2]).lapse('a', 'd2');
    good.give('a', 'd3', [2], 2).acknowledge('a', 'd2', 'CONFLICT').acknowledge('a', 'd3').pending('a', 3);
    expect(isExplained(good)).toBe(true);
  });

  test('in batches, past what was taken back, and past what came while it was away', () => {
    const good = story().retract('a', 2).give('a', 'd1', [1, 3], 1, 3).move('a', 'bot', false);
    good
      .acknowledge('a', 'd1', 'CONFLICT')
      .post('a', 'ann')
      .pending('a')
      .move('a', 'bot', true)
      .post('a', 'ann');
    good.give('a', 'd2', [1, 3, 8], 1, 3).acknowledge('a', 'd2').pending('a');
    expect(isExplained(good)).toBe(true);
  });

  test('whether an acknowledgement that was lost stands or not', () => {
    const lost = (): Story => story().give('a', 'd1', [1]).acknowledge('a', 'd1', 'LOST');
    expect(isExplained(lost().give('a', 'd2', [2]))).toBe(true);
    expect(isExplained(lost().lapse('a', 'd1').give('a', 'd2', [1], 2))).toBe(true);
  });

  test('where somebody took what it was never given', () => {
    const good = (): Story => story().lapse('a', 'd0').give('a', 'd1', [1], 2);
    expect(isExplained(good(), BOT, [{ from: 0, to: 100 }])).toBe(true);
    expect(isExplained(good())).toBe(false);
  });
});

describe('what is found', () => {
  test('a loss: one is never given', () => {
    const bad = story().give('a', 'd1', [1]).acknowledge('a', 'd1').give('a', 'd2', [3]);
    expect(isExplained(bad)).toBe(false);
    expect(isExplained(story().give('a', 'd1', [1]).acknowledge('a', 'd1').pending('a', 3))).toBe(false);
    expect(isExplained(story().give('a', 'd1', [1, 3], 1, 3))).toBe(false);
  });

  test('a double: what was acknowledged comes again, or what is in hand', () => {
    const done = story().give('a', 'd1', [1]).acknowledge('a', 'd1');
    expect(isExplained(done.give('a', 'd2', [1]))).toBe(false);
    expect(isExplained(story().give('a', 'd1', [1]).give('a', 'd2', [1], 2))).toBe(false);
    // Also where its like could have been taken unseen.
    const unseen = story().give('a', 'd1', [1]).acknowledge('a', 'd1').give('a', 'd2', [1], 2);
    expect(isExplained(unseen, BOT, [{ from: 0, to: 1_000 }])).toBe(false);
  });

  test('two at once of a thread, or of all threads of one that does one thing at a time', () => {
    expect(isExplained(story().give('a', 'd1', [1]).give('a', 'd2', [2]))).toBe(false);
    const two = (): Story => story().post('b', 'ann').give('a', 'd1', [1]).give('b', 'd2', [1]);
    expect(isExplained(two())).toBe(true);
    expect(isExplained(two(), SOLO)).toBe(false);
  });

  test('two at once of one that does one thing at a time, as the former is made to go on', () => {
    const again = (code: 'OK' | 'CONFLICT'): Story => {
      const begun = story().post('b', 'ann').give('a', 'd1', [1]).lapse('a', 'd1').give('b', 'd2', [1]);
      return begun.extend('a', 'd1', 60, code);
    };
    expect(isExplained(again('OK'), BOT)).toBe(true);
    expect(isExplained(again('OK'), SOLO)).toBe(false);
    expect(isExplained(again('CONFLICT'), SOLO)).toBe(true);
  });

  test('out of order', () => {
    expect(isExplained(story().give('a', 'd1', [2]))).toBe(false);
    expect(isExplained(story().give('a', 'd1', [2, 1], 1, 3))).toBe(false);
  });

  test('what was superseded moves something, or what was not is refused', () => {
    const begun = (): Story => story().give('a', 'd1', [1]).lapse('a', 'd1').give('a', 'd2', [1], 2);
    expect(isExplained(begun().acknowledge('a', 'd1'))).toBe(false);
    expect(isExplained(begun().acknowledge('a', 'd1', 'CONFLICT').pending('a', 2, 3))).toBe(false);
    expect(isExplained(begun().acknowledge('a', 'd2', 'CONFLICT'))).toBe(false);
    expect(isExplained(begun().post('a', 'bot', 'd1'))).toBe(false);
    expect(isExplained(begun().post('a', 'bot', 'd2'))).toBe(true);
  });

  test('a lost acknowledgement that stands first, and then does not', () => {
    const begun = (): Story => story().give('a', 'd1', [1]).acknowledge('a', 'd1', 'LOST');
    expect(isExplained(begun().pending('a', 2, 3).give('a', 'd2', [2]))).toBe(true);
    expect(isExplained(begun().pending('a', 2, 3).lapse('a', 'd1').give('a', 'd2', [1], 2))).toBe(false);
    expect(isExplained(begun().pending('a', 1, 2, 3).give('a', 'd2', [2]))).toBe(false);
  });

  test('what comes to one that was removed, or after its return what was not for it', () => {
    const away = (): Story => story().move('a', 'bot', false).post('a', 'ann');
    expect(isExplained(away().give('a', 'd1', [1]))).toBe(false);
    const back = (): Story => away().move('a', 'bot', true);
    expect(isExplained(back().give('a', 'd1', [1, 2, 3], 1, 5))).toBe(true);
    expect(isExplained(back().give('a', 'd1', [1, 2, 3, 5], 1, 5))).toBe(false);
    expect(isExplained(back().give('a', 'd1', [2, 3], 1, 5))).toBe(false);
  });

  test('a message that later ones are given before, again and again', () => {
    const starving = new Story().post('b', 'ann');
    for (let message = 1; message <= 5; message += 1) starving.post('a', 'ann');
    for (let message = 1; message <= 3; message += 1)
      starving.give('a', `d${message}`, [message]).acknowledge('a', `d${message}`);
    expect(passedOver(SOLO, starving.seen)).toEqual([]);
    starving.give('a', 'd4', [4]);
    expect(passedOver(SOLO, starving.seen)).toEqual(['solo was given 4 later messages before b 1.']);
  });

  test('what it was not told at once, and what it was told that is not so', () => {
    const moved = story().retract('a', 1).move('a', 'bot', false);
    const notice = (kind: string, seq: number): Notice => ({ agent: 'bot', kind, thread: 'a', seq });
    const right = [notice('MESSAGE_RETRACTED', 4), notice('REMOVED', 5)];
    expect(notToldRight('bot', moved.seen, right)).toEqual([]);
    expect(notToldRight('bot', moved.seen, right.slice(1))).toHaveLength(1);
    expect(notToldRight('bot', moved.seen, right.slice(0, 1))).toHaveLength(1);
    expect(notToldRight('bot', moved.seen, [...right, notice('READDED', 6)])).toHaveLength(1);
    expect(notToldRight('bot', moved.seen, [], [{ from: 0, to: 45 }])).toHaveLength(1);
  });
});
