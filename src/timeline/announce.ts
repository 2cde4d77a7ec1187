import type { Bus } from '../live/bus.ts';
import {
  encodeEvent,
  encodePosition,
  encodeThreadNotice,
  GONE,
  type ThreadNotice,
  threadChannel,
  userChannel,
} from './live.ts';
import type { Announce } from './timeline.ts';

/**
 * Tells followers after a commit that there is more. Nobody waits for it: what is lost here is found by the next poll.
 */
export const announceOn = (bus: Bus, emptying: { wake(): void }): Announce => {
  const publish = (channel: string, message: string): void => void bus.publish(channel, message);
  const tell = (ownerId: string, notice: ThreadNotice): void =>
    publish(userChannel(ownerId), encodeThreadNotice(notice));
  return {
    event(event) {
      publish(threadChannel(event.threadId), encodeEvent(event));
      tell(event.ownerId, { threadId: event.threadId, seq: event.seq });
    },
    moved(ownerId, threadId, seq) {
      publish(threadChannel(threadId), encodePosition(seq));
      tell(ownerId, { threadId, seq });
    },
    changed(ownerId, threadId, participantId) {
      tell(ownerId, { threadId, ...(participantId === undefined ? {} : { participantId }) });
    },
    deleted(ownerId, threadId, memberIds) {
      emptying.wake();
      publish(threadChannel(threadId), GONE);
      tell(ownerId, { threadId, deletedFor: memberIds });
    },
  };
};
