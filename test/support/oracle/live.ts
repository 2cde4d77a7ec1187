import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { type Resumable, resumable, type StreamResult, steady } from '../../../src/client/index.ts';
import { countPairs, type Pairs } from './pairs.ts';
import { type OracleEvent, type OracleEventType, type OracleThread, type Viewer, visible } from './rules.ts';
import { LASTING_EVENT, lasting } from './shown.ts';

export type Transport = 'ws' | 'sse';
export const TRANSPORTS = ['ws', 'sse'] as const;

export interface Place {
  readonly url: string;
  readonly socketUrl: string;
}

/** A stock client with a credential; it comes back at once when it is cut, and gives `place()` of that moment. */
export const createFollowing = (
  transport: Transport,
  {
    place,
    token,
  }: {
    readonly place: () => Place;
    readonly token: () => string;
  },
): Resumable => {
  const quick = { firstWaitMs: 5, longestWaitMs: 200 };
  return transport === 'ws'
    ? resumable(
        createWsClient({
          ...steady,
          url: () => place().socketUrl,
          webSocketImpl: WebSocket,
          connectionParams: () => ({ authorization: `Bearer ${token()}` }),
        }),
        quick,
      )
    : resumable(
        createSseClient({
          ...steady,
          url: () => place().url,
          headers: () => ({ authorization: `Bearer ${token()}` }),
        }),
        quick,
      );
};

const FOLLOW = /* GraphQL */ `
  subscription ($threadId: ID!, $after: Cursor, $types: [TimelineEventType!], $as: ID) {
    timeline(threadId: $threadId, after: $after, types: $types, as: $as) { cursor ended event { ...Event } }
  } ${LASTING_EVENT}`;

const PATIENCE_MS = 1_000 * Number(process.env.ORACLE_PATIENCE ?? 20);

/** The same, asking of events nothing but which they are. */
const FOLLOW_BRIEFLY = /* GraphQL */ `
  subscription ($threadId: ID!, $after: Cursor, $types: [TimelineEventType!], $as: ID) {
    timeline(threadId: $threadId, after: $after, types: $types, as: $as) { cursor ended event { id seq } }
  }`;

interface Delivery {
  readonly cursor: string;
  readonly ended: string | null;
  readonly event: { readonly id: string } | null;
}

export interface FollowOptions {
  readonly viewer: Viewer;
  readonly thread: OracleThread;
  /** The position to start after, and its cursor; null: the present end, wherever that is. */
  readonly after: { readonly seq: number; readonly cursor: string } | null;
  readonly types?: readonly OracleEventType[] | undefined;
  readonly isBrief?: boolean;
  /** For an owner's credential that looks as this participant. */
  readonly as?: string | undefined;
  /** Between the server and what is written down: for proving the checker. */
  readonly through?: ((deliveries: readonly Delivery[]) => readonly Delivery[]) | undefined;
}

/** One subscription that writes down what it is given. */
export class Following {
  readonly options: FollowOptions;
  readonly #name: string;
  readonly #received: Delivery[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #stop: () => void;
  #problem: unknown;
  #isOver = false;
  #start = 0;

  constructor(client: Resumable, options: FollowOptions, name = '') {
    this.options = options;
    this.#name = name;
    const { thread, after, types, as, isBrief = false } = options;
    const variables = {
      threadId: thread.id,
      after: after?.cursor ?? null,
      types: types ?? null,
      as: as ?? null,
    };
    this.#stop = client.subscribe(
      { query: isBrief ? FOLLOW_BRIEFLY : FOLLOW, variables },
      {
        next: (result) => this.#take(result),
        error: (problem) => this.#end(problem),
        complete: () => this.#end(undefined),
      },
    );
  }

  /** The first payload of all says where the stream starts. */
  async begun(): Promise<void> {
    await this.#until(() => this.#received.length > 0);
    const { after, thread, viewer } = this.options;
    const start = this.#received[0]?.cursor;
    const position = after ?? visible(viewer, thread).at(-1);
    expect(this.#problem).toBeUndefined();
    expect(start).toBe(position?.cursor);
    this.#start = position?.seq ?? 0;
  }

  /** Ended by the server with this code before anything was delivered. */
  async refused(code: string): Promise<void> {
    await this.#until(() => this.#isOver);
    expect(this.#received.filter(({ event }) => event !== null)).toEqual([]);
    expect(JSON.stringify(this.#problem)).toContain(`"${code}"`);
  }

  get expected(): readonly OracleEvent[] {
    const { viewer, thread, types } = this.options;
    return visible(viewer, thread).filter(
      ({ seq, type }) => seq > this.#start && (types === undefined || types.includes(type)),
    );
  }

  /** Waits for the last event that is due, then for nothing more, and compares all that came. */
  async compare(): Promise<void> {
    const { expected } = this;
    const last = expected.at(-1);
    if (last !== undefined)
      await this.#until(() => this.#received.some(({ event }) => event?.id === last.id));
    this.#compareWith(expected);
    expect({ problem: this.#problem, isOver: this.#isOver }).toEqual({ problem: undefined, isOver: false });
  }

  /** Compares what came until it was stopped: the beginning of what was due, whole and in order. */
  compareSoFar(): void {
    this.#compareWith(this.expected.slice(0, this.#events().length));
  }

  async received(count: number): Promise<void> {
    await this.#until(() => this.#events().length >= count);
  }

  #events(): readonly Delivery[] {
    return this.#received.filter(({ event }) => event !== null);
  }

  #compareWith(expected: readonly OracleEvent[]): void {
    const { through = (deliveries: readonly Delivery[]) => deliveries, viewer, isBrief } = this.options;
    const events = through(this.#events());
    const who = `${this.#name} as ${viewer ?? 'the owner'} after ${this.#start}`;
    const got = events.map(({ event }) => event?.id ?? '');
    const due = expected.map(({ id }) => id);
    // First in short what is wrong, then every field.
    expect(
      {
        lost: expected.filter(({ id }) => !got.includes(id)).map(({ seq }) => seq),
        leaked: events.filter(({ event }) => !due.includes(event?.id ?? '')),
        doubled: events.filter(({ event }, index) => got.indexOf(event?.id ?? '') < index),
      },
      who,
    ).toEqual({ lost: [], leaked: [], doubled: [] });
    expect(events, who).toEqual(
      expected.map((event) => ({
        cursor: event.cursor,
        ended: null,
        event: isBrief === true ? { id: event.id, seq: event.seq } : lasting(viewer, event),
      })),
    );
  }

  stop(): void {
    this.#stop();
  }

  #take({ data, errors }: StreamResult): void {
    const delivery = (data as { timeline?: Delivery } | null | undefined)?.timeline;
    if (delivery) this.#received.push(delivery);
    if (errors) this.#problem = errors;
    this.#wake();
  }

  #end(problem: unknown): void {
    this.#problem ??= problem;
    this.#isOver = true;
    this.#wake();
  }

  #wake(): void {
    for (const look of [...this.#waiting]) look();
  }

  /** Gives up when nothing has come for longer than anything takes, so that what is missing is shown instead of waited for. */
  #until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout;
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve();
      };
      const look = (): void => {
        clearTimeout(timer);
        timer = setTimeout(done, PATIENCE_MS);
        if (condition() || this.#isOver) done();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** Compares subscriptions when their threads have said their last word. */
export const compareFollowings = async (
  followings: readonly Following[],
  surface: string,
  pairs: Pairs,
): Promise<void> => {
  for (const following of followings) {
    await following.compare();
    countPairs(pairs, surface, following.options.thread.events.length);
  }
};
