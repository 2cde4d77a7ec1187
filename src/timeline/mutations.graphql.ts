import { builder } from '../graphql/builder.ts';
import { ACT_AS, KEY } from '../graphql/pageArgs.ts';
import type { EventView } from '../graphql/refs.ts';
import { MessageNode, RetractionNode, ThreadNode } from '../graphql/refs.ts';
import type { MessageEvent, RetractionEvent } from './events.ts';
import type { Look } from './look.ts';
import { TimelineEventEdge } from './timeline.graphql.ts';
import { cursorOf, requireLook, seenBy } from './views.graphql.ts';

const THREAD_ID = 'The thread.';

const MessageContextInput = builder.inputType('MessageContextInput', {
  description: 'Hints for a user interface: stored as given, at most 2 KiB together.',
  fields: (t) => ({
    kind: t.string({
      description:
        'task_update, reminder, observation, spontaneous, correction, or any other; at most 128 characters.',
    }),
    task: t.string({ description: 'Names the task it is about; at most 128 characters.' }),
    originatingMessageId: t.id({ description: 'The message that led to this one.' }),
  }),
});

const PostMessageInput = builder.inputType('PostMessageInput', {
  description: 'A message, and on what condition to append it.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: THREAD_ID }),
    as: t.id({ description: ACT_AS }),
    content: t.string({ required: true, description: 'At most 256 KiB of UTF-8; empty only with `data`.' }),
    data: t.field({ type: 'JSON', description: 'Structured content; at most 256 KiB.' }),
    context: t.field({ type: MessageContextInput, description: 'Hints for a user interface.' }),
    mentionIds: t.idList({ description: 'Members whom it addresses.' }),
    sourceIds: t.idList({
      description: 'Events, entries and memories it derives from: at most 50, each visible to the sender.',
    }),
    idempotencyKey: t.string({ description: `${KEY} Everybody who sees the message sees it as clientKey.` }),
    ifNothingAfter: t.field({
      type: 'Cursor',
      description: 'Append only if the sender can see nothing after this position; else STALE_VIEW.',
    }),
    acknowledgeUpTo: t.field({
      type: 'Cursor',
      description: 'Move the sender’s read position in the same commit.',
    }),
    deliveryId: t.id({
      description:
        'A delivery of this thread that the sender has in hand: acknowledged in the same commit, so that answering and finishing are one. Not in flight any more: CONFLICT, and nothing is appended.',
    }),
  }),
});

const RetractMessageInput = builder.inputType('RetractMessageInput', {
  description: 'Which message to take back.',
  fields: (t) => ({
    messageId: t.id({ required: true, description: 'A message of one’s own.' }),
    as: t.id({ description: ACT_AS }),
    reason: t.string({ description: 'Why; at most 2 KiB.' }),
  }),
});

const AcknowledgeInput = builder.inputType('AcknowledgeInput', {
  description: 'How far one has read: upTo, deliveryId, or both.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: THREAD_ID }),
    as: t.id({ description: ACT_AS }),
    upTo: t.field({
      type: 'Cursor',
      description: 'Any position one can see; an earlier one than before does nothing.',
    }),
    deliveryId: t.id({
      description:
        'A delivery in flight, which ends with this. Without `upTo` all of it is acknowledged; with it only so much, and the rest of a batch comes again.',
    }),
  }),
});

const PostMessagePayload = builder.objectRef<EventView<MessageEvent>>('PostMessagePayload').implement({
  description: 'The appended message.',
  fields: (t) => ({
    message: t.field({ type: MessageNode, description: 'The message.', resolve: (view) => view }),
    cursor: t.field({
      type: 'Cursor',
      description: 'Where it stands.',
      resolve: ({ event }) => cursorOf(event),
    }),
    edge: t.field({
      type: TimelineEventEdge,
      description: 'The message as an edge of Timeline.events.',
      resolve: (view) => ({ cursor: cursorOf(view.event), node: view }),
    }),
  }),
});

const RetractMessagePayload = builder
  .objectRef<EventView<RetractionEvent>>('RetractMessagePayload')
  .implement({
    description: 'The recorded retraction.',
    fields: (t) => ({
      retraction: t.field({ type: RetractionNode, description: 'The retraction.', resolve: (view) => view }),
      cursor: t.field({
        type: 'Cursor',
        description: 'Where it stands.',
        resolve: ({ event }) => cursorOf(event),
      }),
      edge: t.field({
        type: TimelineEventEdge,
        description: 'The retraction as an edge of Timeline.events.',
        resolve: (view) => ({ cursor: cursorOf(view.event), node: view }),
      }),
    }),
  });

const AcknowledgePayload = builder.objectRef<Look>('AcknowledgePayload').implement({
  description: 'How far one has read.',
  fields: (t) => ({
    thread: t.field({ type: ThreadNode, description: 'The thread.', resolve: (look) => look }),
    pendingCount: t.int({
      description: 'Messages by others that are still to be read.',
      resolve: (look) => look.unreadCount,
    }),
  }),
});

builder.mutationFields((t) => ({
  postMessage: t.field({
    type: PostMessagePayload,
    description:
      'Appends a message as an active member. Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, IDEMPOTENCY_KEY_REUSED, CONFLICT (deliveryId), STALE_VIEW (unseen, unseenIds, latestCursor), INVALID_CURSOR, LOOP_LIMIT.',
    args: { input: t.arg({ type: PostMessageInput, required: true, description: 'The message.' }) },
    resolve: async (_root, { input }, context) =>
      seenBy(await context.services.timeline.post(context.actor, input)),
  }),
  retractMessage: t.field({
    type: RetractMessagePayload,
    description:
      'Takes back a message of one’s own; it stays readable. Errors: NOT_FOUND, BAD_USER_INPUT, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, ALREADY_RETRACTED.',
    args: { input: t.arg({ type: RetractMessageInput, required: true, description: 'The message.' }) },
    resolve: async (_root, { input }, context) =>
      seenBy(await context.services.timeline.retract(context.actor, input)),
  }),
  acknowledge: t.field({
    type: AcknowledgePayload,
    description:
      'Moves one’s read position forward, and ends the delivery in flight. A delivery that was handed out again since, or never was one’s own, is CONFLICT and moves nothing; the same acknowledgement again succeeds. Errors: NOT_FOUND, INVALID_CURSOR, CONFLICT, BAD_USER_INPUT, FORBIDDEN.',
    args: { input: t.arg({ type: AcknowledgeInput, required: true, description: 'The position.' }) },
    resolve: async (_root, { input }, context) => {
      const { viewerId } = await context.services.timeline.acknowledge(context.actor, input);
      return requireLook(context, { threadId: input.threadId, viewerId });
    },
  }),
}));
