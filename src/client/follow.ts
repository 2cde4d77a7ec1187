import { type Waits, waitBefore } from './backoff.ts';
import { followedDocument } from './document.ts';
import { hasCode, isCloseEvent, verdictOn, withErrorsOfBody } from './problems.ts';
import {
  isRecord,
  type StreamClient,
  type StreamRequest,
  type StreamResult,
  type StreamSink,
} from './stream.ts';

export interface FollowOptions extends Waits {
  readonly credentials: Credentials;
  onRetry(problem: unknown, waitMs: number): void;
}

/** What the readers of one client know together about its credential. */
export interface Credentials {
  /** Grows with each answer of `fresh`. */
  version(): number;
  /**
   * Whether there is a fresh credential, now that the server took that of `version` for dead. The owner is asked
   * once, however many readers lost it.
   */
  fresh(problem: unknown, version: number): Promise<boolean>;
}

/** After these the log, or this reader's part in it, is over. The other ends of a stream are interruptions. */
const FINAL_ENDS = new Set(['THREAD_DELETED', 'SCRATCHPAD_DELETED', 'RUN_CLOSED', 'TAKEN_OVER']);

/**
 * Follows one subscription through any number of connections. A payload is handed over in the same synchronous
 * step in which its cursor becomes the place to resume from, so each is handed over once; what a former
 * connection still brings is ignored. Gives back what ends it: afterwards no timer, no listener, no subscription
 * is left.
 */
export const follow = (
  client: StreamClient,
  request: StreamRequest,
  sink: StreamSink,
  options: FollowOptions,
): (() => void) => {
  const document = followedDocument(request.query, request.operationName);
  const variables: Record<string, unknown> = { ...request.variables };
  const sent: StreamRequest = { ...request, query: document.query, variables };

  let attempt = 0;
  let over = false;
  let stopAttempt: (() => void) | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let startedAt = 0;
  let credential = 0;
  let failures = 0;
  let hasWorked = false;
  /** Payloads of this attempt; the first one only tells where it starts. */
  let payloads = 0;
  let position: string | undefined;
  let failedInside = false;
  let unexplained = false;

  const begin = (): void => {
    const mine = ++attempt;
    const current = () => mine === attempt && !over;
    startedAt = Date.now();
    credential = options.credentials.version();
    payloads = 0;
    failedInside = false;
    const stop = client.subscribe(sent, {
      next: (result) => {
        if (current()) receive(result);
      },
      error: (problem) => {
        if (current()) failed(problem);
      },
      complete: () => {
        if (current()) completed();
      },
    });
    if (current()) stopAttempt = stop;
    else stopLater(stop);
  };

  const leaveAttempt = (): void => {
    attempt++;
    if (stopAttempt) stopLater(stopAttempt);
    stopAttempt = undefined;
  };

  const finish = (last: () => void): void => {
    if (over) return;
    over = true;
    clearTimeout(timer);
    unlisten?.();
    leaveAttempt();
    last();
  };

  const handOver = (result: StreamResult): void => {
    try {
      sink.next(result);
    } catch (thrown) {
      finish(() => sink.error(thrown));
    }
  };

  const receive = (result: StreamResult): void => {
    const delivery = read(result, document);
    const failure = isFailure(result);
    // Without a `data` member it is the request that was refused, not the execution of one event.
    const refusal = failure && result.data === undefined;
    if (refusal || (failure && verdictOn(result.errors, hasWorked).kind !== 'final'))
      interrupted(result.errors);
    // Its position may not be taken: behind it nobody would ask for what it lacks.
    else if (document.cursorVariable !== undefined && delivery.ended === undefined && isIncomplete(result))
      retry(result.errors);
    else take(delivery, failure);
  };

  const take = ({ cursor, ended, visible }: Delivery, failure: boolean): void => {
    failedInside = failure;
    hasWorked = true;
    unexplained = false;
    payloads++;
    if (cursor === undefined ? payloads > 1 : cursor !== position) failures = 0;
    if (cursor !== undefined) {
      position = cursor;
      // The clients write the request anew at each attempt of their own, so those resume as well.
      if (document.cursorVariable !== undefined) variables[document.cursorVariable] = cursor;
    }
    if (ended === undefined) handOver(visible);
    else if (FINAL_ENDS.has(ended)) handOverLast(visible);
    else if (ended === 'CREDENTIAL_ENDED') refused(ended, () => handOverLast(visible));
    else interrupted(ended);
  };

  const handOverLast = (visible: StreamResult): void => {
    handOver(visible);
    finish(() => sink.complete());
  };

  const completed = (): void => {
    unexplained = !failedInside && document.resumes;
    if (unexplained) interrupted(new Error('The stream was completed without a reason.'));
    else finish(() => sink.complete());
  };

  const failed = (problem: unknown): void => {
    leaveAttempt();
    const mine = attempt;
    void withErrorsOfBody(problem).then((known) => {
      if (mine === attempt && !over) interrupted(known);
    });
  };

  /** What interrupted the stream decides whether and how it goes on. */
  const interrupted = (problem: unknown): void => {
    const verdict = verdictOn(problem, hasWorked);
    // A log that ended without saying so, and now is not there any more, was deleted meanwhile.
    const deleted = unexplained && hasCode(problem, 'NOT_FOUND');
    const giveUp = () => finish(() => (deleted ? sink.complete() : sink.error(problem)));
    if (verdict.kind === 'credential') refused(problem, giveUp);
    else if (verdict.kind === 'retry') retry(problem, verdict.afterMs);
    else giveUp();
  };

  const refused = (problem: unknown, giveUp: () => void): void => {
    leaveAttempt();
    const mine = attempt;
    const go = (fresh: boolean) => {
      if (mine !== attempt || over) return;
      if (fresh) retry(problem);
      else giveUp();
    };
    options.credentials.fresh(problem, credential).then(go, () => go(true));
  };

  const retry = (problem: unknown, atLeastMs = 0): void => {
    leaveAttempt();
    if (Date.now() - startedAt > options.longestWaitMs) failures = 0;
    const waitMs = waitBefore(failures++, options, atLeastMs);
    clearTimeout(timer);
    timer = setTimeout(begin, waitMs);
    options.onRetry(problem, waitMs);
  };

  // Where the client tells of its socket, a new attempt gets an id of its own: a message that a former socket
  // still delivers then belongs to nobody.
  const unlisten = client.on?.('closed', (event) => {
    // The client itself closes a socket that nobody uses, perhaps while the next attempt has begun on another.
    if (over || !stopAttempt || !isCloseEvent(event) || event.code === NORMAL_CLOSURE) return;
    if (verdictOn(event, hasWorked).kind !== 'final') interrupted(event);
  });

  begin();
  return () => finish(() => sink.complete());
};

const NORMAL_CLOSURE = 1000;

/**
 * Not while a message is handled: graphql-ws counts a subscription that is ended from within a message twice when
 * its completion comes in the same packet, and from then on takes its socket for unused.
 */
const stopLater = (stop: () => void): void => {
  setTimeout(stop, 0);
};

const isFailure = (result: StreamResult): boolean =>
  (result.errors?.length ?? 0) > 0 && (result.data === null || result.data === undefined);

/** Whether a payload lacks what the server could not read, or failed at, and may well bring at another attempt. */
const isIncomplete = ({ errors }: StreamResult): boolean =>
  hasCode(errors, 'UNAVAILABLE') || hasCode(errors, 'INTERNAL');

/** A payload: where the reader stands with it, why the stream ends, and what the consumer is given. */
interface Delivery {
  readonly cursor: string | undefined;
  readonly ended: string | undefined;
  readonly visible: StreamResult;
}

const read = (result: StreamResult, document: ReturnType<typeof followedDocument>): Delivery => {
  const { rootKey, cursorKey, endedKey, added } = document;
  const data = isRecord(result.data) ? result.data : undefined;
  const delivery = data && rootKey !== undefined && isRecord(data[rootKey]) ? data[rootKey] : undefined;
  const extensions = isRecord(result.extensions) ? result.extensions : {};
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  const inside = (key: string | undefined) =>
    delivery && key !== undefined ? text(delivery[key]) : undefined;
  const visible =
    data && delivery && rootKey !== undefined && added.length > 0
      ? { ...result, data: { ...data, [rootKey]: without(delivery, added) } }
      : result;
  return {
    cursor: text(extensions.cursor) ?? inside('cursor') ?? inside(cursorKey),
    ended: inside(endedKey),
    visible,
  };
};

const without = (record: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)));
