import { jsonSize } from '../shared/jsonSize.ts';

/** The Timeline's kinds of events, as every service, door and follower sees them. */
interface EventBase {
  /** `seq`, under the name live delivery uses. */
  readonly position: number;
  readonly ownerId: string;
  readonly threadId: string;
  /** 1, 2, 3 … per thread, without gaps, in commit order. */
  readonly seq: number;
  readonly id: string;
  /** RFC 3339 in UTC with microseconds, as the database holds it. */
  readonly at: string;
  /** Members of this thread who do not see it (system events that name a thread they are not in). */
  readonly hiddenFrom: readonly string[];
}

export interface MessageEvent extends EventBase {
  readonly type: 'MESSAGE';
  readonly senderId: string;
  readonly content: string;
  readonly data: unknown;
  /** Its body is gone; the event itself stays. */
  readonly isErased: boolean;
  readonly context: MessageContext | null;
  readonly mentionIds: readonly string[];
  readonly sourceIds: readonly string[];
  readonly runId: string | null;
  readonly clientKey: string | null;
  readonly agentHops: number;
  /** seq of the event that retracted it, when this row was read; undefined where that was not read. */
  readonly retractionSeq: number | null | undefined;
}

export interface MessageContext {
  readonly kind?: string;
  readonly task?: string;
  readonly originatingMessageId?: string;
}

export type MemberState = 'ACTIVE' | 'REMOVED';

export interface StateChangedEvent extends EventBase {
  readonly type: 'PARTICIPANT_STATE_CHANGED';
  readonly subjectId: string;
  readonly to: MemberState;
  /** Null: the owner. */
  readonly actorId: string | null;
}

export interface RetractionEvent extends EventBase {
  readonly type: 'RETRACTION';
  readonly actorId: string;
  readonly targetSeq: number;
  readonly reason: string | null;
}

export interface SystemEvent extends EventBase {
  readonly type: 'SYSTEM';
  readonly kind: string;
  readonly data: unknown;
  readonly relatedThreadId: string | null;
}

export type TimelineEvent = MessageEvent | StateChangedEvent | RetractionEvent | SystemEvent;
export type TimelineEventType = TimelineEvent['type'];

/** A row of the view `timeline_rows`. */
export interface TimelineRow {
  owner_id: string;
  thread_id: string;
  seq: number;
  id: string;
  type: TimelineEventType;
  at: string;
  sender_id: string | null;
  agent_hops: number | null;
  context: MessageContext | null;
  mention_ids: string[];
  source_ids: string[];
  run_id: string | null;
  client_key: string | null;
  content: string | null;
  data: unknown;
  subject_id: string | null;
  to_state: MemberState | null;
  actor_id: string | null;
  target_seq: number | null;
  reason: string | null;
  kind: string | null;
  related_thread_id: string | null;
  hidden_from: string[];
  retraction_seq: number | null;
}

/** About what the bodies of events hold: the rest of an event is small. */
export const bytesOfEvents = (events: readonly (TimelineEvent | null)[]): number =>
  events.reduce(
    (sum, event) =>
      event?.type === 'MESSAGE' ? sum + event.content.length + jsonSize(event.data, Infinity) : sum,
    0,
  );

export const eventFromRow = (row: TimelineRow): TimelineEvent => {
  const base: EventBase = {
    position: row.seq,
    ownerId: row.owner_id,
    threadId: row.thread_id,
    seq: row.seq,
    id: row.id,
    at: row.at,
    hiddenFrom: row.hidden_from,
  };
  switch (row.type) {
    case 'MESSAGE':
      return {
        ...base,
        type: row.type,
        senderId: present(row.sender_id),
        content: row.content ?? '',
        data: row.data,
        isErased: row.content === null,
        context: row.context,
        mentionIds: row.mention_ids,
        sourceIds: row.source_ids,
        runId: row.run_id,
        clientKey: row.client_key,
        agentHops: row.agent_hops ?? 0,
        retractionSeq: row.retraction_seq,
      };
    case 'PARTICIPANT_STATE_CHANGED':
      return {
        ...base,
        type: row.type,
        subjectId: present(row.subject_id),
        to: present(row.to_state),
        actorId: row.actor_id,
      };
    case 'RETRACTION':
      return {
        ...base,
        type: row.type,
        actorId: present(row.actor_id),
        targetSeq: present(row.target_seq),
        reason: row.reason,
      };
    case 'SYSTEM':
      return {
        ...base,
        type: row.type,
        kind: present(row.kind),
        data: row.data,
        relatedThreadId: row.related_thread_id,
      };
    default:
      return row.type satisfies never;
  }
};

const present = <T>(value: T | null): T => {
  if (value === null) throw new Error('A timeline row lacks a column of its type.');
  return value;
};
