import type { OperationKind } from './operations.ts';

/** What is known of an operation while it runs: little, as there may be very many. */
export interface Task {
  readonly id: string;
  /** Null for one that was refused and only has to be told. */
  readonly kind: OperationKind | null;
  readonly controller: AbortController;
  isRunning: boolean;
  /** It is over, or its client has ended it: the id is free to the client, but not yet to graphql-ws. */
  isLeaving: boolean;
  /** The next operation under the same id, for when graphql-ws has let go of this one. */
  next: string | null;
}

/** The operations of one socket, by the ids that graphql-ws holds. A class, as there are many thousands. */
export class Tasks {
  subscriptions = 0;
  /** Queries and mutations. */
  operations = 0;
  readonly #byId = new Map<string, Task>();
  #begun: Task | null = null;
  #leaving = 0;

  begin(id: string, kind: OperationKind | null, controller: AbortController): Task {
    const task: Task = { id, kind, controller, isRunning: kind !== null, isLeaving: false, next: null };
    this.#byId.get(id)?.controller.abort();
    this.#byId.set(id, task);
    this.#begun = task;
    if (kind === null) this.#leave(task);
    else this.#count(kind, 1);
    return task;
  }

  /** What was begun since it was last asked. */
  takeBegun(): Task | null {
    const task = this.#begun;
    this.#begun = null;
    return task;
  }

  /** It is over. False where that was known. */
  finish(task: Task): boolean {
    if (!task.isRunning) return false;
    task.isRunning = false;
    if (task.kind !== null) this.#count(task.kind, -1);
    this.#leave(task);
    return true;
  }

  /** graphql-ws has let go of it, and it is over. */
  forget(task: Task): void {
    this.#leaving -= 1;
    if (this.#byId.get(task.id) === task) this.#byId.delete(task.id);
  }

  /** Where the client ends an operation: graphql-ws hears of it only once that is set up. */
  cancel(message: string): void {
    if (!message.includes('"complete"')) return;
    const { type, id } = headingOf(message);
    const task = type === 'complete' ? this.#find(id) : undefined;
    if (task === undefined) return;
    this.#leave(task);
    task.controller.abort();
  }

  /**
   * `FREE`: the message is for graphql-ws. `KEPT`: it waits for an operation that goes, or ended the one that waited.
   * `IN_USE`: another waits under its id already.
   */
  keep(message: string): 'FREE' | 'KEPT' | 'IN_USE' {
    if (this.#leaving === 0) return 'FREE';
    const { type, id } = headingOf(message);
    const task = this.#find(id);
    if (task === undefined || !task.isLeaving) return 'FREE';
    if (type === 'complete' && task.next !== null) {
      task.next = null;
      return 'KEPT';
    }
    if (type !== 'subscribe') return 'FREE';
    if (task.next !== null) return 'IN_USE';
    task.next = message;
    return 'KEPT';
  }

  abort(): void {
    for (const task of this.#byId.values()) {
      task.controller.abort();
      task.next = null;
    }
  }

  #find(id: unknown): Task | undefined {
    return typeof id === 'string' ? this.#byId.get(id) : undefined;
  }

  #count(kind: OperationKind, by: 1 | -1): void {
    if (kind === 'subscription') this.subscriptions += by;
    else this.operations += by;
  }

  #leave(task: Task): void {
    if (task.isLeaving) return;
    task.isLeaving = true;
    this.#leaving += 1;
  }
}

/** Of a message, what tells which operation it is about. */
interface Heading {
  readonly type?: unknown;
  readonly id?: unknown;
}

const headingOf = (message: string): Heading => {
  try {
    const value: unknown = JSON.parse(message);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
};
