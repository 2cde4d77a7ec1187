import type { Logs } from '../live/logs.ts';
import { anyReady, Lookahead } from '../live/lookahead.ts';
import type { Followed } from '../live/source.ts';
import { stopOn } from '../live/stopping.ts';
import type { TimelineEvent } from '../timeline/events.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import { logKey } from '../timeline/live.ts';
import type { Look } from '../timeline/look.ts';
import type { Looks } from '../timeline/looks.ts';
import type { Access } from './access.ts';
import { Activity } from './activity.ts';
import { Deliveries, type Reader, type ScratchpadDelivery, threadSeqOf } from './deliveries.ts';
import type { PadAddress } from './keys.ts';
import { padLogKey } from './log.ts';
import { makingKey, type PadMade } from './making.ts';
import type { PadChange, PadPosition } from './pad.ts';
import type { PadAsk, Reading } from './reading.ts';

export interface FollowingDeps {
  readonly access: Access;
  readonly looks: Looks;
  readonly reading: Reading;
  readonly threads: Logs<TimelineEvent>;
  readonly pads: Logs<PadChange>;
  readonly making: Logs<PadMade>;
}

export interface FollowingStart {
  readonly reader: Reader;
  readonly look: Look;
  /** null: the thread has none yet. */
  readonly pad: PadAddress | null;
  readonly position: PadPosition;
  readonly cursor: string;
  /** Said right after the first payload. */
  readonly news: 'CREATED' | 'RESET' | null;
}

/** Why reading goes on in another way: the pad's log is gone under its name, or the stream ends. */
type Turn = 'GONE' | DeliveryEnd | 'STOPPED';

const PAUSE_MS = 250;

/** Reads a pad's log, and beside it the thread's, by which it decides what the viewer may see. */
export const following = async function* (
  deps: FollowingDeps,
  { reader, look, pad: padAtFirst, position, cursor, news }: FollowingStart,
  stop: AbortSignal,
): AsyncGenerator<ScratchpadDelivery> {
  const { ownerId, threadId } = reader;
  const activity = new Activity(look);
  const scratchpadId = news === 'CREATED' ? null : (padAtFirst?.scratchpadId ?? null);
  const deliveries = new Deliveries(reader, activity, { scratchpadId, position, cursor });
  let pad = padAtFirst;
  const thread = new Lookahead(deps.threads.follow(logKey(ownerId, threadId), look.lastSeq, stop));

  /** What the thread's log has at hand; the stream's end if it ended. */
  const takeOfThread = function* (): Generator<ScratchpadDelivery, Turn | null> {
    const turn = turnOf(thread.take());
    if (typeof turn === 'string') return turn === 'GONE' ? 'THREAD_DELETED' : turn;
    if (activity.take(turn.item)) yield* deliveries.back();
    return null;
  };

  /** Waits a moment, or until the thread has something, and takes that. */
  const pauseWithThread = async function* (): AsyncGenerator<ScratchpadDelivery, Turn | null> {
    await pause(thread, PAUSE_MS);
    return thread.isReady ? yield* takeOfThread() : null;
  };

  /** What was kept back in a gap is told as it is now. Tried until the stores answer. */
  const settle = async function* (pad: PadAddress | null): AsyncGenerator<ScratchpadDelivery, Turn | null> {
    while (pad !== null && deliveries.isUnsettled && !stop.aborted) {
      const found = await present(deps, reader, pad, { content: true, position: deliveries.position }).catch(
        () => null,
      );
      if (found !== null) {
        // Whatever else it is, the logs tell.
        if (typeof found !== 'string' && found.isActive && found.positionHolds)
          yield* deliveries.settle(found.content);
        return null;
      }
      const ended = yield* pauseWithThread();
      if (ended !== null) return ended;
    }
    return null;
  };

  /** Items of `log`, each once the thread has got to where it stands. */
  const read = async function* <Item>(
    log: Lookahead<Followed<Item>>,
    threadSeqOf: (item: Item) => number,
    take: (item: Item) => Generator<ScratchpadDelivery, boolean>,
  ): AsyncGenerator<ScratchpadDelivery, Turn | null> {
    let next: Item | undefined;
    for (;;) {
      const ended = yield* settle(pad);
      if (ended !== null) return ended;
      if (next !== undefined && activity.reaches(threadSeqOf(next))) {
        const isEnough = yield* take(next);
        if (isEnough) return null;
        next = undefined;
        continue;
      }
      await anyReady(next === undefined ? [thread, log] : [thread]);
      if (thread.isReady) {
        const over = yield* takeOfThread();
        if (over !== null) return over;
        continue;
      }
      const turn = turnOf(log.take());
      if (typeof turn === 'string') return turn;
      next = turn.item;
    }
  };

  const awaitPad = async function* (): AsyncGenerator<ScratchpadDelivery, Turn | PadAddress> {
    // The stream outlives this log, whose one item comes first.
    const awaited = new AbortController();
    const release = stopOn(awaited, [stop]);
    try {
      const log = new Lookahead(deps.making.follow(makingKey(ownerId, threadId), 0, awaited.signal));
      let made: PadAddress | null = null;
      const ended = yield* read(
        log,
        () => 0,
        function* ({ scratchpadId: id }) {
          made = { ownerId, threadId, scratchpadId: id };
          yield* deliveries.created(id);
          return true;
        },
      );
      return made ?? (ended === 'GONE' ? 'THREAD_DELETED' : (ended ?? 'STOPPED'));
    } finally {
      awaited.abort();
      release();
    }
  };

  /** The pad's log is gone under its name: deleted, begun anew, or gone on after a fail-over. Tried until it is known. */
  const lookAgain = async function* (pad: PadAddress): AsyncGenerator<ScratchpadDelivery, Turn | null> {
    for (;;) {
      if (stop.aborted) return 'STOPPED';
      try {
        const found = await present(deps, reader, pad, { position: deliveries.position });
        if (typeof found === 'string') return found;
        if (found !== null) {
          if (found.positionHolds) deliveries.position = { ...deliveries.position, ...logOf(found.position) };
          else yield* deliveries.reset(found.position);
          return null;
        }
      } catch {
        // A store is away: whoever follows waits.
      }
      const ended = yield* pauseWithThread();
      if (ended !== null) return ended;
    }
  };

  yield deliveries.at(null);
  if (pad === null) {
    const made = yield* awaitPad();
    if (typeof made === 'string') {
      if (made !== 'STOPPED') yield deliveries.at(made as DeliveryEnd);
      return;
    }
    pad = made;
  } else if (news === 'CREATED') yield* deliveries.created(pad.scratchpadId);
  else if (news === 'RESET') yield* deliveries.reset(position);
  for (;;) {
    const { position: from } = deliveries;
    const log = new Lookahead(deps.pads.follow(padLogKey(pad, from), from.rev, stop));
    const turn = yield* read(log, threadSeqOf, function* (change) {
      yield* deliveries.take(change);
      return false;
    });
    const ended = turn === 'GONE' ? yield* lookAgain(pad) : turn;
    if (ended === null || ended === 'GONE') continue;
    if (ended === 'SCRATCHPAD_DELETED') yield deliveries.at(ended, { kind: 'DELETED' });
    else if (ended !== 'STOPPED') yield deliveries.at(ended);
    return;
  }
};

const turnOf = <Item>(
  step: IteratorResult<Followed<Item>, undefined>,
): { readonly item: Item } | 'GONE' | 'SERVER_DRAINING' | 'STOPPED' => {
  if (step.done === true) return 'STOPPED';
  if (step.value.ended === undefined) return { item: step.value.item };
  return step.value.ended === 'GONE' ? 'GONE' : 'SERVER_DRAINING';
};

const logOf = ({ epoch, tag }: PadPosition): Pick<PadPosition, 'epoch' | 'tag'> => ({ epoch, tag });

/** How the pad is now for a reader, as asked; why it is no more; null: not to be said at the moment. */
const present = async (
  { access, looks, reading }: FollowingDeps,
  { ownerId, threadId, viewerId }: Reader,
  { scratchpadId }: PadAddress,
  ask: PadAsk,
) => {
  const [granted, answer] = await Promise.all([
    access.grant({ ownerId, scratchpadId, participantId: viewerId }),
    looks.read({ ownerId, threadId, viewerId }),
  ]);
  if (answer === null) return 'THREAD_DELETED';
  if (granted === null) return 'SCRATCHPAD_DELETED';
  const [seen] = await reading.read([{ pad: granted.pad, look: answer.look, ask }]);
  return seen ?? null;
};

/** For a while, or until the thread has something. */
const pause = async (thread: Lookahead<unknown>, ms: number): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    anyReady([thread]),
    new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    }),
  ]);
  clearTimeout(timer);
};
