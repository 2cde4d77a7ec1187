import { z } from 'zod';
import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import type { Services } from '../services.ts';
import type { Json } from '../shared/canonical.ts';
import { notFound } from '../shared/errors.ts';
import type { StateChangedEvent } from '../timeline/events.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import { createEventBodies, cursorOf, ParticipantRef, StateChanged } from './events.ts';
import { actingAs, atThreads, THREAD_GONE } from './record.ts';
import { route } from './route.ts';
import { cursor, id, metaData, open, strict, time } from './schemas.ts';

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

const ThreadLeave = strict('ThreadLeave', 'Who leaves.', { as: actingAs });
const StateChange = strict('ParticipantStateChange', 'A recorded change of a member’s state.', {
  event: StateChanged,
  cursor: cursor('Where it stands.'),
});

const tag = 'threads';

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
  const { participant } = createEventBodies(tenant, loaders, look.viewerId);
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
  const bodies = createEventBodies(requireTenant(actor), services.createLoaders(actor), viewerId);
  return { body: { event: await bodies.stateChanged(event), cursor: cursorOf(event) } };
};

/** Threads and who is in them. */
export const THREAD_ROUTES = [
  route({
    ...atThreads(''),
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
    ...atThreads('/{thread_id}'),
    method: 'GET',
    operationId: 'retrieveThread',
    tag,
    summary: 'Read a thread',
    answer: Thread,
    errors: THREAD_GONE,
    serve: async ({ actor, services, params }) => ({
      body: await threadBody(services, actor, params.thread_id),
    }),
  }),
  route({
    ...atThreads('/{thread_id}'),
    method: 'DELETE',
    operationId: 'deleteThread',
    tag,
    summary: 'Delete a thread',
    description: 'With all that hangs on it, for everybody, at once. API key only.',
    answer: ThreadDeleted,
    errors: THREAD_GONE,
    async serve({ actor, services, params: { thread_id: threadId } }) {
      await services.threads.delete(actor, { threadId });
      return { body: { id: threadId, object: 'thread.deleted', deleted: true } };
    },
  }),
  route({
    ...atThreads('/{thread_id}/participants/{participant_id}/remove'),
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
    ...atThreads('/{thread_id}/participants/{participant_id}/readd'),
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
    ...atThreads('/{thread_id}/leave'),
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
