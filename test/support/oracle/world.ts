import { expect } from 'vitest';
import { type Ask, answered } from './callers.ts';
import type { OracleEvent, OracleThread, Viewer } from './rules.ts';
import { TYPENAME } from './shown.ts';

export interface WorldOptions {
  /** Handles, and the ids that they have at the server. */
  readonly ids: Readonly<Record<string, string>>;
  readonly agents: ReadonlySet<string>;
  readonly ask: Ask;
  /** Called when a thread was opened and holds only what its opening wrote. */
  readonly onThread?: (thread: OracleThread) => Promise<void>;
}

type Unsaved<Event extends OracleEvent> = Event extends OracleEvent
  ? Omit<Event, 'thread' | 'seq' | 'id' | 'at' | 'cursor'>
  : never;

/** What the server makes up for an event. */
export interface Saved {
  readonly id: string;
  readonly seq: number;
  readonly at: string;
  readonly cursor: string;
}

interface RecordAnswer {
  readonly thread: {
    readonly timeline: {
      readonly windows: readonly { readonly after: string }[];
      readonly events: { readonly nodes: readonly (Saved & { readonly __typename: string })[] };
    };
  };
}

const RECORD = /* GraphQL */ `
  query ($id: ID!) { thread(id: $id) { timeline { windows { after } events(first: 200) { nodes { id seq at cursor __typename } } } } }`;

/**
 * A tenant at the server and the oracle's record of it beside it: what acts add to the record is said beforehand,
 * and nothing is taken from the answers but ids, times and cursors.
 */
export class World {
  readonly handles: readonly string[];
  readonly threads: OracleThread[] = [];
  readonly #starts = new Map<OracleThread, string>();
  readonly agents: ReadonlySet<string>;
  readonly #options: WorldOptions;
  /** The last idempotency key that was used. */
  keys = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.handles = Object.keys(options.ids);
    this.agents = options.agents;
  }

  get viewers(): readonly Viewer[] {
    return [...this.handles, null];
  }

  get events(): readonly OracleEvent[] {
    return this.threads.flatMap(({ events }) => events);
  }

  idOf(handle: string): string {
    const id = this.#options.ids[handle];
    if (id === undefined) throw new Error(`Nobody is called ${handle}.`);
    return id;
  }

  /** The cursor of a position; 0: the start. */
  cursorAt(thread: OracleThread, seq: number): string {
    const cursor = seq === 0 ? this.#starts.get(thread) : thread.events[seq - 1]?.cursor;
    if (cursor === undefined) throw new Error(`The thread has no position ${seq}.`);
    return cursor;
  }

  /** A new thread is told of once its opening is known. */
  async opened(thread: OracleThread): Promise<void> {
    await this.#options.onThread?.(thread);
  }

  /** The payload of a mutation that must answer with this code and facts; null where that is an error. */
  async run<Payload>(
    viewer: Viewer,
    query: string,
    input: Readonly<Record<string, unknown>>,
    code: string | null,
    facts: Readonly<Record<string, unknown>> = {},
  ): Promise<Payload | null> {
    const answer = await this.#options.ask<Readonly<Record<string, Payload>>>(viewer, query, { input });
    const { code: answeredCode = null, ...answeredFacts } = answer.errors?.[0]?.extensions ?? {};
    expect(answeredCode, JSON.stringify({ input, answer })).toBe(code);
    expect(answeredFacts).toMatchObject(facts);
    return code === null ? (Object.values(answered(answer))[0] ?? null) : null;
  }

  /** An act that appends one event, or is refused with a code and leaves nothing. */
  async append<Event extends OracleEvent>(
    thread: OracleThread,
    viewer: Viewer,
    query: string,
    input: Record<string, unknown>,
    code: string | null,
    event: Unsaved<Event>,
    facts: Readonly<Record<string, unknown>> = {},
  ): Promise<OracleEvent | null> {
    const payload = await this.run<{ readonly saved: Saved }>(viewer, query, input, code, facts);
    if (payload === null) return null;
    const added = this.add(thread, event);
    const { seq, ...saved } = payload.saved;
    expect(seq).toBe(added.seq);
    Object.assign(added, saved);
    return added;
  }

  /** To the record, with what the server makes up still to be learned. */
  add<Event extends OracleEvent>(thread: OracleThread, event: Unsaved<Event>): OracleEvent {
    const added = {
      ...event,
      thread,
      seq: thread.events.length + 1,
      id: '',
      at: '',
      cursor: '',
    } as OracleEvent;
    thread.events.push(added);
    return added;
  }

  /** Takes ids, times and cursors of what a command wrote without telling. */
  async learn(thread: OracleThread): Promise<void> {
    const answer = await this.#options.ask<RecordAnswer>(null, RECORD, { id: thread.id });
    const { timeline } = answered(answer).thread;
    const { nodes } = timeline.events;
    expect(nodes.map(({ seq, __typename }) => [seq, __typename])).toEqual(
      thread.events.map(({ seq, type }) => [seq, TYPENAME[type]]),
    );
    for (const [index, { id, at, cursor }] of nodes.entries())
      Object.assign(thread.events[index] ?? {}, { id, at, cursor });
    this.#starts.set(thread, timeline.windows[0]?.after ?? '');
  }

  /** The thread of this set. */
  find(members: readonly string[]): OracleThread | undefined {
    return this.threads.find(
      (thread) =>
        thread.members.length === members.length &&
        members.every((member) => thread.members.includes(member)),
    );
  }

  new(members: readonly string[]): OracleThread {
    const thread: OracleThread = {
      id: '',
      members: [...members].sort(),
      events: [],
      acknowledged: new Map(),
    };
    this.add(thread, { type: 'SYSTEM', kind: 'THREAD_OPENED', related: null });
    this.threads.push(thread);
    return thread;
  }
}
