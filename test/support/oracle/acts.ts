import { expect } from 'vitest';
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
  visible,
} from './rules.ts';
import type { Saved, World } from './world.ts';

// What participants and the owner do, and what each must answer: its code, or what it adds to the record.

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
export const open = async (world: World, members: readonly string[]): Promise<void> => {
  const known = world.find(members);
  const payload = await world.run<Opened>(
    null,
    OPEN,
    { participantIds: members.map((member) => world.idOf(member)) },
    null,
  );
  if (payload === null) return;
  const { created, thread: opened } = payload;
  expect(created).toBe(known === undefined);
  if (known !== undefined) {
    expect(opened.id).toBe(known.id);
    return;
  }
  const thread = world.new(members);
  thread.id = opened.id;
  await world.learn(thread);
  await world.opened(thread);
};

export const extend = async (
  world: World,
  thread: OracleThread,
  by: Viewer,
  added: readonly string[],
): Promise<void> => {
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
  const payload = await world.run<Opened>(
    null,
    EXTEND,
    {
      threadId: thread.id,
      participantIds: added.map((member) => world.idOf(member)),
      ...(by === null ? {} : { as: world.idOf(by) }),
    },
    code,
  );
  if (payload === null) return;
  const { created, thread: opened } = payload;
  const known = world.find(set);
  expect(created).toBe(known === undefined);
  const later = known ?? world.new(set);
  later.id = opened.id;
  if (known === undefined)
    for (const subject of thread.members)
      if (stateNow(thread, subject) === 'REMOVED')
        world.add(later, { type: 'PARTICIPANT_STATE_CHANGED', subject, to: 'REMOVED', actor: by });
  const isLinked = thread.events.some(
    (event) => event.type === 'SYSTEM' && event.kind === 'CONTINUED_AS' && event.related === later,
  );
  if (!isLinked) {
    world.add(thread, { type: 'SYSTEM', kind: 'CONTINUED_AS', related: later });
    world.add(later, { type: 'SYSTEM', kind: 'CONTINUES', related: thread });
  }
  await world.learn(later);
  await world.learn(thread);
  if (known === undefined) await world.opened(later);
};

export interface Post {
  readonly mentions?: readonly string[];
  readonly source?: OracleEvent | undefined;
  readonly originating?: OracleEvent | null;
  /** Positions of the thread. */
  readonly acknowledge?: number | null;
  readonly onlyIfNothingAfter?: number | null;
  readonly hasKey?: boolean;
  /** The same again with the same key. */
  readonly isRepeated?: boolean;
}

export const post = async (
  world: World,
  thread: OracleThread,
  sender: string,
  {
    mentions = [],
    source,
    originating = null,
    acknowledge: upTo = null,
    onlyIfNothingAfter = null,
    hasKey = false,
    isRepeated = false,
  }: Post = {},
): Promise<void> => {
  const end = isMember(sender, thread) ? lastEvent(sender, thread).seq : 0;
  const unseen =
    onlyIfNothingAfter === null ? [] : visible(sender, thread).filter(({ seq }) => seq > onlyIfNothingAfter);
  const code = !isMember(sender, thread)
    ? 'NOT_FOUND'
    : stateNow(thread, sender) === 'REMOVED'
      ? 'PARTICIPANT_NOT_ACTIVE'
      : Math.max(upTo ?? 0, onlyIfNothingAfter ?? 0) > end
        ? 'INVALID_CURSOR'
        : unseen.length > 0
          ? 'STALE_VIEW'
          : mentions.some((handle) => !isMember(handle, thread)) ||
              (source !== undefined && !sees(sender, source))
            ? 'NOT_FOUND'
            : null;
  const clientKey = hasKey ? `key ${++world.keys}` : null;
  const content = `${sender} says ${thread.events.length + 1} in ${world.threads.indexOf(thread)}`;
  const before = thread.events.findLast((event) => event.type === 'MESSAGE');
  const agentHops = world.agents.has(sender) ? (before?.agentHops ?? 0) + 1 : 0;
  const input = {
    threadId: thread.id,
    content,
    ...(clientKey === null ? {} : { idempotencyKey: clientKey }),
    ...(upTo === null ? {} : { acknowledgeUpTo: world.cursorAt(thread, upTo) }),
    ...(onlyIfNothingAfter === null ? {} : { ifNothingAfter: world.cursorAt(thread, onlyIfNothingAfter) }),
    mentionIds: mentions.map((handle) => world.idOf(handle)),
    sourceIds: source === undefined ? [] : [source.id],
    ...(originating === null ? {} : { context: { originatingMessageId: originating.id } }),
  };
  const sources = source === undefined ? [] : [source];
  const facts =
    code === 'STALE_VIEW'
      ? {
          unseen: unseen.length,
          unseenIds: unseen.slice(0, 20).map(({ id }) => id),
          latestCursor: unseen.at(-1)?.cursor,
        }
      : {};
  const added = await world.append<OracleMessage>(
    thread,
    sender,
    POST,
    input,
    code,
    { type: 'MESSAGE', sender, content, clientKey, agentHops, mentions, sources, originating },
    facts,
  );
  if (added === null) return;
  if (upTo !== null) read(thread, sender, upTo);
  if (!isRepeated) return;
  const again = await world.run<{ readonly saved: Saved }>(sender, POST, input, null);
  expect(again?.saved.id).toBe(added.id);
};

export const retract = async (world: World, event: OracleEvent, actor: string): Promise<void> => {
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
  await world.append(event.thread, actor, RETRACT, { messageId: event.id, reason }, code, {
    type: 'RETRACTION',
    actor,
    message,
    reason,
  });
};

export const changeState = async (
  world: World,
  thread: OracleThread,
  subject: string,
  to: State,
): Promise<void> => {
  const code = !isMember(subject, thread)
    ? 'NOT_FOUND'
    : stateNow(thread, subject) === to
      ? 'INVALID_TRANSITION'
      : null;
  const input = { threadId: thread.id, participantId: world.idOf(subject) };
  await world.append(thread, null, to === 'REMOVED' ? REMOVE : READD, input, code, {
    type: 'PARTICIPANT_STATE_CHANGED',
    subject,
    to,
    actor: null,
  });
};

export const leave = async (world: World, thread: OracleThread, subject: string): Promise<void> => {
  const code = !isMember(subject, thread)
    ? 'NOT_FOUND'
    : stateNow(thread, subject) === 'REMOVED'
      ? 'INVALID_TRANSITION'
      : null;
  await world.append(thread, subject, LEAVE, { threadId: thread.id }, code, {
    type: 'PARTICIPANT_STATE_CHANGED',
    subject,
    to: 'REMOVED',
    actor: subject,
  });
};

export const acknowledge = async (
  world: World,
  thread: OracleThread,
  by: string,
  seq: number,
): Promise<void> => {
  const code = !isMember(by, thread)
    ? 'NOT_FOUND'
    : seq > lastEvent(by, thread).seq
      ? 'INVALID_CURSOR'
      : null;
  await world.run(by, ACKNOWLEDGE, { threadId: thread.id, upTo: world.cursorAt(thread, seq) }, code);
  if (code === null) read(thread, by, seq);
};

const read = (thread: OracleThread, member: string, seq: number): void => {
  thread.acknowledged.set(member, Math.max(seq, thread.acknowledged.get(member) ?? 0));
};
