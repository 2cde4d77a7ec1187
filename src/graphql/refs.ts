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

export const ScratchpadNode = builder.objectRef<ScratchpadView>('Scratchpad');
export const ScratchpadEntryNode = builder.objectRef<EntryView>('ScratchpadEntry');
