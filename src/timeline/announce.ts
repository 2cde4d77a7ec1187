import type { Bus } from '../live/bus.ts';
import { encodeEvent, GONE, MOVED, threadChannel, userChannel } from './live.ts';
import type { Announce } from './timeline.ts';

/**
 * Tells followers after a commit that there is more. Nobody waits for it: what is lost here is found by the next poll.
 */
export const announceOn = (bus: Bus): Announce => {
  const publish = (channel: string, message: string): void => void bus.publish(channel, message);
  return {
    event(event) {
      publish(threadChannel(event.threadId), encodeEvent(event));
      publish(userChannel(event.ownerId), event.threadId);
    },
    moved(ownerId, threadId) {
      publish(threadChannel(threadId), MOVED);
      publish(userChannel(ownerId), threadId);
    },
    changed(ownerId, threadId) {
      publish(userChannel(ownerId), threadId);
    },
    deleted(ownerId, threadId) {
      publish(threadChannel(threadId), GONE);
      publish(userChannel(ownerId), threadId);
    },
  };
};
