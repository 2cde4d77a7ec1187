import { expect } from 'vitest';
import { openRawSocket, type RawSocket } from '../../support/rawSocket.ts';
import { type Heard, subscribe } from '../../support/subscribe.ts';
import { until } from '../../support/until.ts';
import {
  type Model,
  type ModelRun,
  type ModelToken,
  padOf,
  runOf,
  type Snapshot,
  threadOf,
} from './model.ts';
import { marksOf, type World } from './world.ts';

interface Told {
  readonly run: { readonly run: Snapshot; readonly activity: unknown; readonly ended: string | null };
}

const FOLLOW = `subscription ($id: ID!) {
  run(runId: $id) { run { status result error toolCalls } activity ended } }`;
const TALK = `subscription ($id: ID!) { timeline(threadId: $id) { ended event {
  ... on Message { content } ... on SystemEvent { kind } ... on ParticipantStateChanged { transition } } } }`;
const PAD = `subscription ($id: ID) { scratchpad(scratchpadId: $id) { ended change {
  ... on EntryAppended { entry { content } } ... on ContentUpdated { content { text } } } } }`;

/** One who follows a run from its beginning, and what of the model's history it has been told. */
export class RunFollower {
  readonly run: string;
  readonly #heard: Heard<Told>;
  #taken = 0;
  #known = 0;

  constructor(world: World, run: ModelRun, viewer: string | null, turn: number) {
    this.run = run.name;
    this.#heard = subscribe<Told>(world.server(turn), world.secretOf(viewer), FOLLOW, {
      id: world.idOf(run.name),
    });
  }

  #states(): readonly Told['run'][] {
    return this.#heard.payloads.map(({ run }) => run).filter(({ activity }) => activity === null);
  }

  /**
   * Waits until it was told the present state, and compares what came since the last time. `isLoose`: of several states
   * in a moment the last is enough.
   */
  async compare(models: readonly Model[], isLoose: boolean): Promise<void> {
    const histories = models.map((model) => runOf(model, this.run).history.slice(this.#known));
    const fits = (told: readonly Snapshot[]): boolean =>
      histories.some((history) =>
        isLoose ? isSubsequence(told, history) : JSON.stringify(told) === JSON.stringify(history),
      );
    const now = (): Snapshot[] =>
      this.#states()
        .slice(this.#taken)
        .map(({ run: { status, result, error, toolCalls } }) => ({ status, result, error, toolCalls }));
    await until(() => fits(now())).catch(() =>
      expect({ run: this.run, told: now() }).toEqual({ run: this.run, told: histories[0] }),
    );
    this.#taken = this.#states().length;
    const [model] = models;
    if (model === undefined) return;
    const run = runOf(model, this.run);
    this.#known = run.history.length;
    const isOver = run.status !== 'QUEUED' && run.status !== 'IN_PROGRESS' && run.status !== 'INPUT_REQUIRED';
    expect(this.#states().at(-1)?.ended ?? null).toBe(isOver ? 'RUN_CLOSED' : null);
  }

  async close(): Promise<void> {
    await this.#heard[Symbol.asyncDispose]();
  }
}

/** Ends with the last of `all`, and leaves out only what came before it. */
const isSubsequence = (told: readonly Snapshot[], all: readonly Snapshot[]): boolean => {
  let at = 0;
  for (const one of told) {
    const text = JSON.stringify(one);
    while (at < all.length && JSON.stringify(all[at]) !== text) at += 1;
    if (at++ >= all.length) return false;
  }
  return JSON.stringify(told.at(-1)) === JSON.stringify(all.at(-1));
};

interface Payload {
  readonly data?: {
    readonly run?: Told['run'];
    readonly timeline?: { readonly event: object | null };
    readonly scratchpad?: { readonly change: { readonly entry?: { readonly content: string } } | null };
  } | null;
}

/** A socket of a run's token, which follows the run, its conversation and its scratchpad. */
export class TokenSocket {
  readonly token: string;
  readonly #socket: RawSocket;
  readonly #events: number;
  readonly #entries: number;
  #closedAt = 0;

  private constructor(token: string, socket: RawSocket, events: number, entries: number) {
    this.token = token;
    this.#socket = socket;
    this.#events = events;
    this.#entries = entries;
    void socket.closed.then(() => {
      this.#closedAt = performance.now();
    });
  }

  static async open(world: World, model: Model, token: ModelToken, turn: number): Promise<TokenSocket> {
    const socket = await openRawSocket(world.server(turn).socketUrl);
    await socket.init({ authorization: `Bearer ${world.secretOf(token.name)}` });
    const run = runOf(model, token.run);
    const subscriptions: [string, string, string][] = [
      ['run', FOLLOW, run.name],
      ['talk', TALK, run.conversation],
      ...(run.pad === null ? [] : [['pad', PAD, `pad ${run.pad}`] as [string, string, string]]),
    ];
    for (const [id, query, name] of subscriptions) {
      socket.subscribe(id, query, { id: world.idOf(name) });
      const first = await socket.nextOf(id);
      expect(first.type, JSON.stringify(first)).toBe('next');
    }
    return new TokenSocket(
      token.name,
      socket,
      visibleEvents(model, run).length,
      visibleEntries(model, run).length,
    );
  }

  #payloads(id: string): Payload[] {
    return this.#socket.messages.flatMap((message) =>
      message.id === id && message.type === 'next' ? [message.payload as Payload] : [],
    );
  }

  /** What it may have been told at any time. */
  readonly allowed = new Set<string>();
  /** What it was told besides. */
  get leaked(): string[] {
    return marksOf(JSON.stringify(this.#socket.messages)).filter((mark) => !this.allowed.has(mark));
  }

  /** Waits until it has been told what there is to be told, by one of these models. */
  async compare(models: readonly Model[]): Promise<void> {
    const told = () => ({
      events: this.#payloads('talk').filter(({ data }) => data?.timeline?.event).length,
      entries: this.#payloads('pad').flatMap(({ data }) => data?.scratchpad?.change?.entry?.content ?? []),
    });
    const wanted = models.map((model) => {
      const run = runOf(model, this.token in model.tokens ? (model.tokens[this.token]?.run ?? '') : '');
      return {
        events: visibleEvents(model, run).length - this.#events,
        entries: visibleEntries(model, run).slice(this.#entries),
      };
    });
    await until(() => wanted.some((one) => JSON.stringify(one) === JSON.stringify(told()))).catch(() =>
      expect({ token: this.token, ...told() }).toEqual({ token: this.token, ...wanted[0] }),
    );
  }

  /** Waits until its socket is closed: how and when, and why its follower of the run was told that it ends. */
  async end(): Promise<{ readonly ended: string | null; readonly code: number; readonly at: number }> {
    await until(() => this.#closedAt > 0);
    const { code } = await this.#socket.closed;
    const ended = this.#payloads('run').at(-1)?.data?.run?.ended ?? null;
    return { code, ended, at: this.#closedAt };
  }

  close(): Promise<void> {
    return this.#socket.close();
  }
}

const visibleEvents = (model: Model, { conversation, worker }: ModelRun) =>
  threadOf(model, conversation).events.filter(({ seenBy }) => seenBy.includes(worker));

/** Of a scratchpad that is gone nothing more comes. */
const visibleEntries = (model: Model, run: ModelRun): string[] =>
  (run.firstPad === null ? [] : padOf(model, run.firstPad).appended)
    .filter(({ seenBy }) => run.padViewer === null || seenBy.includes(run.padViewer))
    .map(({ text }) => text);
