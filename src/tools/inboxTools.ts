import type { ControlNotice, MessageDelivery } from '../inbox/handOut.ts';
import { refusePerson } from '../inbox/holding.ts';
import { parseTimelineCursor, timelineCursor } from '../shared/cursors.ts';
import { notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import type { MessageEvent, TimelineEvent } from '../timeline/events.ts';
import { isVisible } from '../timeline/look.ts';
import { readEventsAt } from '../timeline/reads.ts';
import { jsonText, said, ToolFailure, type ToolOutput } from './answers.ts';
import { type Hand, messageInHand } from './hand.ts';
import { lookOf, type ShownMessage, showMessages } from './messageTools.ts';
import type { Workbench } from './padTools.ts';
import { bytesOfShown, listBytes, TEXT_BYTES } from './pieces.ts';

/** A model cannot renew a lease while it thinks: it has so many seconds. */
const LEASE_SECONDS = 600;
const PEEKED = 20;

type Taking = Pick<Workbench, 'services' | 'loaders' | 'signal'> & {
  readonly at: Pick<Workbench['at'], 'actor' | 'as' | 'ownerId' | 'participantId'> & {
    /** Null: of whichever thread. */
    readonly threadId: string | null;
  };
  /** As what the message is delivered that this call takes, however often it is made; null: it is made once. */
  readonly deliveryId: string | null;
};

/** What a pull answered, and of which thread it shows a message. */
export interface Taken extends ToolOutput {
  readonly threadId: string | null;
}

const messagesOf = (events: readonly (TimelineEvent | null)[]): MessageEvent[] =>
  events.filter((event) => event?.type === 'MESSAGE');

/** The oldest that wait, or those behind a cursor, without taking any. */
export const peekPending = async (
  bench: Workbench,
  { cursor }: { readonly cursor?: string | undefined },
): Promise<ToolOutput> => {
  const { services, loaders, at } = bench;
  services.inbox.requireInboxOf(at.actor, { threadId: at.threadId, as: at.as });
  const participant = await loaders.participant.load(at.participantId);
  if (participant !== null) refusePerson(participant);
  const look = await lookOf(bench);
  const after = cursor === undefined ? undefined : parseTimelineCursor(cursor, at.threadId, 'cursor');
  const seqs = await services.inbox.pending(look, PEEKED, after);
  const found = await readEventsAt(
    services.database,
    at.ownerId,
    seqs.map((seq) => ({ threadId: at.threadId, seq })),
    TEXT_BYTES,
  );
  const waiting = messagesOf(found);
  const messages = await showMessages(bench, waiting, look.horizon, listBytes());
  const last = waiting[messages.length - 1];
  const hasMore = seqs.length === PEEKED || messages.length < seqs.length;
  return said(
    jsonText({
      count: look.member?.state === 'ACTIVE' ? look.unreadCount : 0,
      messages,
      next_cursor: hasMore && last !== undefined ? timelineCursor(last.threadId, last.seq, last.id) : null,
    }),
  );
};

/** What a pull gives, as the model reads it: notices at once, and while a message of the thread is in hand that again. */
export const takeNext = async (
  bench: Taking,
  { wait_seconds: waitSeconds = 0 }: { readonly wait_seconds?: number | undefined },
): Promise<Taken> => {
  const { services, at, signal } = bench;
  const before = await takenBefore(bench);
  if (before !== null) return before;
  const held = await messageInHand(services, at);
  const { given } = await services.inbox.take(
    at.actor,
    {
      as: at.as,
      threadId: at.threadId,
      max: 1,
      waitSeconds: held === null ? waitSeconds : 0,
      deliveryId: bench.deliveryId ?? undefined,
    },
    signal,
  );
  const notices = noticesOf(given);
  const told = notices.length === 0 ? {} : { notices };
  const taken = given.find((one) => one.channel === 'MESSAGE');
  if (taken === undefined) {
    const meanwhile = await takenBefore(bench);
    if (meanwhile !== null) return meanwhile;
    if (held === null) return answer(null, { message: null, ...told, hint: 'Nothing waits for you.' });
    return answer(held.threadId, await shownHand(bench, held, { hint: HELD, ...told }));
  }
  const { deliveryId, threadId, attempt, pendingCount } = taken;
  await keep(bench, deliveryId);
  const beside = {
    with: await othersIn(bench, threadId),
    attempt,
    still_pending: pendingCount - 1,
    ...told,
  };
  return answer(threadId, { message: await shownAlone(bench, taken.events, beside), ...beside });
};

const HELD = 'You hold this message already: finish it before you take the next.';

const answer = (threadId: string | null, value: object): Taken => ({ ...said(jsonText(value)), threadId });

export const nextMessage = async (
  bench: Workbench,
  given: { readonly wait_seconds?: number | undefined },
): Promise<ToolOutput> => {
  const { begun, idempotencyKey } = bench;
  const deliveryId = idempotencyKey === undefined ? null : begun.deliveryId;
  const { output, isError } = await takeNext({ ...bench, deliveryId }, given);
  return { output, isError };
};

/** What another attempt of this call has taken, which is still in hand. */
const takenBefore = async (bench: Taking): Promise<Taken | null> => {
  const { services, at, deliveryId } = bench;
  if (deliveryId === null) return null;
  const hand = await messageInHand(services, { ...at, deliveryId });
  if (hand === null) return null;
  await keep(bench, deliveryId);
  return answer(hand.threadId, await shownHand(bench, hand));
};

const keep = async ({ services, at }: Taking, deliveryId: string): Promise<void> => {
  services.hands.moved(at.participantId);
  await services.inbox.extendLease(at.actor, { deliveryId, as: at.as, seconds: LEASE_SECONDS });
};

/** Bytes of an answer for what notices say beside their words: so much is left for the message. */
const NOTICE_TEXTS = TEXT_BYTES / 2;

/** All of them; the texts of as many as there is room for. */
const noticesOf = (given: readonly (ControlNotice | MessageDelivery)[]): string[] => {
  let room = NOTICE_TEXTS;
  return given.flatMap((one) => {
    if (one.channel !== 'CONTROL') return [];
    const full = one.text === null ? one.kind : `${one.kind}: ${one.text}`;
    room -= bytesOfShown(full);
    return [room < 0 ? one.kind : full];
  });
};

/** The message, or what fits of it. */
const shownAlone = async (
  bench: Taking,
  events: readonly (TimelineEvent | null)[],
  beside: object,
): Promise<ShownMessage | undefined> => {
  const [message] = await showMessages(
    bench,
    messagesOf(events).slice(0, 1),
    Number.POSITIVE_INFINITY,
    listBytes(beside),
  );
  return message;
};

/** What was taken and is not finished. */
const shownHand = async (bench: Taking, { threadId, seqs }: Hand, beside: object = {}): Promise<object> => {
  const { services, at } = bench;
  const events = await readEventsAt(
    services.database,
    at.ownerId,
    seqs.map((seq) => ({ threadId, seq })),
  );
  const all = { with: await othersIn(bench, threadId), ...beside };
  return { message: await shownAlone(bench, events, all), ...all };
};

/** Handles of the others in the conversation: how a model tells one from another. */
const othersIn = async ({ loaders, at }: Taking, threadId: string): Promise<string[]> => {
  const look = await loaders.look.load({ threadId, viewerId: at.participantId });
  if (look === null) return [];
  const members = (await loaders.members.load(look)).filter((one) => one.participantId !== at.participantId);
  const people = await Promise.all(
    members.slice(0, 32).map((one) => loaders.participant.load(one.participantId)),
  );
  return people.flatMap((one) => (one === null ? [] : [one.handle]));
};

/** The message in hand, or all up to one that was shown. */
export const acknowledgeMessage = async (
  bench: Workbench,
  { message_id: messageId }: { readonly message_id?: string | undefined },
): Promise<ToolOutput> => {
  const {
    services,
    at,
    begun: { hand },
  } = bench;
  if (messageId === undefined) {
    if (hand === null) throw new ToolFailure('You hold no message of this conversation.');
    await services.timeline.acknowledge(at.actor, {
      threadId: at.threadId,
      as: at.as,
      deliveryId: hand.deliveryId,
    });
    services.hands.moved(at.participantId);
    return said('Done with that message.');
  }
  const event = isId('Event', messageId) ? await bench.loaders.event.load(messageId) : null;
  if (event === null || !isVisible(await lookOf(bench), event)) throw notFound('Message');
  const upTo = timelineCursor(event.threadId, event.seq, event.id);
  const deliveryId = hand?.seqs.includes(event.seq) === true ? hand.deliveryId : undefined;
  await services.timeline.acknowledge(at.actor, { threadId: at.threadId, as: at.as, upTo, deliveryId });
  services.hands.moved(at.participantId);
  return said('Done with everything up to that message.');
};
