import type { Bus } from '../live/bus.ts';
import { GONE } from '../timeline/live.ts';
import type { Announce } from '../timeline/timeline.ts';
import { type PadAddress, padChannel } from './keys.ts';

/** Says that a thread has a pad now, to those who wait for it. The message is the pad's id; a lost one costs latency. */
export const threadPadChannel = (threadId: string): string => `live:threadpad:${threadId}`;

/** Who is told after a commit. Never awaited by the writer; losing it costs latency only. */
export interface PadNotices {
  created(pad: PadAddress): void;
  changed(pad: PadAddress): void;
  deleted(pad: PadAddress): void;
  /** With its thread, of which everybody is told anyway. */
  deletedWithThread(scratchpadId: string): void;
}

export const padNoticesOn = (bus: Bus, announce: Pick<Announce, 'changed'>): PadNotices => {
  const publish = (channel: string, message: string): void => void bus.publish(channel, message);
  return {
    created({ ownerId, threadId, scratchpadId }) {
      publish(threadPadChannel(threadId), scratchpadId);
      announce.changed(ownerId, threadId);
    },
    changed({ ownerId, threadId }) {
      announce.changed(ownerId, threadId);
    },
    deleted({ ownerId, threadId, scratchpadId }) {
      publish(padChannel(scratchpadId), GONE);
      announce.changed(ownerId, threadId);
    },
    deletedWithThread(scratchpadId) {
      publish(padChannel(scratchpadId), GONE);
    },
  };
};
