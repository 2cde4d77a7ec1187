import { z } from 'zod';
import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Json } from '../shared/canonical.ts';
import { timelineCursor } from '../shared/cursors.ts';
import { notFound } from '../shared/errors.ts';
import { readPage } from '../timeline/reads.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import { createEventBodies, cursorOf, Event, Message, Retraction } from './events.ts';
import { answerHeaders, linkHeader } from './headers.ts';
import { route } from './route.ts';
import { cursor, limit, strict } from './schemas.ts';

const EventList = strict('TimelineEventList', 'A page of a thread’s record, ascending.', {
  object: z.literal('list'),
  data: z.array(Event),
  page_info: z.strictObject({
    has_next_page: z.boolean().describe('Whether anything comes after it.'),
    has_previous_page: z.boolean().describe('Whether anything comes before it.'),
    start_cursor: z.string().nullable().describe('The first one’s.'),
    end_cursor: z.string().nullable().describe('The last one’s.'),
  }),
  end: cursor('The last position the viewer may see: subscribe after it and nothing is missed.'),
});

export const actingAs = z
  .string()
  .nullish()
  .describe('Who acts: with an API key required, here or as `X-Act-As`; a token acts as itself.');
const Key = z
  .string()
  .nullish()
  .describe('1 to 128 characters: the same key and input answer the first result.');

const MessageCreate = strict('MessageCreate', 'A message, and on what condition to append it.', {
  as: actingAs,
  content: z.string().describe('At most 256 KiB of UTF-8; empty only with `data`.'),
  data: z.unknown().optional().describe('Structured content; at most 256 KiB.'),
  context: z
    .strictObject({
      kind: z.string().nullish(),
      task: z.string().nullish(),
      originating_message_id: z.string().nullish(),
    })
    .nullish()
    .describe('Hints for a user interface; at most 2 KiB.'),
  mention_ids: z.array(z.string()).nullish().describe('Members whom it addresses.'),
  source_ids: z
    .array(z.string())
    .nullish()
    .describe('What it derives from: at most 50 events, entries and memories, each visible to the sender.'),
  idempotency_key: Key,
  if_nothing_after: z
    .string()
    .nullish()
    .describe('Append only if the sender can see nothing after this position; else STALE_VIEW.'),
  acknowledge_up_to: z.string().nullish().describe('Move the sender’s read position in the same commit.'),
  delivery_id: z
    .string()
    .nullish()
    .describe(
      'A delivery that it answers: acknowledged in the same commit; CONFLICT if it is not in flight.',
    ),
});

const MessageCreated = strict('MessageCreated', 'The appended message.', {
  message: Message,
  cursor: cursor('Where it stands.'),
});
const MessageRetract = strict('MessageRetract', 'Why it is taken back.', {
  as: actingAs,
  reason: z.string().nullish().describe('At most 2 KiB.'),
});
const MessageRetracted = strict('MessageRetracted', 'The recorded retraction.', {
  retraction: Retraction,
  cursor: cursor('Where it stands.'),
});
/** The same routes, where older clients look for them. */
export const atThreads = <Path extends string>(rest: Path) => ({
  path: `/v1/threads${rest}` as const,
  aliases: [`/api/v1/threads${rest}`],
});
export const THREAD_GONE = { NOT_FOUND: 'Thread not found' };
const tag = 'threads';

/** What is said in threads. */
export const RECORD_ROUTES = [
  route({
    ...atThreads('/{thread_id}/events'),
    method: 'GET',
    operationId: 'listThreadEvents',
    tag,
    summary: 'Read a page of the record',
    description:
      'What the viewer may see, ascending. Without `after`: the newest end, or what comes before `before`.',
    query: z.object({
      limit: limit('At most so many: 1 to 200, default 50.'),
      after: z.string().optional().describe('Only what comes after this position.'),
      before: z.string().optional().describe('Only what comes before this position.'),
    }),
    answer: EventList,
    answerHeaders: ['Link', 'X-Cursor'],
    errors: THREAD_GONE,
    async serve({ actor, services, params: { thread_id: threadId }, query }) {
      const tenant = requireTenant(actor);
      const viewerId = viewerOf(tenant, null);
      requireThreadId(threadId);
      const loaders = services.createLoaders(actor);
      const look = await loaders.look.load({ threadId, viewerId });
      if (look === null) throw notFound('Thread');
      const { limit: size, after, before } = query;
      const { events, hasNextPage, hasPreviousPage } = await readPage(services.database, look, {
        after,
        before,
        ...(after === undefined ? { last: size } : { first: size ?? null }),
      });
      // Messages and their retractions name each other by position: those on the page are not read again.
      for (const event of events) loaders.eventAt.prime({ threadId, seq: event.seq }, event);
      const bodies = createEventBodies(tenant, loaders, viewerId);
      const data = await Promise.all(events.map(bodies.body));
      const [start, last] = [data[0]?.cursor ?? null, data.at(-1)?.cursor ?? null];
      return {
        body: {
          object: 'list',
          data,
          page_info: {
            has_next_page: hasNextPage,
            has_previous_page: hasPreviousPage,
            start_cursor: start,
            end_cursor: last,
          },
          end: timelineCursor(threadId, look.end.seq, look.end.id),
        },
        headers: answerHeaders({
          'X-Cursor': last,
          Link: linkHeader(`/v1/threads/${threadId}/events`, {
            next: hasNextPage && last !== null ? { limit: size, after: last } : null,
            prev: hasPreviousPage && start !== null ? { limit: size, before: start } : null,
          }),
        }),
      };
    },
  }),
  route({
    ...atThreads('/{thread_id}/messages'),
    method: 'POST',
    operationId: 'postMessage',
    tag,
    summary: 'Post a message',
    description: 'Appends it as an active member.',
    body: MessageCreate,
    isContent: true,
    answer: MessageCreated,
    answerHeaders: ['X-Cursor'],
    errors: {
      NOT_FOUND: [],
      PARTICIPANT_NOT_ACTIVE: [],
      CONFLICT: [],
      IDEMPOTENCY_KEY_REUSED: [],
      STALE_VIEW: [],
      LOOP_LIMIT: [],
      PAYLOAD_TOO_LARGE: [],
    },
    async serve({ actor, services, params, body }) {
      const { context } = body;
      const { event, viewerId } = await services.timeline.post(actor, {
        threadId: params.thread_id,
        as: body.as,
        content: body.content,
        data: body.data as Json | undefined,
        context: context && {
          kind: context.kind,
          task: context.task,
          originatingMessageId: context.originating_message_id,
        },
        mentionIds: body.mention_ids,
        sourceIds: body.source_ids,
        idempotencyKey: body.idempotency_key,
        ifNothingAfter: body.if_nothing_after,
        acknowledgeUpTo: body.acknowledge_up_to,
        deliveryId: body.delivery_id,
      });
      const bodies = createEventBodies(requireTenant(actor), services.createLoaders(actor), viewerId);
      const place = cursorOf(event);
      return {
        body: { message: await bodies.message(event), cursor: place },
        headers: answerHeaders({ 'X-Cursor': place }),
      };
    },
  }),
  route({
    path: '/v1/messages/{message_id}/retract',
    method: 'POST',
    operationId: 'retractMessage',
    tag,
    summary: 'Take a message back',
    description: 'One’s own; it stays readable.',
    body: MessageRetract,
    answer: MessageRetracted,
    errors: {
      NOT_FOUND: 'Message not found',
      PARTICIPANT_NOT_ACTIVE: [],
      ALREADY_RETRACTED: [],
      PAYLOAD_TOO_LARGE: [],
    },
    async serve({ actor, services, params, body: { as, reason } }) {
      const { event, viewerId } = await services.timeline.retract(actor, {
        messageId: params.message_id,
        as,
        reason,
      });
      const bodies = createEventBodies(requireTenant(actor), services.createLoaders(actor), viewerId);
      return { body: { retraction: await bodies.retraction(event), cursor: cursorOf(event) } };
    },
  }),
];
