import { describe, expect, test, vi } from 'vitest';
import { Flow } from '../../../src/graphql/flow.ts';

const LIMITS = { pause: 10, most: 40, patience: 1_000 };

/** A connection whose bytes leave when told. */
const createPipe = (limits = LIMITS) => {
  const flying: { bytes: number; flushed: (error?: Error | null) => void }[] = [];
  const written: string[] = [];
  let slow = 0;
  const flow = new Flow(
    {
      get unsent() {
        return flying.reduce((sum, { bytes }) => sum + bytes, 0);
      },
      onSlow: () => {
        slow += 1;
      },
    },
    limits,
  );
  return {
    flow,
    written,
    get slow() {
      return slow;
    },
    send: (name: string, bytes: number) =>
      flow.send(bytes, (flushed) => {
        written.push(name);
        flying.push({ bytes, flushed });
      }),
    leave: (error?: Error) => flying.shift()?.flushed(error),
  };
};

describe('a flow', () => {
  test('writes at once while the client keeps up, holds in order while it does not', async () => {
    const pipe = createPipe();
    await pipe.send('a', 8);
    await pipe.send('b', 8);
    const rest = [pipe.send('c', 8), pipe.send('d', 8)];
    expect(pipe.written).toEqual(['a', 'b']);
    expect(pipe.flow.isStalled).toBe(true);
    pipe.leave();
    expect(pipe.written).toEqual(['a', 'b', 'c']);
    pipe.leave();
    await Promise.all(rest);
    expect(pipe.written).toEqual(['a', 'b', 'c', 'd']);
    expect(pipe.slow).toBe(0);
  });

  test('does not let anybody fetch more while the client is behind', async () => {
    const pipe = createPipe();
    await pipe.flow.ready();
    await pipe.send('a', 11);
    let isReady = false;
    const ready = pipe.flow.ready().then(() => {
      isReady = true;
    });
    await Promise.resolve();
    expect(isReady).toBe(false);
    pipe.leave();
    await ready;
  });

  test('takes one message of any size, and gives up when much is held behind it', async () => {
    const pipe = createPipe();
    await pipe.send('large', 1_000);
    const held = [pipe.send('a', 15), pipe.send('b', 15)];
    expect(pipe.slow).toBe(0);
    held.push(pipe.send('c', 1));
    expect(pipe.slow).toBe(1);
    await Promise.all(held);
    await pipe.send('d', 1);
    expect(pipe.written).toEqual(['large']);
  });

  test('gives up once on a client that stays behind, never on one that catches up', async () => {
    vi.useFakeTimers();
    try {
      const pipe = createPipe();
      await pipe.send('a', 11);
      vi.advanceTimersByTime(900);
      pipe.leave();
      vi.advanceTimersByTime(5_000);
      expect(pipe.slow).toBe(0);
      await pipe.send('b', 11);
      vi.advanceTimersByTime(1_000);
      expect(pipe.slow).toBe(1);
      vi.advanceTimersByTime(5_000);
      expect(pipe.slow).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test('feeds nothing into a connection that fails, and lets everybody go when it is closed', async () => {
    const pipe = createPipe();
    await pipe.send('a', 11);
    const held = pipe.send('b', 1);
    pipe.leave(new Error('gone'));
    expect(pipe.written).toEqual(['a']);
    pipe.flow.close();
    await held;
    await pipe.flow.ready();
    expect(pipe.written).toEqual(['a']);
  });
});
