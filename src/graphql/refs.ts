import type { MemoryEntry } from '../memory/entries.ts';
import type { Run } from '../runs/rows.ts';
import type { PadEntry } from '../scratchpads/pad.ts';
import type { Scratchpad } from '../scratchpads/rows.ts';
import type { Member } from '../threads/members.ts';
import type {
  MessageEvent,
  RetractionEvent,
  StateChangedEvent,
  TimelineEvent,
  TimelineEventType,
} from '../timeline/events.ts';
import type { Look } from '../timeline/look.ts';
import { builder } from './builder.ts';

/**
 * Types that name each other need their references before their fields. An object whose answer depends on the viewer
 * carries the viewer: a field without `as` inherits the nearest enclosing one.
 */
export const ThreadNode = builder.objectRef<Look>('Thread');
export const TimelineObject = builder.objectRef<Look>('Timeline');
export const ThreadParticipantObject = builder.objectRef<Member>('ThreadParticipant');

/** What is seen by one viewer. */
export interface Viewed {
  readonly viewerId: string | null;
}

/** The same viewer's view of something else. Who it is stays unasked: what asks nothing of it is the same for everybody. */
export const viewedBy = <Rest extends object>(by: Viewed, rest: Rest): Rest & Viewed => ({
  ...rest,
  get viewerId() {
    return by.viewerId;
  },
});

/** An event as one viewer sees it: whatever hangs on it is answered for that viewer. */
export interface EventView<Event extends TimelineEvent = TimelineEvent> {
  readonly __typename: (typeof EVENT_TYPENAME)[TimelineEventType];
  readonly event: Event;
  readonly viewerId: string | null;
}

export const EVENT_TYPENAME = {
  MESSAGE: 'Message',
  PARTICIPANT_STATE_CHANGED: 'ParticipantStateChanged',
  RETRACTION: 'Retraction',
  SYSTEM: 'SystemEvent',
} as const satisfies Record<TimelineEventType, string>;

export const TimelineEventInterface = builder.interfaceRef<EventView>('TimelineEvent');
export const MessageNode = builder.objectRef<EventView<MessageEvent>>('Message');
export const RetractionNode = builder.objectRef<EventView<RetractionEvent>>('Retraction');
export const StateChangedNode = builder.objectRef<EventView<StateChangedEvent>>('ParticipantStateChanged');

/** A scratchpad as one viewer sees it: whatever hangs on it is answered for that viewer. */
export interface ScratchpadView {
  readonly pad: Scratchpad;
  readonly viewerId: string | null;
}

/** An entry of a scratchpad as one viewer sees it. Its id says where it stands. */
export interface EntryView {
  readonly __typename: 'ScratchpadEntry';
  readonly entry: PadEntry;
  readonly viewerId: string | null;
}

/** A run as one viewer sees it. `visibleRun` of src/runs/views.graphql.ts makes it. */
export interface RunView {
  readonly __typename: 'Run';
  readonly run: Run;
  readonly viewerId: string | null;
}

export const RunNode = builder.objectRef<RunView>('Run');
export const ScratchpadNode = builder.objectRef<ScratchpadView>('Scratchpad');
export const ScratchpadEntryNode = builder.objectRef<EntryView>('ScratchpadEntry');

/** A memory as one viewer sees it. */
export interface MemoryView {
  readonly __typename: 'MemoryEntry';
  readonly memory: MemoryEntry;
  readonly viewerId: string | null;
  /** In which thread it is recalled (null: in none in particular): so what it derives from is. */
  readonly recalledIn: string | null;
}

export const MemoryEntryNode = builder.objectRef<MemoryView>('MemoryEntry');
