import { setMaxListeners } from 'node:events';
import type { Duplex } from 'node:stream';
import type { ExecutionArgs, ExecutionResult, GraphQLError } from 'graphql';
import type { WebSocket } from 'ws';
import type { Authentication, Session } from '../auth/session.ts';
import type { Connections, Release } from '../http/connections.ts';
import { presentedInFields } from '../http/credential.ts';
import { newRequestId } from '../http/requestId.ts';
import { DomainError, rateLimited, unauthenticated, unavailable } from '../shared/errors.ts';
import type { Accounts } from './accounts.ts';
import type { Caller } from './caller.ts';
import { clearedInTime } from './clearance.ts';
import { CLOSE, closeCode, closeReason } from './closeCodes.ts';
import type { ErrorMask } from './errors.ts';
import { type Fed, Flow, type FlowLimits } from './flow.ts';
import type { Gathering } from './gathering.ts';
import {
  isRefused,
  isStream,
  type Operation,
  type OperationKind,
  type OperationParams,
  type Operations,
} from './operations.ts';
import { Pumped } from './pumped.ts';
import { textOf } from './sharing.ts';
import type { Payload } from './stream.ts';
import { type Task, Tasks } from './tasks.ts';

export interface SocketLimits {
  readonly subscriptions: number;
  /** Queries and mutations that have not answered yet. */
  readonly operations: number;
  readonly flow: FlowLimits;
  /** How long the last payloads of an ended credential may take, in milliseconds. */
  readonly farewell: number;
}

export interface SocketDeps {
  readonly gathering: Gathering;
  readonly operations: Operations;
  readonly mask: ErrorMask;
  readonly accounts: Accounts;
  readonly authentication: Authentication;
  readonly connections: Connections;
  readonly limits: SocketLimits;
  readonly isDraining: () => boolean;
}

/** What graphql-ws carries from `begin` to its execution: the context of resolvers is made behind `run`. */
interface TaskContext {
  run: (() => Promise<ExecutionResult | Pumped>) | null;
}

/**
 * One client's socket: its credential, its operations, its pace. The protocol's messages are graphql-ws' business,
 * which takes it for the socket it sends on. A class, as there are many thousands.
 */
export class ClientSocket implements Fed {
  readonly protocol: string;
  readonly flow: Flow;
  /** A sign of life has come since the last ping. */
  isAlive = true;
  /** Told when nothing runs on the socket any more. */
  onIdle: (() => void) | null = null;
  /** Told once, when everything on the socket was freed. */
  onDispose: (() => void) | null = null;
  readonly #ws: WebSocket;
  readonly #stream: Duplex;
  readonly #deps: SocketDeps;
  /** What graphql-ws does with a message. */
  #receive: (message: string) => Promise<void> = () => Promise.resolve();
  readonly #tasks = new Tasks();
  #session: Session | null = null;
  #release: Release | null = null;
  #farewell: NodeJS.Timeout | null = null;
  #isClosing = false;
  #isDisposed = false;

  /** `stream`: what `ws` writes to. */
  constructor(ws: WebSocket, stream: Duplex, deps: SocketDeps) {
    this.#ws = ws;
    this.#stream = stream;
    this.#deps = deps;
    this.protocol = ws.protocol;
    this.flow = new Flow(this, deps.limits.flow);
  }

  get unsent(): number {
    return this.#ws.bufferedAmount;
  }

  get isIdle(): boolean {
    return this.#tasks.subscriptions === 0 && this.#tasks.operations === 0;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  onSlow(): void {
    this.close(CLOSE.tryAgain, 'slow reader');
  }

  onMessage(receive: (message: string) => Promise<void>): void {
    this.#receive = receive;
  }

  /**
   * Takes a message of the client's. Rejects where it is none of the protocol's.
   *
   * graphql-ws forgets an id as soon as its client ends the operation, but speaks of it, and forgets it once more, when
   * that operation has stopped. One that comes under the same id in between would be taken for it: it waits.
   */
  async take(message: string): Promise<void> {
    for (let next: string | null = message; next !== null; ) next = await this.#pass(next);
  }

  /** Resolves when graphql-ws has done what the message asks for, with the message that waited for that. */
  async #pass(message: string): Promise<string | null> {
    if (this.#isClosing) return null;
    const keeping = this.#tasks.keep(message);
    if (keeping === 'IN_USE') this.close(CLOSE.badMessage, 'This id is in use.');
    if (keeping !== 'FREE') return null;
    this.#tasks.cancel(message);
    // `begin` is called within.
    const received = this.#receive(message);
    const task = this.#tasks.takeBegun();
    try {
      await received;
    } finally {
      if (task !== null) {
        this.#finish(task);
        this.#tasks.forget(task);
      }
    }
    return task?.next ?? null;
  }

  send(data: string): Promise<void> {
    return this.flow.send(Buffer.byteLength(data), (flushed) => {
      this.#deps.gathering.before(this.#stream);
      this.#ws.send(data, flushed);
    });
  }

  /** Says who it is. False: the socket is closing, for a reason that its close code tells. */
  async connect(fields: Readonly<Record<string, unknown>> | undefined): Promise<boolean> {
    const { authentication, connections, mask } = this.#deps;
    let session: Session;
    try {
      session = await authentication.openSession(presentedInFields(fields));
    } catch (error) {
      const { message, extensions } = mask.error(error, newRequestId());
      if (error instanceof DomainError && !RETRYABLE.has(error.code))
        this.close(CLOSE.credentialEnded, message);
      else this.close(CLOSE.tryAgain, String(extensions.code));
      return false;
    }
    const release = this.#isDisposed ? null : connections.claim(session.actor);
    if (release === null) {
      session.close();
      this.close(CLOSE.tryAgain, 'too many connections');
      return false;
    }
    this.#session = session;
    this.#release = release;
    // Each stream on the socket listens too.
    setMaxListeners(0, session.ended);
    session.ended.addEventListener('abort', this, { once: true });
    if (session.ended.aborted) this.handleEvent();
    return !this.#isClosing;
  }

  /** The credential has ended. */
  handleEvent(): void {
    if (this.isIdle) this.close(CLOSE.credentialEnded, CREDENTIAL_ENDED);
    else
      this.#farewell = setTimeout(
        () => this.close(CLOSE.credentialEnded, CREDENTIAL_ENDED),
        this.#deps.limits.farewell,
      );
  }

  /** The operation's execution arguments, or the errors to answer on its id. */
  begin(id: string, params: OperationParams): ExecutionArgs | readonly GraphQLError[] {
    const { operations, accounts, mask } = this.#deps;
    const requestId = newRequestId();
    const session = this.#session;
    const controller = new AbortController();
    const early = this.#refusal(session);
    if (early !== null || session === null) {
      this.#tasks.begin(id, null, controller);
      return [mask.error(early, requestId)];
    }
    const { actor } = session;
    const { signal } = controller;
    const caller: Caller = { actor, session, requestId, transport: 'ws', signal, lastEventId: null };
    const operation = operations.begin(params, caller);
    const refused = isRefused(operation) ? null : this.#excess(operation.kind);
    if (isRefused(operation) || refused !== null) {
      const errors = isRefused(operation) ? operation.errors : [mask.error(refused, requestId)];
      this.#tasks.begin(id, null, controller);
      accounts.refused(caller, { errors });
      return errors;
    }
    const task = this.#tasks.begin(id, operation.kind, controller);
    const { schema, document, operationName } = operation.args;
    const contextValue: TaskContext = { run: () => this.#run(task, operation, caller) };
    return { schema, document, operationName: operationName ?? null, contextValue };
  }

  /** Closes with a code and frees everything at once, though the client may take its time to read what is on its way. */
  close(code = 1000, reason = ''): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#ws.close(closeCode(code), closeReason(reason));
    this.dispose();
  }

  /** Frees everything. To be called when the connection is gone. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.#farewell !== null) clearTimeout(this.#farewell);
    this.flow.close();
    this.#tasks.abort();
    this.#session?.ended.removeEventListener('abort', this);
    this.#session?.close();
    this.#release?.();
    this.onDispose?.();
  }

  async #run(task: Task, operation: Operation, caller: Caller): Promise<ExecutionResult | Pumped> {
    const { accounts, mask } = this.#deps;
    try {
      // A stream asks before each payload, and waits as long as it takes.
      if (operation.kind !== 'subscription') await clearedInTime(caller.session);
    } catch (error) {
      this.#finish(task);
      return { errors: [mask.error(error, caller.requestId)] };
    }
    const result = await accounts.run(operation, caller, (hasLeft) => {
      if (hasLeft) task.controller.abort();
      this.#finish(task);
    });
    if (isStream(result)) {
      result.flow = this.flow;
      return new Pumped(result, (payload) => this.#sendNext(task.id, payload));
    }
    this.#finish(task);
    return result;
  }

  #sendNext(id: string, payload: Payload): Promise<void> {
    return this.send(`{"id":${JSON.stringify(id)},"type":"next","payload":${textOf(payload)}}`);
  }

  #finish(task: Task): void {
    if (!this.#tasks.finish(task)) return;
    // After the protocol has said that the operation is complete.
    if (this.isIdle) setImmediate(() => this.#onQuiet());
  }

  #onQuiet(): void {
    if (!this.isIdle || this.#isDisposed) return;
    if (this.#session?.ended.aborted === true) this.close(CLOSE.credentialEnded, CREDENTIAL_ENDED);
    this.onIdle?.();
  }

  #refusal(session: Session | null): DomainError | null {
    if (this.#deps.isDraining()) return unavailable('The server is shutting down. Connect again.');
    return session === null || session.ended.aborted ? unauthenticated(CREDENTIAL_ENDED) : null;
  }

  #excess(kind: OperationKind): DomainError | null {
    const { limits } = this.#deps;
    const isSubscription = kind === 'subscription';
    const limit = isSubscription ? limits.subscriptions : limits.operations;
    if ((isSubscription ? this.#tasks.subscriptions : this.#tasks.operations) < limit) return null;
    const what = isSubscription ? 'subscriptions' : 'operations at once';
    return rateLimited(`A socket carries at most ${limit} ${what}.`, { limit });
  }
}

/** Runs what was begun, once; what lives as long as the subscription keeps nothing of it. */
export const runTask = ({ contextValue }: ExecutionArgs): Promise<ExecutionResult | Pumped> => {
  const context = contextValue as TaskContext;
  const { run } = context;
  context.run = null;
  if (run === null) throw new Error('An operation runs once.');
  return run();
};

const CREDENTIAL_ENDED = 'The credential has ended. Connect again with a fresh one.';
const RETRYABLE = new Set(['UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL']);
