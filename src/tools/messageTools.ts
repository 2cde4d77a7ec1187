import { timelineCursor } from '../shared/cursors.ts';
import { DomainError, invalidCursor, notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import type { MessageEvent } from '../timeline/events.ts';
import { isVisible, type Look } from '../timeline/look.ts';
import { readPage } from '../timeline/reads.ts';
import { jsonText, said, ToolFailure, type ToolOutput } from './answers.ts';
import type { Workbench } from './padTools.ts';
import {
  bytesOfShown,
  countFitting,
  LEAST_PIECE,
  listBytes,
  readRestCursor,
  restCursor,
  shownPiece,
  TEXT_BYTES,
} from './pieces.ts';

const USUAL_MESSAGES = 20;

/**
 * A message as a model reads it. Where all of it is too long for one answer, what is there is a piece, and `…_rest` the cursor
 * with which `read_messages` reads on; `data` is a piece of its JSON as a text then.
 */
export interface ShownMessage {
  readonly id: string;
  readonly from: string;
  readonly at: string;
  readonly content?: string;
  readonly content_rest?: string;
  readonly data?: unknown;
  readonly data_rest?: string;
  readonly retracted?: true;
}

export const lookOf = async ({ loaders, at }: Pick<Workbench, 'loaders' | 'at'>): Promise<Look> => {
  const look = await loaders.look.load({ threadId: at.threadId, viewerId: at.participantId });
  if (look === null) throw notFound('Thread');
  return look;
};

/**
 * Messages with their senders' handles, as many as fit into `maxBytes` of an answer, in the order given; of the first a
 * piece where not even that fits.
 */
export const showMessages = async (
  { loaders }: Pick<Workbench, 'loaders'>,
  messages: readonly MessageEvent[],
  horizon: number,
  maxBytes: number,
): Promise<ShownMessage[]> => {
  const senders = await Promise.all(messages.map(({ senderId }) => loaders.participant.load(senderId)));
  const named = messages.map((message, index) => namedOf(message, senders[index]?.handle, horizon));
  const whole = messages.map(({ content, data }, index) => ({
    ...named[index],
    content,
    ...(data === null ? {} : { data }),
  }));
  const count = countFitting(whole, maxBytes);
  const [message] = messages;
  const [name] = named;
  if (count > 0 || message === undefined || name === undefined)
    return whole.slice(0, count) as ShownMessage[];
  return [{ ...name, ...firstPieces(message, maxBytes - bytesOfShown(name)) }];
};

type Named = Pick<ShownMessage, 'id' | 'from' | 'at' | 'retracted'>;
type Texts = Omit<ShownMessage, keyof Named>;

const namedOf = ({ id, at, retractionSeq }: MessageEvent, handle = 'unknown', horizon: number): Named => ({
  id,
  from: handle,
  at,
  ...(typeof retractionSeq === 'number' && retractionSeq <= horizon ? { retracted: true } : {}),
});

/** What fits, the content first. */
const firstPieces = (message: MessageEvent, maxBytes: number): Texts => {
  const shown = pieceFrom('content', message, 0, maxBytes - CURSOR_OF_DATA);
  if (message.data === null) return shown;
  const room = maxBytes - bytesOfShown(shown);
  if (bytesOfShown({ data: message.data }) <= room) return { ...shown, data: message.data };
  return shown.content_rest === undefined && room > 4 * LEAST_PIECE + CURSOR_OF_DATA
    ? { ...shown, ...pieceFrom('data', message, 0, room) }
    : { ...shown, data_rest: restCursor('data', message.id, 0) };
};

/** Bytes. */
const CURSOR_OF_DATA = 256;

/** Of the content, or of the JSON of the data. Errors: INVALID_CURSOR. */
const pieceFrom = (
  field: 'content' | 'data',
  { id, content, data }: MessageEvent,
  from: number,
  maxBytes: number,
): Texts => {
  if (field === 'data' && data === null) throw invalidCursor('cursor');
  const { text, next } = shownPiece(field === 'content' ? content : JSON.stringify(data), from, maxBytes);
  return { [field]: text, ...(next === null ? {} : { [`${field}_rest`]: restCursor(field, id, next) }) };
};

/** A page of what was said, ascending, from the newest on or what comes before a cursor; or the rest of a long message. */
export const messagePage = async (
  bench: Pick<Workbench, 'services' | 'loaders' | 'at'>,
  { limit, cursor }: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
): Promise<{ readonly messages: ShownMessage[]; readonly next_cursor: string | null }> => {
  const look = await lookOf(bench);
  const rest = cursor === undefined ? null : await restOfMessage(bench, look, cursor);
  if (rest !== null) return { messages: [rest], next_cursor: null };
  const page = await readPage(bench.services.database, look, {
    last: limit ?? USUAL_MESSAGES,
    before: cursor,
    types: ['MESSAGE'],
    maxBytes: TEXT_BYTES,
  });
  const newest = page.events.toReversed().filter((event) => event.type === 'MESSAGE');
  const messages = await showMessages(bench, newest, look.horizon, listBytes());
  const oldest = newest[messages.length - 1];
  const hasMore = page.hasPreviousPage || messages.length < newest.length;
  return {
    messages: messages.toReversed(),
    next_cursor:
      hasMore && oldest !== undefined ? timelineCursor(oldest.threadId, oldest.seq, oldest.id) : null,
  };
};

const restOfMessage = async (
  bench: Pick<Workbench, 'loaders'>,
  look: Look,
  cursor: string,
): Promise<ShownMessage | null> => {
  const ofContent = readRestCursor('content', cursor);
  const rest = ofContent ?? readRestCursor('data', cursor);
  if (rest === null) return null;
  const message = isId('Event', rest.id) ? await bench.loaders.event.load(rest.id) : null;
  if (message?.type !== 'MESSAGE' || !isVisible(look, message)) throw invalidCursor('cursor');
  const sender = await bench.loaders.participant.load(message.senderId);
  const named = namedOf(message, sender?.handle, look.horizon);
  const field = ofContent === null ? 'data' : 'content';
  return { ...named, ...pieceFrom(field, message, rest.from, listBytes(named)) };
};

export const readMessages = async (
  bench: Workbench,
  ask: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
): Promise<ToolOutput> => said(jsonText(await messagePage(bench, ask)));

/** Handles of members as their ids. */
const mentionedIds = async (bench: Workbench, handles: readonly string[]): Promise<string[]> => {
  if (handles.length === 0) return [];
  const members = await bench.loaders.members.load(await lookOf(bench));
  const people = await Promise.all(
    members.map(({ participantId }) => bench.loaders.participant.load(participantId)),
  );
  const byHandle = new Map(people.map((one) => [one?.handle, one?.id]));
  return handles.map((handle) => {
    const id = byHandle.get(handle.replace(/^@/, '').toLowerCase());
    if (id !== undefined) return id;
    const known = people.map((one) => one?.handle).join(', ');
    throw new ToolFailure(`Nobody here has the handle "${handle}". In this conversation are: ${known}.`);
  });
};

export const sendMessage = async (
  bench: Workbench,
  {
    content,
    mentions = [],
    acknowledge = false,
  }: {
    readonly content: string;
    readonly mentions?: readonly string[] | undefined;
    readonly acknowledge?: boolean | undefined;
  },
): Promise<ToolOutput> => {
  if (content === '') throw new ToolFailure('content is empty. Send a text.');
  const { services, at, begun, idempotencyKey } = bench;
  const hand = acknowledge ? begun.hand : null;
  if (acknowledge && hand === null)
    throw new ToolFailure('You hold no message of this conversation: send it without acknowledge.');
  const { event } = await services.timeline.post(at.actor, {
    threadId: at.threadId,
    as: at.as,
    content,
    mentionIds: await mentionedIds(bench, mentions),
    deliveryId: hand?.deliveryId,
    idempotencyKey,
  });
  if (hand !== null) services.hands.moved(at.participantId);
  return said(`Message sent: ${event.id}.${hand === null ? '' : ' The message that you held is finished.'}`);
};

/** One's own, in this conversation: the tool reaches no other. */
export const retractMessage = async (
  { services, loaders, at, begun }: Workbench,
  { message_id: messageId, reason }: { readonly message_id: string; readonly reason?: string | undefined },
): Promise<ToolOutput> => {
  const message = isId('Event', messageId) ? await loaders.event.load(messageId) : null;
  if (message?.threadId !== at.threadId) throw notFound('Message');
  const { eventId } = begun;
  try {
    await services.timeline.retract(at.actor, { messageId, as: at.as, reason, eventId });
  } catch (error) {
    const wasBefore = error instanceof DomainError && error.code === 'ALREADY_RETRACTED';
    // By another attempt of this call it is what was asked for.
    if (!wasBefore || (await loaders.event.load(eventId)) === null) throw error;
  }
  return said('Message taken back.');
};
