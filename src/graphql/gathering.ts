import type { Duplex } from 'node:stream';

/**
 * What one turn of the event loop writes to one connection leaves in at most two system calls: the first message at
 * once, so that nobody waits, and whatever follows it within the turn together. Many changes in one moment cost many
 * readers little more than one.
 */
export interface Gathering {
  /** Called before each write. */
  before(stream: Duplex): void;
}

export const createGathering = (): Gathering => {
  /** Those written to in this turn, and whether they hold back what follows. */
  let written = new Map<Duplex, 'OPEN' | 'HELD'>();

  const release = (): void => {
    const all = written;
    written = new Map();
    for (const [stream, state] of all) if (state === 'HELD') stream.uncork();
  };

  return {
    before(stream) {
      if (written.size === 0) setImmediate(release);
      const state = written.get(stream);
      if (state === undefined) written.set(stream, 'OPEN');
      else if (state === 'OPEN') {
        stream.cork();
        written.set(stream, 'HELD');
      }
    },
  };
};
