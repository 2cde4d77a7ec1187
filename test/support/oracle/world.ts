import { expect } from 'vitest';
import { type Ask, answered } from './callers.ts';
import { type Command, PARTICIPANTS } from './commands.ts';
import {
  isMember,
  isRetracted,
  lastEvent,
  type OracleEvent,
  type OracleMessage,
  type OracleThread,
  type State,
  sees,
  stateNow,
  type Viewer,
} from './rules.ts';
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
interface Saved {
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

interface Opened {
  readonly created: boolean;
  readonly thread: { readonly id: string };
}

const POST = /* GraphQL */ `
  mutation ($input: PostMessageInput!) { postMessage(input: $input) { saved: message { id seq at cursor } } }`;
const RETRACT = /* GraphQL */ `
  mutation ($input: RetractMessageInput!) { retractMessage(input: $input) { saved: retraction { id seq at cursor } } }`;
const change = (field: string, input: string) => /* GraphQL */ `
  mutation ($input: ${input}!) { ${field}(input: $input) { saved: event { id seq at cursor } } }`;
const REMOVE = change('removeParticipant', 'ParticipantStateInput');
const READD = change('readdParticipant', 'ParticipantStateInput');
const LEAVE = change('leaveThread', 'LeaveThreadInput');
const OPEN = /* GraphQL */ `
  mutation ($input: OpenThreadInput!) { openThread(input: $input) { created thread { id } } }`;
const EXTEND = /* GraphQL */ `
  mutation ($input: ExtendThreadInput!) { extendThread(input: $input) { created thread { id } } }`;
const ACKNOWLEDGE = /* GraphQL */ `
  mutation ($input: AcknowledgeInput!) { acknowledge(input: $input) { thread { id } } }`;
const RECORD = /* GraphQL */ `
  query ($id: ID!) { thread(id: $id) { timeline { windows { after } events(first: 200) { nodes { id seq at cursor __typename } } } } }`;

/**
 * Plays a history against the product and keeps the oracle's record beside it: says beforehand what each command
 * must answer, and takes from the answer nothing but ids, times and cursors.
 */
export class World {
  readonly handles: readonly string[];
  readonly threads: OracleThread[] = [];
  readonly #starts = new Map<OracleThread, string>();
  readonly #options: WorldOptions;
  #keys = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.handles = Object.keys(options.ids);
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

  async play(commands: readonly Command[], between: () => void = () => {}): Promise<void> {
    if (this.threads.length === 0) await this.#open(this.handles.slice(0, 3));
    for (const command of commands) {
      await this.#perform(command);
      between();
    }
  }

  /** Brings everybody back and says a last word everywhere, so that whoever listens has something to wait for. */
  async endWithEverybody(): Promise<void> {
    for (const thread of this.threads) {
      for (const member of thread.members)
        if (stateNow(thread, member) === 'REMOVED') await this.#changeState(thread, member, 'ACTIVE');
      await this.#post(thread, thread.members[0] ?? '', {});
    }
  }

  async #perform(command: Command): Promise<void> {
    const { threads } = this;
    if (command.act === 'open') {
      const members = this.#chosen(command.members);
      if (members.length >= 2) await this.#open(members);
      return;
    }
    if (command.act === 'retract') return this.#retractSomething(command);
    const thread = pick(threads, command.thread) as OracleThread;
    const active = thread.members.filter((member) => stateNow(thread, member) === 'ACTIVE');
    const away = thread.members.filter((member) => stateNow(thread, member) === 'REMOVED');
    const among = (likely: readonly string[], index: number, everybody = this.handles): string =>
      pick(command.wild || likely.length === 0 ? everybody : likely, index) as string;
    switch (command.act) {
      case 'post': {
        const sender = among(active, command.by);
        return this.#post(thread, sender, command);
      }
      case 'remove':
        return this.#changeState(thread, among(active, command.member), 'REMOVED');
      case 'readd':
        return this.#changeState(thread, among(away, command.member), 'ACTIVE');
      case 'leave':
        return this.#leave(thread, among(active, command.by));
      case 'extend': {
        const by = command.by === null ? null : among(active, command.by);
        return this.#extend(thread, by, this.#chosen(command.added));
      }
      case 'acknowledge': {
        const by = among(thread.members, command.by);
        const reach =
          command.wild || !isMember(by, thread) ? thread.events.length : lastEvent(by, thread).seq;
        return this.#acknowledge(thread, by, command.position % (reach + 1));
      }
      default:
        return command satisfies never;
    }
  }

  #chosen(bits: number): string[] {
    return this.handles.slice(0, PARTICIPANTS).filter((_, index) => (bits & (1 << index)) !== 0);
  }

  /** The payload of a mutation that must answer with this code; null where that is an error. */
  async #run<Payload>(
    viewer: Viewer,
    query: string,
    input: Readonly<Record<string, unknown>>,
    code: string | null,
  ): Promise<Payload | null> {
    const answer = await this.#options.ask<Readonly<Record<string, Payload>>>(viewer, query, { input });
    expect(answer.errors?.[0]?.extensions?.code ?? null, JSON.stringify({ input, answer })).toBe(code);
    return code === null ? (Object.values(answered(answer))[0] ?? null) : null;
  }

  async #append<Event extends OracleEvent>(
    thread: OracleThread,
    viewer: Viewer,
    query: string,
    input: Record<string, unknown>,
    code: string | null,
    event: Unsaved<Event>,
  ): Promise<OracleEvent | null> {
    const payload = await this.#run<{ readonly saved: Saved }>(viewer, query, input, code);
    if (payload === null) return null;
    const added = this.#add(thread, event);
    const { seq, ...saved } = payload.saved;
    expect(seq).toBe(added.seq);
    Object.assign(added, saved);
    return added;
  }

  #add<Event extends OracleEvent>(thread: OracleThread, event: Unsaved<Event>): OracleEvent {
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
  async #learn(thread: OracleThread): Promise<void> {
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

  #find(members: readonly string[]): OracleThread | undefined {
    return this.threads.find(
      (thread) =>
        thread.members.length === members.length &&
        members.every((member) => thread.members.includes(member)),
    );
  }

  #new(members: readonly string[]): OracleThread {
    const thread: OracleThread = {
      id: '',
      members: [...members].sort(),
      events: [],
      acknowledged: new Map(),
    };
    this.#add(thread, { type: 'SYSTEM', kind: 'THREAD_OPENED', related: null });
    this.threads.push(thread);
    return thread;
  }

  async #open(members: readonly string[]): Promise<void> {
    const known = this.#find(members);
    const payload = await this.#run<Opened>(
      null,
      OPEN,
      { participantIds: members.map((member) => this.idOf(member)) },
      null,
    );
    if (payload === null) return;
    const { created, thread: opened } = payload;
    expect(created).toBe(known === undefined);
    if (known !== undefined) {
      expect(opened.id).toBe(known.id);
      return;
    }
    const thread = this.#new(members);
    thread.id = opened.id;
    await this.#learn(thread);
    await this.#options.onThread?.(thread);
  }

  async #extend(thread: OracleThread, by: Viewer, added: readonly string[]): Promise<void> {
    const set = [...new Set([...thread.members, ...added])];
    const isNew = set.length > thread.members.length;
    const code =
      added.length === 0
        ? 'BAD_USER_INPUT'
        : !isMember(by, thread)
          ? 'NOT_FOUND'
          : by !== null && stateNow(thread, by) === 'REMOVED'
            ? 'PARTICIPANT_NOT_ACTIVE'
            : isNew
              ? null
              : 'BAD_USER_INPUT';
    const payload = await this.#run<Opened>(
      null,
      EXTEND,
      {
        threadId: thread.id,
        participantIds: added.map((member) => this.idOf(member)),
        ...(by === null ? {} : { as: this.idOf(by) }),
      },
      code,
    );
    if (payload === null) return;
    const { created, thread: opened } = payload;
    const known = this.#find(set);
    expect(created).toBe(known === undefined);
    const later = known ?? this.#new(set);
    later.id = opened.id;
    if (known === undefined)
      for (const subject of thread.members)
        if (stateNow(thread, subject) === 'REMOVED')
          this.#add(later, { type: 'PARTICIPANT_STATE_CHANGED', subject, to: 'REMOVED', actor: by });
    const isLinked = thread.events.some(
      (event) => event.type === 'SYSTEM' && event.kind === 'CONTINUED_AS' && event.related === later,
    );
    if (!isLinked) {
      this.#add(thread, { type: 'SYSTEM', kind: 'CONTINUED_AS', related: later });
      this.#add(later, { type: 'SYSTEM', kind: 'CONTINUES', related: thread });
    }
    await this.#learn(later);
    await this.#learn(thread);
    if (known === undefined) await this.#options.onThread?.(later);
  }

  async #post(
    thread: OracleThread,
    sender: string,
    input: Partial<Extract<Command, { act: 'post' }>>,
  ): Promise<void> {
    const anywhere = this.events;
    const mention = chosen(this.handles, input.mention);
    const mentions = mention === undefined || !(input.wild || isMember(mention, thread)) ? [] : [mention];
    const source = chosen(
      input.wild ? anywhere : anywhere.filter((event) => sees(sender, event)),
      input.source,
    );
    const originating = chosen(anywhere, input.originating) ?? null;
    const end = isMember(sender, thread) ? lastEvent(sender, thread).seq : 0;
    const upTo =
      typeof input.acknowledge === 'number' ? input.acknowledge % (thread.events.length + 1) : null;
    const clientKey = input.repeat === undefined ? null : `key ${++this.#keys}`;
    const code = !isMember(sender, thread)
      ? 'NOT_FOUND'
      : stateNow(thread, sender) === 'REMOVED'
        ? 'PARTICIPANT_NOT_ACTIVE'
        : upTo !== null && upTo > end
          ? 'INVALID_CURSOR'
          : mentions.some((handle) => !isMember(handle, thread)) ||
              (source !== undefined && !sees(sender, source))
            ? 'NOT_FOUND'
            : null;
    const content = `${sender} says ${thread.events.length + 1} in ${this.threads.indexOf(thread)}`;
    const before = thread.events.findLast((event) => event.type === 'MESSAGE') as OracleMessage | undefined;
    const agentHops = this.#options.agents.has(sender) ? (before?.agentHops ?? 0) + 1 : 0;
    const variables = {
      threadId: thread.id,
      content,
      ...(clientKey === null ? {} : { idempotencyKey: clientKey }),
      ...(upTo === null ? {} : { acknowledgeUpTo: this.cursorAt(thread, upTo) }),
      mentionIds: mentions.map((handle) => this.idOf(handle)),
      sourceIds: source === undefined ? [] : [source.id],
      ...(originating === null ? {} : { context: { originatingMessageId: originating.id } }),
    };
    const sources = source === undefined ? [] : [source];
    const added = await this.#append<OracleMessage>(thread, sender, POST, variables, code, {
      type: 'MESSAGE',
      sender,
      content,
      clientKey,
      agentHops,
      mentions,
      sources,
      originating,
    });
    if (added === null) return;
    if (upTo !== null) this.#read(thread, sender, upTo);
    if (!input.repeat) return;
    const again = await this.#run<{ readonly saved: Saved }>(sender, POST, variables, null);
    expect(again?.saved.id).toBe(added.id);
  }

  async #retractSomething({ target, by, wild }: Extract<Command, { act: 'retract' }>): Promise<void> {
    const own = this.events.filter(
      (event) =>
        event.type === 'MESSAGE' &&
        stateNow(event.thread, event.sender) === 'ACTIVE' &&
        !isRetracted(null, event),
    );
    const event = pick(wild || own.length === 0 ? this.events : own, target);
    if (event === undefined) return;
    const actor = !wild && event.type === 'MESSAGE' ? event.sender : (pick(this.handles, by) ?? '');
    const code = !sees(actor, event)
      ? 'NOT_FOUND'
      : event.type !== 'MESSAGE'
        ? 'BAD_USER_INPUT'
        : event.sender !== actor
          ? 'FORBIDDEN'
          : stateNow(event.thread, actor) === 'REMOVED'
            ? 'PARTICIPANT_NOT_ACTIVE'
            : isRetracted(null, event)
              ? 'ALREADY_RETRACTED'
              : null;
    const reason = `reason ${event.thread.events.length + 1}`;
    const message = event as OracleMessage;
    await this.#append(event.thread, actor, RETRACT, { messageId: event.id, reason }, code, {
      type: 'RETRACTION',
      actor,
      message,
      reason,
    });
  }

  async #changeState(thread: OracleThread, subject: string, to: State): Promise<void> {
    const code = !isMember(subject, thread)
      ? 'NOT_FOUND'
      : stateNow(thread, subject) === to
        ? 'INVALID_TRANSITION'
        : null;
    const input = { threadId: thread.id, participantId: this.idOf(subject) };
    await this.#append(thread, null, to === 'REMOVED' ? REMOVE : READD, input, code, {
      type: 'PARTICIPANT_STATE_CHANGED',
      subject,
      to,
      actor: null,
    });
  }

  async #leave(thread: OracleThread, subject: string): Promise<void> {
    const code = !isMember(subject, thread)
      ? 'NOT_FOUND'
      : stateNow(thread, subject) === 'REMOVED'
        ? 'INVALID_TRANSITION'
        : null;
    await this.#append(thread, subject, LEAVE, { threadId: thread.id }, code, {
      type: 'PARTICIPANT_STATE_CHANGED',
      subject,
      to: 'REMOVED',
      actor: subject,
    });
  }

  async #acknowledge(thread: OracleThread, by: string, seq: number): Promise<void> {
    const code = !isMember(by, thread)
      ? 'NOT_FOUND'
      : seq > lastEvent(by, thread).seq
        ? 'INVALID_CURSOR'
        : null;
    await this.#run(by, ACKNOWLEDGE, { threadId: thread.id, upTo: this.cursorAt(thread, seq) }, code);
    if (code === null) this.#read(thread, by, seq);
  }

  #read(thread: OracleThread, member: string, seq: number): void {
    thread.acknowledged.set(member, Math.max(seq, thread.acknowledged.get(member) ?? 0));
  }
}

const pick = <T>(items: readonly T[], index: number): T | undefined => items[index % items.length];
const chosen = <T>(items: readonly T[], index: number | null | undefined): T | undefined =>
  typeof index === 'number' ? pick(items, index) : undefined;
