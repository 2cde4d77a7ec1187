import { EventEmitter, once } from 'node:events';
import type { Logs } from '../../../src/live/logs.ts';
import type { FollowEnd } from '../../../src/live/source.ts';
import type { Entry } from './plainLogs.ts';

/** Follows a log and writes down what it gets; can be stalled, and stopped at any moment. */
export interface Reader {
  readonly after: number;
  readonly received: readonly Entry[];
  readonly ended: FollowEnd | undefined;
  readonly isAborted: boolean;
  stall(): void;
  resume(): void;
  abort(): void;
  /** Resolves once as many items are there. */
  has(count: number): Promise<void>;
  /** Resolves when nothing more comes. */
  readonly done: Promise<void>;
}

export const startReader = (logs: Logs<Entry>, key: string, after: number): Reader => {
  const abort = new AbortController();
  const steps = logs.follow(key, after, abort.signal);
  const events = new EventEmitter().setMaxListeners(0);
  const received: Entry[] = [];
  let ended: FollowEnd | undefined;
  let isStalled = false;

  const read = async (): Promise<void> => {
    for await (const step of steps) {
      if (step.ended !== undefined) ended = step.ended;
      else received.push(step.item);
      events.emit('changed');
      while (isStalled && !abort.signal.aborted) await once(events, 'resumed');
    }
  };

  return {
    after,
    received,
    get ended() {
      return ended;
    },
    get isAborted() {
      return abort.signal.aborted;
    },
    stall() {
      isStalled = true;
    },
    resume() {
      isStalled = false;
      events.emit('resumed');
    },
    abort() {
      abort.abort();
      events.emit('resumed');
    },
    async has(count) {
      while (received.length < count) await once(events, 'changed');
    },
    done: read(),
  };
};
