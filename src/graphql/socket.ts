import type { ExecutionArgs, ExecutionResult, GraphQLError } from 'graphql';
import type { WebSocket } from 'ws';
import type { Authentication, Session } from '../auth/session.ts';
import type { Connections } from '../http/connections.ts';
import { presentedInFields } from '../http/credential.ts';
import { newRequestId } from '../http/requestId.ts';
import { DomainError, rateLimited, unauthenticated, unavailable } from '../shared/errors.ts';
import type { Accounts } from './accounts.ts';
import type { Caller } from './caller.ts';
import type { ErrorMask } from './errors.ts';
import { createFlow, type Flow, type FlowLimits } from './flow.ts';
import { isRefused, isStream, type Operation, type OperationParams, type Operations } from './operations.ts';
import type { PayloadStream } from './stream.ts';

/** Close codes on which a client of ours comes back. */
export const CLOSE = {
  restart: 1012,
  tryAgain: 1013,
  credentialEnded: 4403,
  badMessage: 4400,
  tooBig: 1009,
} as const;

export interface SocketLimits {
  readonly subscriptions: number;
  /** Queries and mutations that have not answered yet. */
  readonly operations: number;
  readonly flow: FlowLimits;
  /** How long the last payloads of an ended credential may take, in milliseconds. */
  readonly farewell: number;
}

export interface SocketDeps {
  readonly operations: Operations;
  readonly mask: ErrorMask;
  readonly accounts: Accounts;
  readonly authentication: Authentication;
  readonly connections: Connections;
  readonly limits: SocketLimits;
  readonly isDraining: () => boolean;
}

interface Task {
  readonly operation: Operation;
  readonly caller: Caller;
  readonly controller: AbortController;
}

/** One client's socket: its credential, its operations, its pace. The protocol's messages are graphql-ws' business. */
export interface ClientSocket {
  /** Null: come in. Else why not, and the socket is closing. */
  connect(fields: Readonly<Record<string, unknown>> | undefined): Promise<boolean>;
  /** The operation's execution arguments, or the errors to answer on its id. */
  begin(id: string, params: OperationParams): ExecutionArgs | readonly GraphQLError[];
  /** The client has ended an operation, perhaps before it was set up. */
  cancel(id: string): void;
  send(data: string): Promise<void>;
  /** Closes with a code and frees everything at once, though the client may take its time to read what is on its way. */
  shut(code: number, reason: string): void;
  /** Frees everything. Called on `shut` and when the connection is gone. */
  dispose(): void;
  /** Told when nothing runs on the socket any more. */
  onIdle: (() => void) | null;
  readonly isIdle: boolean;
  readonly isClosing: boolean;
  readonly flow: Flow;
}

export const createClientSocket = (ws: WebSocket, deps: SocketDeps, onDispose: () => void): ClientSocket => {
  const { operations, mask, accounts, authentication, connections, limits, isDraining } = deps;
  const tasks = new Map<string, Task>();
  let subscriptions = 0;
  let session: Session | null = null;
  let release = (): void => {};
  let farewell: NodeJS.Timeout | undefined;
  let isClosing = false;
  let isDisposed = false;

  const flow = createFlow({
    unsent: () => ws.bufferedAmount,
    onSlow: () => socket.shut(CLOSE.tryAgain, 'slow reader'),
    limits: limits.flow,
  });

  const finish = (id: string, task: Task): void => {
    if (tasks.get(id) !== task) return;
    tasks.delete(id);
    if (task.operation.kind === 'subscription') subscriptions -= 1;
    // After the protocol has said that the operation is complete.
    if (tasks.size === 0) setImmediate(onQuiet);
  };
  const onQuiet = (): void => {
    if (tasks.size > 0 || isDisposed) return;
    if (session?.ended.aborted === true) socket.shut(CLOSE.credentialEnded, CREDENTIAL_ENDED);
    socket.onIdle?.();
  };
  const onEnded = (): void => {
    if (tasks.size === 0) socket.shut(CLOSE.credentialEnded, CREDENTIAL_ENDED);
    else farewell = setTimeout(() => socket.shut(CLOSE.credentialEnded, CREDENTIAL_ENDED), limits.farewell);
  };

  const refusalOf = (kind: Operation['kind'] | null): DomainError | null => {
    if (isDraining()) return unavailable('The server is shutting down. Connect again.');
    if (session === null || session.ended.aborted) return unauthenticated(CREDENTIAL_ENDED);
    if (kind === 'subscription' && subscriptions >= limits.subscriptions)
      return rateLimited(`A socket carries at most ${limits.subscriptions} subscriptions.`, {
        limit: limits.subscriptions,
      });
    if (kind !== null && kind !== 'subscription' && tasks.size - subscriptions >= limits.operations)
      return rateLimited(`A socket carries at most ${limits.operations} operations at once.`, {
        limit: limits.operations,
      });
    return null;
  };

  const paced = (id: string, task: Task, stream: PayloadStream, ended: () => void): PayloadStream => {
    const end = (): void => {
      ended();
      finish(id, task);
    };
    return {
      async next() {
        await flow.ready();
        const step = await stream.next();
        if (step.done === true) end();
        return step;
      },
      async return(value) {
        task.controller.abort();
        end();
        return stream.return(value);
      },
      async throw(error) {
        task.controller.abort();
        end();
        return stream.throw(error);
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  };

  const run = async (id: string, task: Task): Promise<ExecutionResult | PayloadStream> => {
    try {
      await clearedInTime(task.caller.session);
    } catch (error) {
      finish(id, task);
      return { errors: [mask.error(error, task.caller.requestId)] };
    }
    const { result, ended } = await accounts.run(task.operation, task.caller);
    if (isStream(result)) return paced(id, task, result, ended);
    finish(id, task);
    return result;
  };

  const socket: ClientSocket = {
    onIdle: null,
    flow,
    get isIdle() {
      return tasks.size === 0;
    },
    get isClosing() {
      return isClosing;
    },
    async connect(fields) {
      try {
        session = await authentication.openSession(presentedInFields(fields));
      } catch (error) {
        const { message, extensions } = mask.error(error, newRequestId());
        const isFinal = error instanceof DomainError && !RETRYABLE.has(error.code);
        socket.shut(
          isFinal ? CLOSE.credentialEnded : CLOSE.tryAgain,
          isFinal ? message : String(extensions.code),
        );
        return false;
      }
      const claim = isDisposed ? null : connections.claim(session.actor);
      if (claim === null) {
        session.close();
        socket.shut(CLOSE.tryAgain, 'too many connections');
        return false;
      }
      release = claim;
      session.ended.addEventListener('abort', onEnded, { once: true });
      if (session.ended.aborted) onEnded();
      return !isClosing;
    },
    begin(id, params) {
      const requestId = newRequestId();
      const early = refusalOf(null);
      if (early !== null || session === null) return [mask.error(early, requestId)];
      const controller = new AbortController();
      const caller: Caller = {
        actor: session.actor,
        session,
        requestId,
        transport: 'ws',
        signal: controller.signal,
        lastEventId: null,
      };
      const operation = operations.begin(params, caller);
      const refused = isRefused(operation) ? null : refusalOf(operation.kind);
      if (isRefused(operation) || refused !== null) {
        const errors = isRefused(operation) ? operation.errors : [mask.error(refused, requestId)];
        accounts.refused(caller, { errors });
        return errors;
      }
      const task: Task = { operation, caller, controller };
      tasks.set(id, task);
      if (operation.kind === 'subscription') subscriptions += 1;
      const { schema, document, operationName } = operation.args;
      const contextValue: TaskContext = { run: () => run(id, task) };
      return { schema, document, operationName: operationName ?? null, contextValue };
    },
    cancel(id) {
      tasks.get(id)?.controller.abort();
    },
    send(data) {
      const bytes = Buffer.byteLength(data);
      return flow.send(bytes, (flushed) => ws.send(data, flushed));
    },
    shut(code, reason) {
      if (isClosing) return;
      isClosing = true;
      ws.close(code, fitting(reason));
      socket.dispose();
    },
    dispose() {
      if (isDisposed) return;
      isDisposed = true;
      clearTimeout(farewell);
      flow.close();
      for (const { controller } of tasks.values()) controller.abort();
      session?.ended.removeEventListener('abort', onEnded);
      session?.close();
      release();
      onDispose();
    },
  };
  return socket;
};

/** What graphql-ws carries from `begin` to its execution: the context of resolvers is made behind `run`. */
interface TaskContext {
  run(): Promise<ExecutionResult | PayloadStream>;
}

export const runTask = ({ contextValue }: ExecutionArgs): Promise<ExecutionResult | PayloadStream> =>
  (contextValue as TaskContext).run();

/** Milliseconds that an operation waits until it is known that its credential has not ended. */
const CLEARED_WITHIN = 1_500;

/** An open socket is no proof: what this process knows of endings must be fresh for each operation. */
const clearedInTime = async (session: Session | null): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(unavailable('The credential cannot be checked now. Try again.')),
      CLEARED_WITHIN,
    );
  });
  try {
    await Promise.race([session?.cleared(), late]);
  } finally {
    clearTimeout(timer);
  }
};

const CREDENTIAL_ENDED = 'The credential has ended. Connect again with a fresh one.';
const RETRYABLE = new Set(['UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL']);

/** A close reason has at most 123 bytes. */
const fitting = (reason: string): string =>
  Buffer.byteLength(reason) <= 123 ? reason : `${reason.slice(0, 30)}…`;
