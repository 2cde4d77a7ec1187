import type { ScratchpadDelivery } from '../scratchpads/deliveries.ts';
import type { TimelineEvent } from '../timeline/events.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import { type ControlNotice, endOf, type MessageDelivery } from './handOut.ts';

export type InboxChannel = 'CONTROL' | 'MESSAGE' | 'OBSERVATION';

/** What one payload of an inbox says. */
export interface InboxDelivery {
  readonly channel: InboxChannel;
  readonly viewerId: string;
  readonly deliveryId: string | null;
  /** The thread it is about; where that is deleted before the payload goes out, the payload does not. */
  readonly threadId: string | null;
  readonly runId: string | null;
  readonly deletedThreadId: string | null;
  readonly events: readonly TimelineEvent[];
  readonly changes: readonly ScratchpadDelivery[];
  /** Of a message the position of its last. Not named `cursor`: an inbox is not resumed from a place. */
  readonly upTo: string | null;
  /** Null: as the thread's look says. */
  readonly pendingCount: number | null;
  readonly attempt: number;
  readonly leaseExpiresAt: string | null;
  readonly notice: string | null;
  readonly ended: DeliveryEnd | null;
}

const EMPTY = {
  deliveryId: null,
  threadId: null,
  runId: null,
  deletedThreadId: null,
  events: [],
  changes: [],
  upTo: null,
  pendingCount: null,
  attempt: 1,
  leaseExpiresAt: null,
  notice: null,
  ended: null,
} as const;

const messageDelivery = (viewerId: string, taken: MessageDelivery): InboxDelivery => ({
  ...EMPTY,
  ...taken,
  viewerId,
  upTo: endOf(taken.events),
});

const controlDelivery = (viewerId: string, told: ControlNotice): InboxDelivery => {
  const isGone = told.kind === 'THREAD_DELETED';
  return {
    ...EMPTY,
    channel: 'CONTROL',
    viewerId,
    threadId: isGone ? null : told.threadId,
    deletedThreadId: isGone ? told.threadId : null,
    runId: told.runId,
    events: told.events,
    notice: told.text === null ? told.kind : `${told.kind}: ${told.text}`,
  };
};

export const handedDelivery = (viewerId: string, given: ControlNotice | MessageDelivery): InboxDelivery =>
  given.channel === 'MESSAGE' ? messageDelivery(viewerId, given) : controlDelivery(viewerId, given);

/** What a digest tells. */
export interface Observed {
  readonly events: readonly TimelineEvent[];
  readonly changes: readonly ScratchpadDelivery[];
  /** The rest of it comes with the next. */
  readonly isCut: boolean;
}

export const observation = (viewerId: string, { events, changes, isCut }: Observed): InboxDelivery => ({
  ...EMPTY,
  channel: 'OBSERVATION',
  viewerId,
  events,
  changes,
  notice: isCut ? 'MORE' : null,
});

/** The last payload of a stream. */
export const lastDelivery = (viewerId: string, ended: DeliveryEnd): InboxDelivery => ({
  ...EMPTY,
  channel: 'CONTROL',
  viewerId,
  notice: ended,
  ended,
});
