import { setImmediate } from 'node:timers/promises';
import { type ExecutionArgs, type ExecutionResult, execute } from 'graphql';
import { bounded } from './answers.ts';
import { asOfNow, type CreateContext, type KnownCaller } from './caller.ts';
import type { ErrorMask } from './errors.ts';
import type { Flow } from './flow.ts';
import { type FollowedIds, lackOf } from './lack.ts';
import type { OperationLimits } from './limits.ts';
import { questionOf, type SharedPayload, type Sharing, sharedPayload, Watch } from './sharing.ts';

/** What a subscription's source yields: the root field's object. */
interface Delivery extends FollowedIds {
  readonly cursor?: string | null;
  readonly viewerId?: string | null;
  /** Of what is handed out: it is told also where a field fails for good, so that it can be acknowledged. */
  readonly deliveryId?: string | null;
  /**
   * What it tells of, the same object wherever it is told: deliveries of it that stand at the same cursor differ in
   * nothing but the viewer. null: it is no other's.
   */
  readonly subject?: object | null;
  /** Set on the last one. */
  readonly ended?: string | null;
}

interface Source extends AsyncIterator<unknown> {
  /** The next one, if it came together with the last: without waiting. */
  more?(): unknown;
}

/** What comes of an event: for all who ask the same (null: no such thing), and for the reader who made it. */
interface Begun {
  readonly shared: SharedPayload | Promise<SharedPayload | null> | null;
  readonly first: Promise<ExecutionResult> | null;
}
const OWN: Begun = { shared: null, first: null };

interface Waiting {
  readonly event: unknown;
  readonly begun: Begun | null;
}

/** `extensions.cursor`: where the client stands once it has this payload. */
export type Payload = ExecutionResult;

/** Between attempts at a payload whose reads failed, in milliseconds: longer than loaders are shared, never long. */
const RETRY = { first: 100, longest: 500 } as const;

/** Attempts at a payload that fails without the stores being away: as many as a hiccup may take, as it may be for good. */
const ATTEMPTS = 4;

/** A source that always has more must not keep everybody else from their turn. */
const BURST = 32;

const OVER: IteratorReturnResult<undefined> = { done: true, value: undefined };

export interface StreamDeps {
  readonly sharing: Sharing;
  readonly createContext: CreateContext;
  readonly mask: ErrorMask;
  readonly limits: Pick<OperationLimits, 'answer'>;
}

/**
 * Payloads in order, pulled one at a time; `return` frees everything at once, also while a payload is awaited.
 *
 * Executes a subscription's operation for each event of its source: with a fresh context, so that no loader and no
 * right outlives an event, and lets nothing out that the session has not cleared. A payload that is held back is not
 * lost: the last one (`ended`) then carries the position of the last that went out. What the stores cannot be asked
 * for at the moment is asked for again: an event goes out whole or not yet, never with its position and without itself.
 * Where it keeps failing unexpectedly the stream ends before it, with the error: whoever resumes asks for it again.
 *
 * One execution serves all who come to the same event with the same question, as long as it asked nothing of its caller
 * and viewer: `sharing.ts`. A class, as there is one for each of many thousand subscriptions.
 */
export class PayloadStream implements AsyncGenerator<Payload, undefined> {
  /** The reader's pace: nothing is pulled while it is behind. */
  flow: Flow | null = null;
  /** Told once that the stream is over, and whether its reader left before its end. */
  onOver: ((hasLeft: boolean) => void) | null = null;
  readonly #events: Source;
  /** What came together with the event that is told now. */
  readonly #waiting: Waiting[] = [];
  #isShared = false;
  readonly #args: ExecutionArgs;
  readonly #question: string;
  readonly #caller: KnownCaller;
  readonly #deps: StreamDeps;
  #isOver = false;
  #resolve: ((result: IteratorResult<Payload, undefined>) => void) | null = null;
  /** The position that the client knows, or the stream's start while it knows none. */
  #reached: string | null = null;
  #isBehind = false;
  #pulled = 0;
  #wake: (() => void) | null = null;

  constructor(source: AsyncIterable<unknown>, args: ExecutionArgs, caller: KnownCaller, deps: StreamDeps) {
    this.#events = source[Symbol.asyncIterator]();
    this.#args = args;
    this.#question = questionOf(args);
    this.#caller = caller;
    this.#deps = deps;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  next(): Promise<IteratorResult<Payload, undefined>> {
    return new Promise((resolve) => {
      if (this.#isOver) {
        resolve(OVER);
        return;
      }
      this.#resolve = resolve;
      this.#pull().then(resolve, (error: unknown) => {
        const { mask } = this.#deps;
        if (!this.#isOver)
          resolve({ done: false, value: { errors: [mask.error(error, this.#caller.requestId)] } });
        this.#finish(false);
        // It has failed already if it is the source that failed.
        Promise.resolve(this.#events.return?.()).catch(() => {});
      });
    });
  }

  async return(): Promise<IteratorResult<Payload, undefined>> {
    this.#finish(true);
    await this.#events.return?.();
    return OVER;
  }

  async throw(error: unknown): Promise<IteratorResult<Payload, undefined>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #pull(): Promise<IteratorResult<Payload, undefined>> {
    for (;;) {
      if (this.flow?.isStalled === true) await this.flow.ready();
      this.#pulled += 1;
      if (this.#pulled % BURST === 0) await setImmediate();
      if (this.#isOver) return OVER;
      const waiting = this.#waiting.shift() ?? (await this.#fetch());
      if (waiting === null) break;
      const payload = await this.#deliver(waiting);
      if (payload !== null) return { done: false, value: payload };
    }
    this.#finish(false);
    return OVER;
  }

  /**
   * The next event; null: there is none. Of those that came together with it the executions begin together, where what
   * came of the last one was everybody's: otherwise each reader would have as many of its own under way.
   */
  async #fetch(): Promise<Waiting | null> {
    const step = await this.#events.next();
    if (step.done === true) return null;
    const next = this.#wait(step.value);
    const { more } = this.#events;
    for (let event = more?.(); event !== undefined; event = more?.()) this.#waiting.push(this.#wait(event));
    return next;
  }

  #wait(event: unknown): Waiting {
    return { event, begun: this.#isShared ? this.#begin(event) : null };
  }

  /** The payload of an event; null where it may not go out. */
  async #deliver({ event, begun }: Waiting): Promise<Payload | null> {
    const { cursor, ended } = deliveryOf(event);
    const isLast = typeof ended === 'string';
    const isMoved = isLast && this.#isBehind && this.#reached !== null;
    const payload = isLast
      ? await this.#execute(isMoved ? at(this.#reached, event) : event, true)
      : await this.#payload(event, begun ?? this.#begin(event));
    if (payload !== null && (isLast || (await this.#isCleared()))) {
      if (typeof cursor === 'string' && !isMoved && !this.#isOver) {
        this.#reached = cursor;
        this.#isBehind = false;
        // It is known everywhere before the client has it, who may come back with it at once.
        await this.#caller.session?.issued(cursor);
      }
      return payload;
    }
    this.#reached ??= cursor ?? null;
    this.#isBehind = true;
    return null;
  }

  /** What serves all, where there is such a thing; else this reader's own. */
  async #payload(event: unknown, { shared, first }: Begun): Promise<Payload | null> {
    const payload = shared instanceof Promise ? await shared : shared;
    this.#isShared = payload !== null;
    return payload ?? this.#execute(event, false, first);
  }

  /** What has been or is being made of the event for whoever asks this of it; if nothing has, it is made for all. */
  #begin(event: unknown): Begun {
    const { subject, cursor, ended } = deliveryOf(event);
    if (!subject || typeof cursor !== 'string' || typeof ended === 'string') return OWN;
    const { sharing, limits } = this.#deps;
    const question = `${this.#question} ${cursor}`;
    const found = sharing.find(subject, question);
    if (found !== undefined) return { shared: found, first: null };
    const watch = new Watch();
    const first = this.#once(watch.event(event as object), watch.caller(asOfNow(this.#caller)));
    const shared = first.then(
      (result) => (watch.isPersonal ? null : sharedPayload(bounded(result, limits.answer), cursor)),
      () => null,
    );
    sharing.offer(subject, question, shared);
    return { shared, first };
  }

  /**
   * Null where the operation met the deletion of what it reads (the source then says that it ended), and where the stream
   * ends before all could be read. Throws what came again at each attempt.
   */
  async #execute(
    event: unknown,
    isLast: boolean,
    first: Promise<ExecutionResult> | null = null,
  ): Promise<Payload | null> {
    const { mask, limits } = this.#deps;
    const delivery = deliveryOf(event);
    const { cursor } = delivery;
    const hasPosition = typeof cursor === 'string';
    const isKept = hasPosition || typeof delivery.deliveryId === 'string';
    let pause: number = RETRY.first;
    for (let attempt = 1; ; attempt += 1) {
      const result = await (attempt === 1 && first !== null
        ? first
        : this.#once(event, asOfNow(this.#caller)));
      const lack = lackOf(result, delivery);
      if (lack?.kind === 'GONE') return null;
      const isTriedOut = attempt >= ATTEMPTS && lack?.kind !== 'AWAY';
      if (lack === null || isLast || (isTriedOut && !(lack.kind === 'BROKEN' && isKept))) {
        const masked = mask.result(bounded(result, limits.answer), this.#caller.requestId);
        return hasPosition ? { ...masked, extensions: { cursor } } : masked;
      }
      if (this.#isEnding()) return null;
      if (isTriedOut) throw lack.error;
      await this.#pause(pause);
      pause = Math.min(2 * pause, RETRY.longest);
    }
  }

  async #once(rootValue: unknown, caller: KnownCaller): Promise<ExecutionResult> {
    return execute({ ...this.#args, rootValue, contextValue: this.#deps.createContext(caller) });
  }

  #isEnding(): boolean {
    return this.#isOver || this.#caller.session?.ended.aborted === true;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #isCleared(): Promise<boolean> {
    const { session } = this.#caller;
    if (session === null) return true;
    try {
      await session.cleared();
      return true;
    } catch {
      return false;
    }
  }

  #finish(hasLeft: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#wake?.();
    this.#wake = null;
    this.#resolve?.(OVER);
    this.#resolve = null;
    this.onOver?.(hasLeft);
    this.onOver = null;
  }
}

const deliveryOf = (event: unknown): Delivery =>
  typeof event === 'object' && event !== null ? (event as Delivery) : {};

/** The same delivery, said to stand at `cursor`. */
const at = (cursor: string | null, event: unknown): unknown =>
  Object.assign(Object.create(Object.getPrototypeOf(event)), event, { cursor });
