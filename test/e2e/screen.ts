import { afterAll, beforeAll } from 'vitest';

/** An event as a list on a screen shows it. */
export interface Shown {
  readonly id: string;
  readonly seq: number;
  readonly clientKey?: string | null;
}

/** What a user sees of a thread, picture by picture: each is checked, not only the last. */
export interface Screen {
  show(events: readonly Shown[]): void;
  shown(): readonly Shown[];
  /** What was wrong with any picture: an event twice, one in the wrong place. */
  problems(): readonly string[];
  until(condition: (shown: readonly Shown[]) => boolean): Promise<void>;
  /** Looks again at each picture, and at each turn of the event loop. */
  poll(condition: () => boolean): Promise<void>;
}

export const openScreen = (): Screen => {
  let present: readonly Shown[] = [];
  const problems: string[] = [];
  const waiting = new Set<() => void>();
  const check = (events: readonly Shown[]) => {
    const keys = events.flatMap(({ clientKey }) => clientKey ?? []);
    if (new Set(events.map(({ id }) => id)).size < events.length)
      problems.push(`An event twice: ${told(events)}`);
    if (new Set(keys).size < keys.length) problems.push(`A message twice: ${told(events)}`);
    if (events.some(({ seq }, index) => seq <= (events[index - 1]?.seq ?? 0)))
      problems.push(`Out of order: ${told(events)}`);
  };
  return {
    show(events) {
      present = events;
      check(events);
      for (const look of [...waiting]) look();
    },
    shown: () => present,
    problems: () => problems,
    until: (condition) =>
      new Promise((resolve) => {
        const look = () => {
          if (!condition(present)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    async poll(condition) {
      while (!condition()) await new Promise((resolve) => setImmediate(resolve));
    },
  };
};

/**
 * Asks for a state that is followed, where there was a gap; and once more where it changed while that was under way: an answer
 * from before a change that was told already would undo it. Whoever stops its client waits until it is settled.
 */
export const createRefresh = (ask: () => Promise<unknown>) => {
  let asking = Promise.resolve();
  let isAsking = false;
  let isChanged = false;
  const refresh = async (): Promise<void> => {
    isAsking = true;
    do {
      isChanged = false;
      await ask();
    } while (isChanged);
    isAsking = false;
  };
  return {
    hear(isGap: boolean): void {
      if (isAsking) isChanged = true;
      else if (isGap) asking = refresh();
    },
    settled: (): Promise<void> => asking,
  };
};

const told = (events: readonly Shown[]): string => events.map(({ id, seq }) => `${seq} ${id}`).join(', ');

/** Client libraries warn on the console of what does not fit their cache. */
export const watchConsole = () => {
  const original = { warn: console.warn, error: console.error };
  let said: unknown[][] = [];
  const hear = (...words: unknown[]) => {
    said.push(words);
  };
  beforeAll(() => {
    Object.assign(console, { warn: hear, error: hear });
  });
  afterAll(() => {
    Object.assign(console, original);
  });
  return {
    said: () => said,
    clear: () => {
      said = [];
    },
  };
};
