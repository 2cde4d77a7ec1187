import { createApi } from './api.ts';
import { followThread, type LiveEvent } from './follow.ts';
import { followPad, type PadChange } from './followPad.ts';
import { openThread } from './members.ts';
import type { Recording } from './operations.ts';
import { readPad } from './pad.ts';
import { type Played, play } from './play.ts';
import { type Report, reportOn } from './report.ts';
import { startOf } from './start.ts';
import { readView } from './view.ts';

interface ReplayOptions extends Recording {
  /** `http://…/graphql` */
  readonly url: string;
  readonly apiKey: string;
  readonly speed: number | null;
  readonly prefix: string;
  /** A handle of the file, to be followed live while it is replayed. */
  readonly follow: string | undefined;
  onMember(made: number): void;
  onOpened(threadId: string): void;
  onEvent(event: LiveEvent): void;
  onChange(change: PadChange): void;
  onDone(done: number): void;
  onPlayed(): void;
  onRead(read: number): void;
}

/** The whole of it: participants, thread, scratchpad, every operation in order, and then what each participant sees. */
export const replay = async (
  options: ReplayOptions,
): Promise<Played & { readonly report: Report; readonly seconds: number }> => {
  const { url, apiKey, participants, prefix } = options;
  const api = createApi(url);
  let made = 0;
  const opened = await openThread({
    api,
    apiKey,
    participants,
    prefix,
    onMember: () => options.onMember(++made),
  });
  const { threadId, scratchpadId, members } = opened;
  const socketUrl = url.replace(/^http/, 'ws');
  options.onOpened(threadId);
  const member = options.follow === undefined ? undefined : members.get(options.follow);
  const following =
    member &&
    followThread({
      socketUrl,
      threadId,
      member,
      after: await startOf(api, apiKey, threadId),
      onEvent: options.onEvent,
    });
  const followingPad =
    member &&
    followPad({ socketUrl, scratchpadId, member, after: opened.padStart, onChange: options.onChange });
  try {
    const startedAt = performance.now();
    const played = await play({ ...options, ...opened, api, onDone: options.onDone });
    const seconds = (performance.now() - startedAt) / 1_000;
    if (following) await following.received((await readView(api, member.token, threadId)).events.length);
    if (followingPad) {
      const { entries, text } = await readPad(api, member.token, scratchpadId);
      await followingPad.received(entries.length, text ?? followingPad.text());
    }
    options.onPlayed();
    let read = 0;
    const report = await reportOn({ api, apiKey, ...opened, onRead: () => options.onRead(++read) });
    return { ...played, report, seconds };
  } finally {
    await following?.stop();
    await followingPad?.stop();
  }
};
