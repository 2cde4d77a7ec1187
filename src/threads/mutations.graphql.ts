import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { DeletePayload } from '../graphql/deletePayload.ts';
import { ACT_AS, KEY } from '../graphql/pageArgs.ts';
import type { EventView } from '../graphql/refs.ts';
import { StateChangedNode, ThreadNode } from '../graphql/refs.ts';
import type { StateChangedEvent } from '../timeline/events.ts';
import type { Look } from '../timeline/look.ts';
import { cursorOf, requireLook, seenBy } from '../timeline/views.graphql.ts';
import type { OpenedThread } from './threads.ts';

const THREAD_ID = 'The thread.';

const OpenThreadInput = builder.inputType('OpenThreadInput', {
  description: 'A set of participants, and what a new thread of theirs begins with.',
  fields: (t) => ({
    participantIds: t.idList({
      required: true,
      description: '2 to 256 distinct participants; order and repeats do not matter.',
    }),
    threadOnly: t.boolean({ description: 'The memory policy; default true. `false` is the user’s only.' }),
    metaData: t.field({ type: 'JSON', description: 'A JSON object of at most 16 KiB. The user’s only.' }),
    idempotencyKey: t.string({ description: KEY }),
  }),
});

const ExtendThreadInput = builder.inputType('ExtendThreadInput', {
  description: 'Whom to bring in.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: 'The thread to go on from.' }),
    participantIds: t.idList({
      required: true,
      description: 'Those to add: at least one who is not in the set.',
    }),
    as: t.id({ description: 'Extend as this participant; an API key may also do it as the user.' }),
    idempotencyKey: t.string({ description: KEY }),
  }),
});

const UpdateThreadInput = builder.inputType('UpdateThreadInput', {
  description: 'What to change of a thread.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: THREAD_ID }),
    metaData: t.field({
      type: 'JSON',
      required: true,
      description: 'Replaces the stored object whole; at most 16 KiB.',
    }),
  }),
});

const SetMemoryPolicyInput = builder.inputType('SetMemoryPolicyInput', {
  description: 'A thread’s new memory policy.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: THREAD_ID }),
    threadOnly: t.boolean({
      required: true,
      description: 'Whether memories stored from now on stay in this thread.',
    }),
  }),
});

const DeleteThreadInput = builder.inputType('DeleteThreadInput', {
  description: 'Which thread to delete.',
  fields: (t) => ({ threadId: t.id({ required: true, description: THREAD_ID }) }),
});

const ParticipantStateInput = builder.inputType('ParticipantStateInput', {
  description: 'A member of a thread.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: THREAD_ID }),
    participantId: t.id({ required: true, description: 'The member.' }),
  }),
});

const LeaveThreadInput = builder.inputType('LeaveThreadInput', {
  description: 'Which thread to leave.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: THREAD_ID }),
    as: t.id({ description: ACT_AS }),
  }),
});

const OpenThreadPayload = builder
  .objectRef<{ thread: Look; created: boolean }>('OpenThreadPayload')
  .implement({
    description: 'The thread of a set.',
    fields: (t) => ({
      thread: t.expose('thread', { type: ThreadNode, description: 'The thread.' }),
      created: t.exposeBoolean('created', { description: 'Whether this call opened it.' }),
    }),
  });

const ThreadPayload = builder.objectRef<{ thread: Look }>('ThreadPayload').implement({
  description: 'The thread as it is now.',
  fields: (t) => ({ thread: t.expose('thread', { type: ThreadNode, description: 'The thread.' }) }),
});

const ParticipantStatePayload = builder
  .objectRef<EventView<StateChangedEvent>>('ParticipantStatePayload')
  .implement({
    description: 'A recorded change of a member’s state.',
    fields: (t) => ({
      event: t.field({ type: StateChangedNode, description: 'The change.', resolve: (view) => view }),
      thread: t.field({ type: ThreadNode, description: 'The thread.', resolve: threadOf }),
      cursor: t.field({
        type: 'Cursor',
        description: 'Where the change stands.',
        resolve: ({ event }) => cursorOf(event),
      }),
    }),
  });

function threadOf({ event, viewerId }: EventView, _args: object, context: GraphQLContext): Promise<Look> {
  return requireLook(context, { threadId: event.threadId, viewerId });
}

const opened = async (context: GraphQLContext, { threadId, created, viewerId }: OpenedThread) => ({
  thread: await requireLook(context, { threadId, viewerId }),
  created,
});

builder.mutationFields((t) => ({
  openThread: t.field({
    type: OpenThreadPayload,
    description:
      'Finds or creates the thread of a set. Changes nothing on an existing one: other properties are CONFLICT. Errors: BAD_USER_INPUT, NOT_FOUND, FORBIDDEN, CONFLICT, IDEMPOTENCY_KEY_REUSED, PAYLOAD_TOO_LARGE.',
    args: { input: t.arg({ type: OpenThreadInput, required: true, description: 'The set.' }) },
    resolve: async (_root, { input }, context) =>
      opened(context, await context.services.threads.open(context.actor, input)),
  }),
  extendThread: t.field({
    type: OpenThreadPayload,
    description:
      'Brings somebody in: opens the thread of the larger set and links the two. Errors: BAD_USER_INPUT, NOT_FOUND, PARTICIPANT_NOT_ACTIVE, IDEMPOTENCY_KEY_REUSED.',
    args: {
      input: t.arg({ type: ExtendThreadInput, required: true, description: 'The thread and those to add.' }),
    },
    resolve: async (_root, { input }, context) =>
      opened(context, await context.services.threads.extend(context.actor, input)),
  }),
  updateThread: t.field({
    type: ThreadPayload,
    description:
      'Replaces a thread’s metaData. API key only. Errors: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: { input: t.arg({ type: UpdateThreadInput, required: true, description: 'The change.' }) },
    resolve: async (_root, { input }, context) => {
      await context.services.threads.update(context.actor, { ...input, metaData: input.metaData ?? null });
      return changed(context, input.threadId);
    },
  }),
  setMemoryPolicy: t.field({
    type: ThreadPayload,
    description:
      'Sets whether memories stored from now on stay in the thread. API key only. Errors: NOT_FOUND, FORBIDDEN.',
    args: { input: t.arg({ type: SetMemoryPolicyInput, required: true, description: 'The policy.' }) },
    resolve: async (_root, { input }, context) => {
      await context.services.threads.setMemoryPolicy(context.actor, input);
      return changed(context, input.threadId);
    },
  }),
  deleteThread: t.field({
    type: DeletePayload,
    description:
      'Deletes a thread and all that hangs on it, for everybody, at once. API key only. Errors: NOT_FOUND, FORBIDDEN.',
    args: { input: t.arg({ type: DeleteThreadInput, required: true, description: 'The thread.' }) },
    resolve: async (_root, { input }, context) => {
      await context.services.threads.delete(context.actor, input);
      return { deletedId: input.threadId };
    },
  }),
  removeParticipant: t.field({
    type: ParticipantStatePayload,
    description:
      'Removes a member: it sees its removal and nothing after it. API key only. Errors: NOT_FOUND, INVALID_TRANSITION, FORBIDDEN.',
    args: { input: t.arg({ type: ParticipantStateInput, required: true, description: 'The member.' }) },
    resolve: async (_root, { input }, context) =>
      seenBy(await context.services.threads.changeState(context.actor, input, 'REMOVED')),
  }),
  readdParticipant: t.field({
    type: ParticipantStatePayload,
    description:
      'Brings a removed member back: it sees what comes from now on. API key only. Errors: NOT_FOUND, INVALID_TRANSITION, FORBIDDEN.',
    args: { input: t.arg({ type: ParticipantStateInput, required: true, description: 'The member.' }) },
    resolve: async (_root, { input }, context) =>
      seenBy(await context.services.threads.changeState(context.actor, input, 'ACTIVE')),
  }),
  leaveThread: t.field({
    type: ParticipantStatePayload,
    description: 'Removes oneself. Errors: NOT_FOUND, INVALID_TRANSITION, FORBIDDEN.',
    args: { input: t.arg({ type: LeaveThreadInput, required: true, description: 'The thread.' }) },
    resolve: async (_root, { input }, context) =>
      seenBy(await context.services.threads.leave(context.actor, input)),
  }),
}));

/** An administered thread, as the user (or the participant it acts as) sees it now. */
const changed = async (context: GraphQLContext, threadId: string): Promise<{ thread: Look }> => {
  const viewerId = context.actor.kind === 'API_KEY' ? context.actor.actAs : null;
  return { thread: await requireLook(context, { threadId, viewerId }) };
};
