import { setImmediate } from 'node:timers/promises';
import { type ExecutionArgs, type ExecutionResult, execute } from 'graphql';
import { LogGone } from '../shared/errors.ts';
import { asOfNow, type CreateContext, type KnownCaller } from './caller.ts';
import type { ErrorMask } from './errors.ts';

/** What a subscription's source yields: the root field's object. */
interface Delivery {
  readonly cursor?: string | null;
  /** Set on the last one. */
  readonly ended?: string | null;
}

/** `extensions.cursor`: where the client stands once it has this payload. */
export type Payload = ExecutionResult;

/** Payloads in order, pulled one at a time. `return` frees everything at once, also while a payload is awaited. */
export type PayloadStream = AsyncGenerator<Payload, undefined>;

/** A source that always has more must not keep everybody else from their turn. */
const BURST = 32;

export interface StreamDeps {
  readonly createContext: CreateContext;
  readonly mask: ErrorMask;
}

/**
 * Executes a subscription's operation for each event of its source: with a fresh context, so that no loader and no
 * right outlives an event, and lets nothing out that the session has not cleared. A payload that is held back is not
 * lost: the last one (`ended`) then carries the position of the last that went out.
 *
 * This is the place where one execution will serve many readers: the result depends on nothing of the socket's but
 * its caller's authority.
 */
export const createPayloadStream = (
  source: AsyncIterable<unknown>,
  args: ExecutionArgs,
  caller: KnownCaller,
  { createContext, mask }: StreamDeps,
): PayloadStream => {
  const events = source[Symbol.asyncIterator]();
  let isDone = false;
  let waiting: ((result: IteratorResult<Payload, undefined>) => void) | null = null;
  /** The position that the client knows, or the stream's start while it knows none. */
  let reached: string | null = null;
  let isBehind = false;
  let pulled = 0;

  const finish = (): void => {
    isDone = true;
    waiting?.({ done: true, value: undefined });
    waiting = null;
  };

  const isCleared = async (): Promise<boolean> => {
    if (caller.session === null) return true;
    try {
      await caller.session.cleared();
      return true;
    } catch {
      return false;
    }
  };

  /** Null where the operation met the deletion of what it reads: the source then says that it ended. */
  const payloadOf = async (event: unknown): Promise<Payload | null> => {
    const contextValue = createContext(asOfNow(caller));
    const result = await execute({ ...args, rootValue: event, contextValue });
    if (result.errors?.some(({ originalError }) => originalError instanceof LogGone)) return null;
    const { cursor } = deliveryOf(event);
    const masked = mask.result(result, caller.requestId);
    return typeof cursor === 'string' ? { ...masked, extensions: { cursor } } : masked;
  };

  const next = async (): Promise<IteratorResult<Payload, undefined>> => {
    while (!isDone) {
      pulled += 1;
      if (pulled % BURST === 0) await setImmediate();
      const step = await events.next();
      if (step.done === true) break;
      const { cursor, ended } = deliveryOf(step.value);
      const isLast = typeof ended === 'string';
      const event = isLast && isBehind && reached !== null ? at(reached, step.value) : step.value;
      const payload = await payloadOf(event);
      if (payload === null) continue;
      if (isLast || (await isCleared())) {
        if (isDone) break;
        if (typeof cursor === 'string' && !isBehind) {
          reached = cursor;
          caller.session?.issued(cursor);
        }
        return { done: false, value: payload };
      }
      reached ??= cursor ?? null;
      isBehind = true;
    }
    finish();
    return { done: true, value: undefined };
  };

  return {
    next: () =>
      new Promise((resolve) => {
        if (isDone) {
          resolve({ done: true, value: undefined });
          return;
        }
        waiting = resolve;
        next().then(resolve, (error: unknown) => {
          if (!isDone) resolve({ done: false, value: { errors: [mask.error(error, caller.requestId)] } });
          finish();
        });
      }),
    async return() {
      finish();
      await events.return?.();
      return { done: true, value: undefined };
    },
    async throw(error) {
      finish();
      await events.return?.();
      throw error;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
};

const deliveryOf = (event: unknown): Delivery =>
  typeof event === 'object' && event !== null ? (event as Delivery) : {};

/** The same delivery, said to stand at `cursor`. */
const at = (cursor: string, event: unknown): unknown =>
  Object.assign(Object.create(Object.getPrototypeOf(event)), event, { cursor });
