import { requireTenant, viewerOf } from '../auth/acting.ts';
import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { AS, pageArgs } from '../graphql/pageArgs.ts';
import {
  MessageNode,
  ThreadNode,
  ThreadParticipantObject,
  TimelineEventInterface,
  TimelineObject,
} from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { timelineCursor } from '../shared/cursors.ts';
import { badInput, notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import { LIMITS } from '../shared/input.ts';
import type { Look } from '../timeline/look.ts';
import { eventView, requireParticipant } from '../timeline/views.graphql.ts';
import { ParticipantStateEnum } from './enums.graphql.ts';

/** The same thread as another viewer sees it; null where that one is no member. */
export const lookAs = async (
  context: GraphQLContext,
  look: Look,
  as: string | null | undefined,
): Promise<Look | null> => {
  const viewerId = viewerOf(requireTenant(context.actor), as, look.viewerId);
  if (viewerId === look.viewerId) return look;
  return context.loaders.look.load({ threadId: look.threadId, viewerId });
};

const requireLookAs = async (
  context: GraphQLContext,
  look: Look,
  as: string | null | undefined,
): Promise<Look> => {
  const other = await lookAs(context, look, as);
  if (other === null) throw notFound('Thread');
  return other;
};

const ParticipantActivity = builder.enumType('ParticipantActivity', {
  description: 'What a member does now.',
  values: {
    OFFLINE: { description: 'It has no stream open anywhere.' },
    IDLE: { description: 'It is there.' },
    WORKING: {
      description: 'It has a delivery of this thread in hand, or said within 15 seconds that it works here.',
    },
  } as const,
});

ThreadParticipantObject.implement({
  description: 'A member of a thread. Membership is permanent; what changes is its state.',
  fields: (t) => ({
    id: t.id({
      description: 'Of thread, member and viewer together.',
      resolve: ({ threadId, participantId, viewerId }) =>
        `${threadId}:${participantId}:${viewerId ?? 'owner'}`,
    }),
    participant: t.field({
      type: ParticipantNode,
      description: 'Who it is.',
      resolve: ({ participantId }, _args, context) => requireParticipant(context, participantId),
    }),
    state: t.field({
      type: ParticipantStateEnum,
      description: 'Its present state, which every member sees at all times.',
      resolve: ({ state }) => state,
    }),
    since: t.field({
      type: 'DateTime',
      description: 'Since when; while the viewer is removed, the last change it may see.',
      resolve: ({ since }) => since,
    }),
    activity: t.field({
      type: ParticipantActivity,
      nullable: true,
      description: 'Whether it is there now, as far as is known; null while the viewer is not active.',
      resolve: async ({ threadId, participantId, viewerId }, _args, context) => {
        const look = await context.loaders.look.load({ threadId, viewerId });
        const isThere = look !== null && (viewerId === null || look.member?.state === 'ACTIVE');
        return isThere ? context.loaders.activity.load({ threadId, participantId }) : null;
      },
    }),
  }),
});

const ThreadMemoryPolicy = builder.objectRef<Look>('ThreadMemoryPolicy').implement({
  description: 'What happens to memories stored while working in a thread.',
  fields: (t) => ({
    threadOnly: t.boolean({
      description: 'Whether memories stored from now on are recalled in this thread only.',
      resolve: (look) => look.threadOnly,
    }),
  }),
});

ThreadNode.implement({
  description: 'The lifelong, append-only record of one set of participants.',
  interfaces: [builder.nodeInterfaceRef()],
  isTypeOf: (value) => typeof value === 'object' && value !== null && 'lastSeq' in value,
  fields: (t) => ({
    id: t.id({
      description: 'Globally unique; refetchable with Query.node.',
      resolve: (look) => look.threadId,
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was opened.',
      resolve: (look) => look.createdAt,
    }),
    updatedAt: t.field({
      type: 'DateTime',
      description: 'When the last event happened that the viewer may see.',
      args: { as: t.arg.id({ description: AS }) },
      resolve: async (look, { as }, context) => (await requireLookAs(context, look, as)).end.at,
    }),
    metaData: t.field({
      type: 'JSON',
      description: 'The user’s own; at most 16 KiB. Seen by every member at all times.',
      resolve: (look) => look.metaData,
    }),
    participants: t.field({
      type: [ThreadParticipantObject],
      description:
        'The members, all of them unless `first` says how many (1 to 200). Seen by every member at all times.',
      args: { first: t.arg.int({ description: 'At most so many: 1 to 200; absent: all.' }) },
      resolve: async (look, { first }, context) => {
        if (typeof first === 'number' && (first < 1 || first > LIMITS.pageSize))
          throw badInput(`first must be 1 to ${LIMITS.pageSize}.`, {
            field: 'first',
            limit: LIMITS.pageSize,
          });
        const members = await context.loaders.members.load(look);
        return members.slice(0, first ?? members.length);
      },
    }),
    participantCount: t.int({
      description: 'How many members it has: 2 to 256.',
      resolve: (look, _args, context) => context.loaders.memberCount.load(look.threadId),
    }),
    viewerState: t.field({
      type: ParticipantStateEnum,
      nullable: true,
      description: 'The viewer’s own state; null without a viewer.',
      args: { as: t.arg.id({ description: AS }) },
      resolve: async (look, { as }, context) => (await lookAs(context, look, as))?.member?.state ?? null,
    }),
    timeline: t.field({
      type: TimelineObject,
      description: 'The record as the viewer sees it.',
      args: { as: t.arg.id({ description: AS }) },
      resolve: (look, { as }, context) => requireLookAs(context, look, as),
    }),
    memoryPolicy: t.field({
      type: ThreadMemoryPolicy,
      description: 'What happens to memories stored while working here. Seen by every member at all times.',
      resolve: (look) => look,
    }),
    lastEvent: t.field({
      type: TimelineEventInterface,
      nullable: true,
      description: 'The last event the viewer may see.',
      args: { as: t.arg.id({ description: AS }) },
      resolve: async (look, { as }, context) => {
        const other = await lookAs(context, look, as);
        const event =
          other && (await context.loaders.eventAt.load({ threadId: other.threadId, seq: other.end.seq }));
        return event && eventView(event, other.viewerId);
      },
    }),
    lastMessage: t.field({
      type: MessageNode,
      nullable: true,
      description: 'The last message the viewer may see.',
      args: { as: t.arg.id({ description: AS }) },
      resolve: async (look, { as }, context) => {
        const other = await lookAs(context, look, as);
        const event = other && (await context.loaders.lastMessage.load(other));
        return event?.type === 'MESSAGE' ? eventView(event, other?.viewerId ?? null) : null;
      },
    }),
    acknowledged: t.field({
      type: 'Cursor',
      nullable: true,
      description: 'The viewer’s read position; null before the first acknowledgement, and without a viewer.',
      args: { as: t.arg.id({ description: AS }) },
      resolve: async (look, { as }, context) => {
        const other = await lookAs(context, look, as);
        const seq = other?.member?.ackSeq ?? 0;
        if (seq === 0) return null;
        const event = await context.loaders.eventAt.load({ threadId: look.threadId, seq });
        return event === null ? null : timelineCursor(look.threadId, seq, event.id);
      },
    }),
    unreadCount: t.int({
      description:
        'Messages by others that the viewer may see, after its read position and not retracted; 0 without a viewer.',
      args: { as: t.arg.id({ description: AS }) },
      resolve: async (look, { as }, context) => (await lookAs(context, look, as))?.unreadCount ?? 0,
    }),
  }),
});

const ThreadEdge = builder.edgeObject({
  type: ThreadNode,
  name: 'ThreadEdge',
  description: 'A thread and where it stands in the list.',
});
const ThreadConnection = builder.connectionObject(
  {
    type: ThreadNode,
    name: 'ThreadConnection',
    description: 'A page of threads, latest visible activity first.',
  },
  ThreadEdge,
);

builder.queryFields((t) => ({
  thread: t.field({
    type: ThreadNode,
    nullable: true,
    description: 'A thread by its id.',
    args: { id: t.arg.id({ required: true, description: 'Its id.' }), as: t.arg.id({ description: AS }) },
    resolve: (_root, { id, as }, context) => findThread(context, id, as),
  }),
  threadOf: t.field({
    type: ThreadNode,
    nullable: true,
    description: 'The thread of exactly this set of participants, if there is one. Never opens one.',
    args: {
      participantIds: t.arg.idList({
        required: true,
        description: 'The set; order and repeats do not matter.',
      }),
      as: t.arg.id({ description: AS }),
    },
    resolve: async (_root, { participantIds, as }, context) => {
      const id = await context.services.threads.idOf(context.actor, participantIds);
      return id === null ? null : findThread(context, id, as);
    },
  }),
  threads: t.field({
    type: ThreadConnection,
    nullable: true,
    description:
      'The viewer’s threads (the user’s: all), latest visible activity first. Errors: BAD_USER_INPUT, INVALID_CURSOR.',
    args: {
      participantId: t.arg.id({ description: 'Only threads that this participant is a member of.' }),
      as: t.arg.id({ description: AS }),
      ...pageArgs,
    },
    resolve: async (_root, args, context) => {
      const { edges, ...page } = await context.services.threadLists.page(context.actor, args);
      for (const { node } of edges) context.loaders.look.prime(node, node);
      // Where the operation has looked at a thread before, that look answers here too, also if there was none to see yet.
      const looks = await context.loaders.look.loadMany(edges.map(({ node }) => node));
      return {
        ...page,
        edges: edges.flatMap(({ cursor }, index) => {
          const node = looks[index];
          if (node instanceof Error) throw node;
          return node ? [{ cursor, node }] : [];
        }),
      };
    },
  }),
}));

const findThread = (
  context: GraphQLContext,
  id: string,
  as: string | null | undefined,
): Promise<Look | null> => {
  const viewerId = viewerOf(requireTenant(context.actor), as);
  return isId('Thread', id) ? context.loaders.look.load({ threadId: id, viewerId }) : Promise.resolve(null);
};
