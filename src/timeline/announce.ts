import type { Bus } from '../live/bus.ts';
import {
  encodeEvent,
  encodePosition,
  encodeThreadNotice,
  GONE,
  INBOX_FREE,
  inboxChannel,
  type ThreadNotice,
  threadChannel,
  userChannel,
} from './live.ts';
import type { Announce } from './timeline.ts';

/** Lists tell a thread at most once a second: what is appended within this time is announced to them as one. */
const GATHER_MS = 100;

/**
 * Tells followers after a commit that there is more. Nobody waits for it: what is lost here is found by the next poll.
 * `emptying` is woken when there is something to empty.
 */
export const announceOn = (
  bus: Bus,
  emptying: { wake(): void },
): Announce & {
  /** Announces now what was being gathered. */
  close(): void;
} => {
  const publish = (channel: string, message: string): void => void bus.publish(channel, message);
  const tell = (ownerId: string, notice: ThreadNotice): void =>
    publish(userChannel(ownerId), encodeThreadNotice(notice));

  const gathered = new Map<string, { readonly ownerId: string; first: number; last: number }>();
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    for (const [threadId, { ownerId, first, last }] of gathered)
      tell(ownerId, { threadId, seq: first, last });
    gathered.clear();
  };
  const gather = (ownerId: string, threadId: string, seq: number): void => {
    if (gathered.size === 0) timer = setTimeout(flush, GATHER_MS);
    const range = gathered.get(threadId);
    if (range === undefined) gathered.set(threadId, { ownerId, first: seq, last: seq });
    else {
      range.first = Math.min(range.first, seq);
      range.last = Math.max(range.last, seq);
    }
  };

  return {
    event(event) {
      publish(threadChannel(event.threadId), encodeEvent(event));
      if (event.type === 'PARTICIPANT_STATE_CHANGED') publish(inboxChannel(event.subjectId), '');
      gather(event.ownerId, event.threadId, event.seq);
    },
    moved(ownerId, threadId, seq) {
      publish(threadChannel(threadId), encodePosition(seq));
      gather(ownerId, threadId, seq);
    },
    changed(ownerId, threadId, participantId) {
      tell(ownerId, { threadId, ...(participantId === undefined ? {} : { participantId }) });
    },
    deleted(ownerId, threadId, memberIds) {
      emptying.wake();
      publish(threadChannel(threadId), GONE);
      tell(ownerId, { threadId, deletedFor: memberIds });
      for (const id of memberIds) publish(inboxChannel(id), '');
    },
    woken(participantIds) {
      for (const id of participantIds) publish(inboxChannel(id), '');
    },
    freed(participantId) {
      publish(inboxChannel(participantId), INBOX_FREE);
    },
    close: flush,
  };
};
