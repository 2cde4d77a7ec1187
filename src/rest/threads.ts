import { z } from 'zod';
import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import type { Services } from '../services.ts';
import type { Json } from '../shared/canonical.ts';
import { timelineCursor } from '../shared/cursors.ts';
import { notFound } from '../shared/errors.ts';
import type { StateChangedEvent } from '../timeline/events.ts';
import { readPage } from '../timeline/reads.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import {
  createEventBodies,
  cursorOf,
  Event,
  Message,
  ParticipantRef,
  Retraction,
  StateChanged,
} from './events.ts';
import { answerHeaders, linkHeader } from './headers.ts';
import { route } from './route.ts';
import { cursor, id, limit, metaData, open, strict, time } from './schemas.ts';

const Thread = open('ThreadRead', 'The lifelong record of one set of participants.', {
  id: id('The thread.'),
  object: z.literal('thread'),
  created_at: z.int().describe('When it was opened: Unix seconds.'),
  meta_data: metaData('The user’s own.'),
  owner_id: id('The user.'),
  participants: z
    .array(
      z.object({
        ...ParticipantRef.shape,
        state: z.enum(['ACTIVE', 'REMOVED']).describe('Its present state.'),
        since: time('Since when; while the viewer is removed, the last change it may see.'),
      }),
    )
    .describe('The members.'),
});

const ThreadCreate = strict('ThreadCreate', 'Whose thread.', {
  participant_ids: z
    .array(z.string())
    .nullish()
    .describe(
      '2 to 256 distinct participants, in any order. Absent: a new agent and the user’s own participant.',
    ),
  meta_data: metaData('The user’s own, of a new thread.').nullish(),
});

const ThreadDeleted = open('ThreadDeleted', 'A thread that was deleted.', {
  id: id('The thread.'),
  object: z.literal('thread.deleted'),
  deleted: z.literal(true),
});

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

const As = z
  .string()
  .nullish()
  .describe('Who acts: with an API key required, here or as `X-Act-As`; a token acts as itself.');
const Key = z
  .string()
  .nullish()
  .describe('1 to 128 characters: the same key and input answer the first result.');

const MessageCreate = strict('MessageCreate', 'A message, and on what condition to append it.', {
  as: As,
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
  source_ids: z.array(z.string()).nullish().describe('What it derives from: at most 50.'),
  idempotency_key: Key,
  if_nothing_after: z
    .string()
    .nullish()
    .describe('Append only if the sender can see nothing after this position; else STALE_VIEW.'),
  acknowledge_up_to: z.string().nullish().describe('Move the sender’s read position in the same commit.'),
});

const MessageCreated = strict('MessageCreated', 'The appended message.', {
  message: Message,
  cursor: cursor('Where it stands.'),
});
const MessageRetract = strict('MessageRetract', 'Why it is taken back.', {
  as: As,
  reason: z.string().nullish().describe('At most 2 KiB.'),
});
const MessageRetracted = strict('MessageRetracted', 'The recorded retraction.', {
  retraction: Retraction,
  cursor: cursor('Where it stands.'),
});
const ThreadLeave = strict('ThreadLeave', 'Who leaves.', { as: As });
const StateChange = strict('ParticipantStateChange', 'A recorded change of a member’s state.', {
  event: StateChanged,
  cursor: cursor('Where it stands.'),
});

/** The same routes, where older clients look for them. */
const at = <Path extends string>(rest: Path) => ({
  path: `/v1/threads${rest}` as const,
  aliases: [`/api/v1/threads${rest}`],
});
const tag = 'threads';
const GONE = { NOT_FOUND: 'Thread not found' };

const threadBody = async (
  services: Services,
  actor: Actor,
  threadId: string,
): Promise<z.output<typeof Thread>> => {
  const tenant = requireTenant(actor);
  requireThreadId(threadId);
  const loaders = services.createLoaders(actor);
  const look = await loaders.look.load({ threadId, viewerId: viewerOf(tenant, null) });
  if (look === null) throw notFound('Thread');
  const { participant } = createEventBodies(loaders, look.viewerId);
  const members = await loaders.members.load(look);
  return {
    id: threadId,
    object: 'thread',
    created_at: Math.floor(Date.parse(look.createdAt) / 1_000),
    meta_data: look.metaData as Record<string, unknown>,
    owner_id: look.ownerId,
    participants: await Promise.all(
      members.map(async ({ participantId, state, since }) => ({
        ...(await participant(participantId)),
        state,
        since,
      })),
    ),
  };
};

const changed = async (
  services: Services,
  actor: Actor,
  { event, viewerId }: { readonly event: StateChangedEvent; readonly viewerId: string | null },
) => {
  const bodies = createEventBodies(services.createLoaders(actor), viewerId);
  return { body: { event: await bodies.stateChanged(event), cursor: cursorOf(event) } };
};

export const THREAD_ROUTES = [
  route({
    ...at(''),
    method: 'POST',
    operationId: 'createThread',
    tag,
    summary: 'Open a thread',
    description:
      'Finds or opens the thread of a set of participants: the same set gives the same thread. Without participants a new thread each time, of the user’s own participant and a new agent.',
    body: ThreadCreate,
    answer: Thread,
    errors: { NOT_FOUND: 'Participant not found', CONFLICT: [], PAYLOAD_TOO_LARGE: [] },
    async serve({ actor, services, body: { participant_ids: participantIds, meta_data: stored } }) {
      const metaData = (stored ?? null) as Json;
      const { threadId } =
        participantIds === null || participantIds === undefined
          ? await services.ownThreads.openNew(actor, { metaData })
          : await services.threads.open(actor, { participantIds, metaData });
      return { body: await threadBody(services, actor, threadId) };
    },
  }),
  route({
    ...at('/{thread_id}'),
    method: 'GET',
    operationId: 'retrieveThread',
    tag,
    summary: 'Read a thread',
    answer: Thread,
    errors: GONE,
    serve: async ({ actor, services, params }) => ({
      body: await threadBody(services, actor, params.thread_id),
    }),
  }),
  route({
    ...at('/{thread_id}'),
    method: 'DELETE',
    operationId: 'deleteThread',
    tag,
    summary: 'Delete a thread',
    description: 'With all that hangs on it, for everybody, at once. API key only.',
    answer: ThreadDeleted,
    errors: GONE,
    async serve({ actor, services, params: { thread_id: threadId } }) {
      await services.threads.delete(actor, { threadId });
      return { body: { id: threadId, object: 'thread.deleted', deleted: true } };
    },
  }),
  route({
    ...at('/{thread_id}/events'),
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
    errors: GONE,
    async serve({ actor, services, params: { thread_id: threadId }, query }) {
      const viewerId = viewerOf(requireTenant(actor), null);
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
      const bodies = createEventBodies(loaders, viewerId);
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
    ...at('/{thread_id}/messages'),
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
      });
      const bodies = createEventBodies(services.createLoaders(actor), viewerId);
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
      const bodies = createEventBodies(services.createLoaders(actor), viewerId);
      return { body: { retraction: await bodies.retraction(event), cursor: cursorOf(event) } };
    },
  }),
  route({
    ...at('/{thread_id}/participants/{participant_id}/remove'),
    method: 'POST',
    operationId: 'removeParticipant',
    tag,
    summary: 'Remove a member',
    description: 'It sees its removal and nothing after it. API key only.',
    answer: StateChange,
    errors: { NOT_FOUND: ['Thread not found', 'Participant not found'], INVALID_TRANSITION: [] },
    serve: async ({ actor, services, params: { thread_id: threadId, participant_id: participantId } }) =>
      changed(
        services,
        actor,
        await services.threads.changeState(actor, { threadId, participantId }, 'REMOVED'),
      ),
  }),
  route({
    ...at('/{thread_id}/participants/{participant_id}/readd'),
    method: 'POST',
    operationId: 'readdParticipant',
    tag,
    summary: 'Bring a removed member back',
    description: 'It sees what comes from now on. API key only.',
    answer: StateChange,
    errors: { NOT_FOUND: ['Thread not found', 'Participant not found'], INVALID_TRANSITION: [] },
    serve: async ({ actor, services, params: { thread_id: threadId, participant_id: participantId } }) =>
      changed(
        services,
        actor,
        await services.threads.changeState(actor, { threadId, participantId }, 'ACTIVE'),
      ),
  }),
  route({
    ...at('/{thread_id}/leave'),
    method: 'POST',
    operationId: 'leaveThread',
    tag,
    summary: 'Leave a thread',
    body: ThreadLeave.optional(),
    answer: StateChange,
    errors: { NOT_FOUND: 'Thread not found', INVALID_TRANSITION: [] },
    serve: async ({ actor, services, params, body }) =>
      changed(
        services,
        actor,
        await services.threads.leave(actor, { threadId: params.thread_id, as: body?.as }),
      ),
  }),
];
