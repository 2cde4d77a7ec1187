import { timelineCursor } from '../shared/cursors.ts';
import { newId } from '../shared/ids.ts';
import { type Database, statement } from '../storage/database.ts';
import { eventFromRow, type TimelineEvent, type TimelineRow } from '../timeline/events.ts';
import type { Inbox } from './inboxes.ts';

/** What an inbox is told at once. Stable words; more may come. */
export type ControlKind =
  | 'REMOVED'
  | 'READDED'
  | 'RUN_ASSIGNED'
  | 'RUN_CANCELLED'
  | 'MEMORY_POLICY_CHANGED'
  | 'THREAD_DELETED'
  | 'MESSAGE_RETRACTED';

export interface ControlNotice {
  readonly channel: 'CONTROL';
  /** Names it to `take`, once it came. */
  readonly number: string;
  readonly kind: ControlKind;
  readonly threadId: string | null;
  readonly runId: string | null;
  readonly text: string | null;
  readonly events: readonly TimelineEvent[];
}

/** One message of a thread, or a batch, leased to whoever took it. */
export interface MessageDelivery {
  readonly channel: 'MESSAGE';
  readonly deliveryId: string;
  readonly threadId: string;
  /** 1 for the first, one more each time the lease before ran out. */
  readonly attempt: number;
  /** RFC 3339 in UTC, by the database's clock. */
  readonly leaseExpiresAt: string;
  /** Messages by others in this thread that are not acknowledged, these included. */
  readonly pendingCount: number;
  /** Ascending, never empty. */
  readonly events: readonly TimelineEvent[];
}

/** What handing out needs. */
export interface Handing {
  readonly database: Database;
  readonly leaseSeconds: number;
  /** Of one answer, at most. */
  readonly answerBytes: number;
}

export interface TakeOptions {
  /** Of this thread only. */
  readonly threadId: string | null;
  /** At most so many messages in each. */
  readonly batch: number;
  readonly onlyMentions: boolean;
  /** The stream that takes; null: a pull. */
  readonly holder: string | null;
  /** Numbers of notices that came. A pull proves by asking that the former answer did. */
  readonly told: readonly string[];
  /** What to call deliveries of messages: at most so many are given. Notices come besides. */
  readonly deliveryIds: readonly string[];
  /** Nothing is given if something was given under the first of these names before. */
  readonly once: boolean;
}

/** Names for so many deliveries. */
export const newDeliveryIds = (count: number): string[] =>
  Array.from({ length: count }, () => newId('Delivery'));

/** `TAKEN_OVER`: the inbox is another stream's by now. */
export type HandedOut = 'TAKEN_OVER' | readonly (ControlNotice | MessageDelivery)[];

type Raw =
  | { readonly channel: 'TAKEN_OVER' | 'AGAIN' }
  | (Omit<ControlNotice, 'events'> & { readonly events: TimelineRow[] | null })
  | (Omit<MessageDelivery, 'events'> & { readonly events: TimelineRow[] });

const TAKE = statement<{ given: Raw }>(
  'take_inbox',
  'SELECT t AS given FROM take_inbox($1, $2, $3, $4, $5, $6, $7, $8, $9::text[], $10, $11::bigint[], $12, $13) t',
);

const MOST_BYTES = 4 * 1_048_576;

/** So much of texts fits into an answer in whatever characters they are: one takes six bytes there at most. */
export const fittingBytes = (answerBytes: number): number =>
  Math.min(MOST_BYTES, Math.floor(answerBytes / 8));

/**
 * What the inbox may be given now: notices first, then deliveries, those first that wait longest; as much as fits into an
 * answer. One statement, but where much has to be looked through that has nothing to give any more.
 * Errors: NOT_FOUND, FORBIDDEN (a person), PARTICIPANT_NOT_ACTIVE (in `threadId`).
 */
export const takeInbox = async (
  { database, leaseSeconds, answerBytes }: Handing,
  inbox: Inbox,
  { threadId, batch, onlyMentions, holder, told, deliveryIds, once }: TakeOptions,
): Promise<HandedOut> => {
  const values = [
    inbox.ownerId,
    inbox.participantId,
    inbox.runId,
    threadId ?? inbox.threadId,
    deliveryIds.length,
    batch,
    onlyMentions,
    holder,
    deliveryIds,
    leaseSeconds,
    told,
    fittingBytes(answerBytes),
    once,
  ];
  for (;;) {
    const rows = await database.query(TAKE, values);
    if (rows.some(({ given: raw }) => raw.channel === 'TAKEN_OVER')) return 'TAKEN_OVER';
    if (!rows.some(({ given: raw }) => raw.channel === 'AGAIN'))
      return rows.flatMap(({ given: raw }) => (isGiven(raw) ? [handedOut(raw)] : []));
  }
};

type RawGiven = Exclude<Raw, { readonly channel: 'TAKEN_OVER' | 'AGAIN' }>;

const isGiven = (raw: Raw): raw is RawGiven => raw.channel === 'CONTROL' || raw.channel === 'MESSAGE';

const handedOut = (raw: RawGiven): ControlNotice | MessageDelivery => ({
  ...raw,
  events: (raw.events ?? []).map(handedEvent),
});

/** It may be looked at a while after it was read: whether it is retracted is read then. */
export const handedEvent = (row: TimelineRow): TimelineEvent => {
  const event = eventFromRow(row);
  return event.type === 'MESSAGE' ? { ...event, retractionSeq: undefined } : event;
};

/** Where a delivery ends: acknowledge up to there. */
export const endOf = (events: readonly TimelineEvent[]): string | null => {
  const last = events.at(-1);
  return last === undefined ? null : timelineCursor(last.threadId, last.seq, last.id);
};
