import type { StreamRequest, StreamResult, StreamSink } from '../../src/client/index.ts';

export const FOLLOW = /* GraphQL */ `
  subscription Follow($threadId: ID!, $after: Cursor) {
    timeline(threadId: $threadId, after: $after) { event { seq } ended cursor }
  }
`;

type Subscribe = (request: StreamRequest, sink: StreamSink) => () => void;

/** One subscriber that writes down what it gets, and lets a test wait for it without a clock. */
export interface Follower {
  readonly seqs: number[];
  readonly results: StreamResult[];
  readonly problem: () => unknown;
  readonly isOver: () => boolean;
  readonly stop: () => void;
  /** Resolves when the condition holds; it is looked at after each thing that happens here. */
  until(condition: () => boolean): Promise<void>;
}

export const followLog = (
  { subscribe }: { readonly subscribe: Subscribe },
  request: StreamRequest = { query: FOLLOW, variables: { threadId: 't' } },
): Follower => {
  const seqs: number[] = [];
  const results: StreamResult[] = [];
  const waiting = new Set<() => void>();
  let problem: unknown;
  let over = false;
  const happened = () => {
    for (const look of [...waiting]) look();
  };
  const stop = subscribe(request, {
    next(result) {
      results.push(result);
      const seq = seqOf(result);
      if (seq !== undefined) seqs.push(seq);
      happened();
    },
    error(reason) {
      problem = reason;
      over = true;
      happened();
    },
    complete() {
      over = true;
      happened();
    },
  });
  return {
    seqs,
    results,
    problem: () => problem,
    isOver: () => over,
    stop,
    until: (condition) =>
      new Promise((resolve) => {
        const look = () => {
          if (!condition()) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
};

const seqOf = (result: StreamResult): number | undefined =>
  (result.data as { timeline?: { event?: { seq?: number } | null } | null } | null | undefined)?.timeline
    ?.event?.seq;
