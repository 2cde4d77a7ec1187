import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import {
  EVENT_TYPENAME,
  type EventView,
  MessageNode,
  RetractionNode,
  StateChangedNode,
  ThreadNode,
  ThreadParticipantObject,
  TimelineEventInterface,
} from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { notFound } from '../shared/errors.ts';
import { ParticipantStateEnum } from '../threads/enums.graphql.ts';
import type { MessageEvent, RetractionEvent, SystemEvent, TimelineEventType } from './events.ts';
import {
  cursorOf,
  eventView,
  requireLook,
  requireParticipant,
  visibleEvent,
  visibleOnly,
} from './views.graphql.ts';

TimelineEventInterface.implement({
  description: 'One entry of a thread’s record. Events never change; they are ordered by `seq` alone.',
  interfaces: [builder.nodeInterfaceRef()],
  resolveType: ({ event }) => EVENT_TYPENAME[event.type],
  fields: (t) => ({
    id: t.id({
      description: 'Globally unique; refetchable with Query.node.',
      resolve: ({ event }) => event.id,
    }),
    seq: t.int({
      description:
        'Position in the thread: 1, 2, 3 … without gaps. A viewer who was away sees how many it missed, and nothing else of them.',
      resolve: ({ event }) => event.seq,
    }),
    at: t.field({
      type: 'DateTime',
      description: 'When it was recorded, by the database’s clock; always later than its predecessor.',
      resolve: ({ event }) => event.at,
    }),
    cursor: t.field({
      type: 'Cursor',
      description: 'This event’s position: page from it, subscribe after it, acknowledge up to it.',
      resolve: ({ event }) => cursorOf(event),
    }),
    thread: t.field({
      type: ThreadNode,
      description: 'The thread whose record this is.',
      resolve: ({ event, viewerId }, _args, context) =>
        requireLook(context, { threadId: event.threadId, viewerId }),
    }),
  }),
});

const isType =
  (type: TimelineEventType) =>
  (value: unknown): boolean =>
    (value as EventView).event?.type === type;

const MessageContextObject = builder.objectRef<EventView<MessageEvent>>('MessageContext').implement({
  description: 'Hints for a user interface. Stored as given; the platform never branches on them.',
  fields: (t) => ({
    kind: t.string({
      nullable: true,
      description:
        'Known kinds: task_update, reminder, observation, spontaneous, correction. Others are kept.',
      resolve: ({ event }) => event.context?.kind ?? null,
    }),
    task: t.string({
      nullable: true,
      description: 'Names the task it is about.',
      resolve: ({ event }) => event.context?.task ?? null,
    }),
    originatingMessage: t.field({
      type: MessageNode,
      nullable: true,
      description: 'The message that led to this one; null where the viewer may not see it.',
      resolve: async ({ event, viewerId }, _args, context) => {
        const id = event.context?.originatingMessageId;
        const view = id === undefined ? null : await visibleEvent(context, id, viewerId);
        return view?.event.type === 'MESSAGE' ? eventView(view.event, viewerId) : null;
      },
    }),
  }),
});

/** seq of the retraction of a message, read now where the row at hand does not say. */
const retractionSeqOf = async (context: GraphQLContext, event: MessageEvent): Promise<number | null> => {
  if (event.retractionSeq !== undefined) return event.retractionSeq;
  const read = await context.loaders.eventAt.load({ threadId: event.threadId, seq: event.seq });
  return read?.type === 'MESSAGE' ? (read.retractionSeq ?? null) : null;
};

MessageNode.implement({
  description: 'Something a participant said. A message stays readable after its retraction.',
  interfaces: [builder.nodeInterfaceRef(), TimelineEventInterface],
  isTypeOf: isType('MESSAGE'),
  fields: (t) => ({
    sender: t.field({
      type: ParticipantNode,
      description: 'Who said it.',
      resolve: ({ event }, _args, context) => requireParticipant(context, event.senderId),
    }),
    content: t.string({
      description: 'The text; at most 256 KiB of UTF-8. Empty only where `data` is given.',
      resolve: ({ event }) => event.content,
    }),
    data: t.field({
      type: 'JSON',
      nullable: true,
      description: 'Structured content; at most 256 KiB.',
      resolve: ({ event }) => event.data,
    }),
    context: t.field({
      type: MessageContextObject,
      nullable: true,
      description: 'Hints for a user interface.',
      resolve: (view) => (view.event.context === null ? null : view),
    }),
    mentions: t.field({
      type: [ParticipantNode],
      description: 'Members whom the message addresses.',
      resolve: ({ event }, _args, context) =>
        Promise.all(event.mentionIds.map((id) => requireParticipant(context, id))),
    }),
    clientKey: t.string({
      nullable: true,
      description:
        'The idempotency key it was posted with: matches an optimistic copy with the real message.',
      resolve: ({ event }) => event.clientKey,
    }),
    agentHops: t.int({
      description: 'Messages by agents or units since the last human’s, this one included; 0 for a human’s.',
      resolve: ({ event }) => event.agentHops,
    }),
    isRetracted: t.boolean({
      description:
        'Whether its sender took it back: as of now for a viewer who is active, as of the end of its last window for one who is removed.',
      resolve: async (view, _args, context) => {
        const seq = await retractionSeqOf(context, view.event);
        if (seq === null) return false;
        const { event, viewerId } = view;
        return seq <= (await requireLook(context, { threadId: event.threadId, viewerId })).horizon;
      },
    }),
    retraction: t.field({
      type: RetractionNode,
      nullable: true,
      description: 'The event that took it back, if the viewer may see it.',
      resolve: async ({ event, viewerId }, _args, context) => {
        const seq = await retractionSeqOf(context, event);
        if (seq === null) return null;
        const retraction = await context.loaders.eventAt.load({ threadId: event.threadId, seq });
        if (retraction?.type !== 'RETRACTION') return null;
        return visibleOnly(context, retraction, viewerId);
      },
    }),
    isErased: t.boolean({
      description: 'Whether its text was erased; the message itself stays.',
      resolve: ({ event }) => event.isErased,
    }),
  }),
});

const ParticipantTransitionEnum = builder.enumType('ParticipantTransition', {
  description: 'How a member’s state changed.',
  values: {
    ADDED: { description: 'It became a member, at the opening of the thread.' },
    REMOVED: { description: 'It was removed, or left.' },
    READDED: { description: 'It was brought back.' },
  } as const,
});

StateChangedNode.implement({
  description: 'A member was removed or re-added. Its subject sees both, whatever lies between.',
  interfaces: [builder.nodeInterfaceRef(), TimelineEventInterface],
  isTypeOf: isType('PARTICIPANT_STATE_CHANGED'),
  fields: (t) => ({
    participant: t.field({
      type: ParticipantNode,
      description: 'Whose state changed.',
      resolve: ({ event }, _args, context) => requireParticipant(context, event.subjectId),
    }),
    member: t.field({
      type: ThreadParticipantObject,
      description: 'The same as a member of the thread, with its present state.',
      resolve: async ({ event, viewerId }, _args, context) => {
        const look = await requireLook(context, { threadId: event.threadId, viewerId });
        const member = (await context.loaders.members.load(look)).find(
          ({ participantId }) => participantId === event.subjectId,
        );
        if (member === undefined) throw notFound('Participant');
        return member;
      },
    }),
    transition: t.field({
      type: ParticipantTransitionEnum,
      description: 'What happened.',
      resolve: ({ event }) => (event.to === 'ACTIVE' ? 'READDED' : 'REMOVED'),
    }),
    from: t.field({
      type: ParticipantStateEnum,
      nullable: true,
      description: 'The state before; null for an addition.',
      resolve: ({ event }) => (event.to === 'ACTIVE' ? 'REMOVED' : 'ACTIVE'),
    }),
    to: t.field({
      type: ParticipantStateEnum,
      description: 'The state after.',
      resolve: ({ event }) => event.to,
    }),
    actor: t.field({
      type: ParticipantNode,
      nullable: true,
      description: 'Who did it: the member itself where it left; null for the user.',
      resolve: ({ event }, _args, context) =>
        event.actorId === null ? null : context.loaders.participant.load(event.actorId),
    }),
  }),
});

RetractionNode.implement({
  description: 'A sender took one of its messages back.',
  interfaces: [builder.nodeInterfaceRef(), TimelineEventInterface],
  isTypeOf: isType('RETRACTION'),
  fields: (t) => ({
    message: t.field({
      type: MessageNode,
      nullable: true,
      description: 'The message; null where the viewer may not see it.',
      resolve: (view, _args, context) => retractedMessage(context, view),
    }),
    reason: t.string({
      nullable: true,
      description: 'Why, at most 2 KiB; null where the viewer may not see the message.',
      resolve: async (view, _args, context) =>
        view.event.reason === null || (await retractedMessage(context, view)) === null
          ? null
          : view.event.reason,
    }),
    actor: t.field({
      type: ParticipantNode,
      description: 'Its sender.',
      resolve: ({ event }, _args, context) => requireParticipant(context, event.actorId),
    }),
  }),
});

const retractedMessage = async (
  context: GraphQLContext,
  { event, viewerId }: EventView<RetractionEvent>,
): Promise<EventView<MessageEvent> | null> => {
  const message = await context.loaders.eventAt.load({ threadId: event.threadId, seq: event.targetSeq });
  if (message?.type !== 'MESSAGE') return null;
  return visibleOnly(context, message, viewerId);
};

builder.objectRef<EventView<SystemEvent>>('SystemEvent').implement({
  description:
    'Something the platform recorded. Kinds: THREAD_OPENED, CONTINUED_AS, CONTINUES, TOOL_RESULT. More will come.',
  interfaces: [builder.nodeInterfaceRef(), TimelineEventInterface],
  isTypeOf: isType('SYSTEM'),
  fields: (t) => ({
    kind: t.string({ description: 'What was recorded.', resolve: ({ event }) => event.kind }),
    data: t.field({
      type: 'JSON',
      nullable: true,
      description:
        'Details; of THREAD_OPENED `{ transition, participantIds }`, of TOOL_RESULT `{ name, toolCallId, isError, output, runId }` with at most 4,000 characters of the output, and a runId only where a run made the call.',
      resolve: ({ event }) => event.data,
    }),
    relatedThread: t.field({
      type: ThreadNode,
      nullable: true,
      description: 'The thread this one continues, or is continued as; null once it is deleted.',
      resolve: ({ event, viewerId }, _args, context) =>
        event.relatedThreadId === null
          ? null
          : context.loaders.look.load({ threadId: event.relatedThreadId, viewerId }),
    }),
  }),
});
