import { z } from 'zod';
import type { TenantActor } from '../auth/actor.ts';
import type { Loaders } from '../loaders.ts';
import type { Run } from '../runs/rows.ts';
import { seesRun } from '../runs/visibility.ts';
import { findEntry } from '../scratchpads/loading.ts';
import { timelineCursor } from '../shared/cursors.ts';
import { LogGone, notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import type {
  MessageEvent,
  RetractionEvent,
  StateChangedEvent,
  SystemEvent,
  TimelineEvent,
} from '../timeline/events.ts';
import { isVisible, type Look } from '../timeline/look.ts';
import { cursor, id, strict, time, union } from './schemas.ts';

export const ParticipantRef = strict('ParticipantRef', 'Who somebody is.', {
  id: id('The participant.'),
  handle: z.string().describe('Unique per user.'),
  display_name: z.string().describe('For people.'),
  kind: z.enum(['HUMAN', 'AGENT', 'UNIT']).describe('What it is.'),
});

const base = {
  id: id('The event.'),
  thread_id: id('Its thread.'),
  seq: z.int().describe('Position in the thread: 1, 2, 3 … without gaps.'),
  at: time('When it was recorded, by the database’s clock.'),
  cursor: cursor('Its position: page or subscribe after it.'),
};

export const Message = strict('Message', 'Something a participant said.', {
  type: z.literal('MESSAGE'),
  ...base,
  sender: ParticipantRef,
  content: z.string().describe('The text.'),
  data: z.unknown().describe('Structured content, or null.'),
  context: z
    .strictObject({
      kind: z.string().nullable(),
      task: z.string().nullable(),
      originating_message_id: z.string().nullable(),
    })
    .nullable()
    .describe('Hints for a user interface.'),
  mentions: z.array(ParticipantRef).describe('Members whom it addresses.'),
  source_ids: z.array(z.string()).describe('What it derives from, as far as the viewer may see it.'),
  client_key: z.string().nullable().describe('The idempotency key it was posted with.'),
  run_id: z
    .string()
    .nullable()
    .describe('The run in which it was written; null where none was, or the viewer may not see it.'),
  agent_hops: z.int().describe('Messages by agents or units since the last human’s.'),
  is_retracted: z.boolean().describe('Whether its sender took it back.'),
  retraction_id: z.string().nullable().describe('The event that did, if the viewer may see it.'),
  is_erased: z.boolean().describe('Whether its text was erased.'),
});

export const StateChanged = strict('ParticipantStateChanged', 'A member was removed or re-added.', {
  type: z.literal('PARTICIPANT_STATE_CHANGED'),
  ...base,
  participant: ParticipantRef,
  transition: z.enum(['REMOVED', 'READDED']).describe('What happened.'),
  from: z.enum(['ACTIVE', 'REMOVED']).describe('The state before.'),
  to: z.enum(['ACTIVE', 'REMOVED']).describe('The state after.'),
  actor: ParticipantRef.nullable().describe('Who did it; null for the user.'),
});

export const Retraction = strict('Retraction', 'A sender took one of its messages back.', {
  type: z.literal('RETRACTION'),
  ...base,
  message_id: z.string().nullable().describe('The message; null where the viewer may not see it.'),
  reason: z.string().nullable().describe('Why; null where the viewer may not see the message.'),
  actor: ParticipantRef,
});

const System = strict('SystemEvent', 'Something the platform recorded.', {
  type: z.literal('SYSTEM'),
  ...base,
  kind: z.string().describe('THREAD_OPENED, CONTINUED_AS, CONTINUES, TOOL_RESULT; more will come.'),
  data: z
    .unknown()
    .describe(
      'Details, or null: of TOOL_RESULT { name, toolCallId, isError, output, runId }, of THREAD_OPENED { transition, participantIds }.',
    ),
  related_thread_id: z.string().nullable().describe('The thread it names, if the viewer may know of it.'),
});

export const Event = union('TimelineEvent', 'One entry of a thread’s record.', [
  Message,
  StateChanged,
  Retraction,
  System,
]);

export type EventBody = z.output<typeof Event>;

export const cursorOf = ({ threadId, seq, id: eventId }: TimelineEvent): string =>
  timelineCursor(threadId, seq, eventId);

/** Events as one viewer sees them, with the looks and reads of one request. */
export const createEventBodies = (actor: TenantActor, loaders: Loaders, viewerId: string | null) => {
  const lookAt = (threadId: string): Promise<Look | null> => loaders.look.load({ threadId, viewerId });

  const requireLook = async (threadId: string): Promise<Look> => {
    const look = await lookAt(threadId);
    if (look === null) throw new LogGone('Thread', threadId);
    return look;
  };

  const visible = async (event: TimelineEvent | null): Promise<TimelineEvent | null> => {
    if (event === null) return null;
    const look = await lookAt(event.threadId);
    return look !== null && isVisible(look, event) ? event : null;
  };

  const participant = async (participantId: string): Promise<z.output<typeof ParticipantRef>> => {
    const found = await loaders.participant.load(participantId);
    if (found === null) throw notFound('Participant');
    const { id: foundId, handle, displayName, kind } = found;
    return { id: foundId, handle, display_name: displayName, kind };
  };

  const shared = (event: TimelineEvent) => ({
    id: event.id,
    thread_id: event.threadId,
    seq: event.seq,
    at: event.at,
    cursor: cursorOf(event),
  });

  const visibleEvent = async (eventId: string): Promise<TimelineEvent | null> =>
    visible(await loaders.event.load(eventId));

  const visibleSources = async ({ sourceIds, threadId }: MessageEvent): Promise<string[]> => {
    const found = await Promise.all(
      sourceIds.map(async (one): Promise<{ readonly id: string } | null> => {
        if (isId('ScratchpadEntry', one)) return findEntry(loaders, one, viewerId);
        if (isId('MemoryEntry', one)) return loaders.memory.load({ id: one, viewerId, threadId });
        return visibleEvent(one);
      }),
    );
    return found.flatMap((one) => (one === null ? [] : [one.id]));
  };

  const visibleRun = async (runId: string | null): Promise<Run | null> => {
    const run = runId === null ? null : await loaders.run.load(runId);
    return run !== null && seesRun(actor, run, viewerId) ? run : null;
  };

  /** seq of what took a message back, read now where the row at hand does not say. */
  const retractionSeqOf = async (event: MessageEvent): Promise<number | null> => {
    if (event.retractionSeq !== undefined) return event.retractionSeq;
    const read = await loaders.eventAt.load({ threadId: event.threadId, seq: event.seq });
    return read?.type === 'MESSAGE' ? (read.retractionSeq ?? null) : null;
  };

  const message = async (event: MessageEvent): Promise<z.output<typeof Message>> => {
    const seq = await retractionSeqOf(event);
    const { context } = event;
    const originatingMessageId = context?.originatingMessageId;
    const [sender, mentions, sourceIds, run, origin, retraction, look] = await Promise.all([
      participant(event.senderId),
      Promise.all(event.mentionIds.map(participant)),
      visibleSources(event),
      visibleRun(event.runId),
      originatingMessageId === undefined ? null : visibleEvent(originatingMessageId),
      seq === null ? null : visible(await loaders.eventAt.load({ threadId: event.threadId, seq })),
      requireLook(event.threadId),
    ]);
    return {
      type: 'MESSAGE',
      ...shared(event),
      sender,
      content: event.content,
      data: event.data ?? null,
      context: context && {
        kind: context.kind ?? null,
        task: context.task ?? null,
        originating_message_id: origin?.id ?? null,
      },
      mentions,
      source_ids: sourceIds,
      client_key: event.clientKey,
      run_id: run?.id ?? null,
      agent_hops: event.agentHops,
      is_retracted: seq !== null && seq <= look.horizon,
      retraction_id: retraction?.id ?? null,
      is_erased: event.isErased,
    };
  };

  const stateChanged = async (event: StateChangedEvent): Promise<z.output<typeof StateChanged>> => ({
    type: 'PARTICIPANT_STATE_CHANGED',
    ...shared(event),
    participant: await participant(event.subjectId),
    transition: event.to === 'ACTIVE' ? 'READDED' : 'REMOVED',
    from: event.to === 'ACTIVE' ? 'REMOVED' : 'ACTIVE',
    to: event.to,
    actor: event.actorId === null ? null : await participant(event.actorId),
  });

  const retraction = async (event: RetractionEvent): Promise<z.output<typeof Retraction>> => {
    const target = await visible(
      await loaders.eventAt.load({ threadId: event.threadId, seq: event.targetSeq }),
    );
    return {
      type: 'RETRACTION',
      ...shared(event),
      message_id: target?.id ?? null,
      reason: target === null ? null : event.reason,
      actor: await participant(event.actorId),
    };
  };

  const system = async (event: SystemEvent): Promise<z.output<typeof System>> => {
    const related = event.relatedThreadId === null ? null : await lookAt(event.relatedThreadId);
    return {
      type: 'SYSTEM',
      ...shared(event),
      kind: event.kind,
      data: event.data ?? null,
      related_thread_id: related?.threadId ?? null,
    };
  };

  const body = (event: TimelineEvent): Promise<EventBody> => {
    switch (event.type) {
      case 'MESSAGE':
        return message(event);
      case 'PARTICIPANT_STATE_CHANGED':
        return stateChanged(event);
      case 'RETRACTION':
        return retraction(event);
      case 'SYSTEM':
        return system(event);
      default:
        return event satisfies never;
    }
  };

  return { requireLook, participant, body, message, stateChanged, retraction };
};
