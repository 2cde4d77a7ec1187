import type { Logs } from '../live/logs.ts';
import { anyReady, Lookahead } from '../live/lookahead.ts';
import type { Followed } from '../live/source.ts';
import { stopOn } from '../live/stopping.ts';
import type { TimelineEvent } from '../timeline/events.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import { logKey } from '../timeline/live.ts';
import type { Look } from '../timeline/look.ts';
import { Activity } from './activity.ts';
import { Deliveries, type Reader, type ScratchpadDelivery, threadSeqOf } from './deliveries.ts';
import { createJudging, type PresentDeps, present } from './judging.ts';
import type { PadAddress } from './keys.ts';
import { padLogKey } from './log.ts';
import { makingKey, type PadMade } from './making.ts';
import type { PadChange, PadPosition } from './pad.ts';

export interface FollowingDeps extends PresentDeps {
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
  /** `PadState.over` */
  readonly over: number;
}

/** Why reading goes on in another way: the pad's log is gone under its name, or the stream ends. */
type Turn = 'GONE' | DeliveryEnd | 'STOPPED';

const PAUSE_MS = 250;
/** How long the thread may be behind its pad before it is looked whether it will ever come. */
const BEHIND_MS = 1_000;

/** Changes at hand are told together, up to so many. */
const BATCH = 32;

type Batches<Outcome> = AsyncGenerator<readonly ScratchpadDelivery[], Outcome>;

/** Reads a pad's log, and beside it the thread's, by which it decides what the viewer may see. */
export const following = async function* (
  deps: FollowingDeps,
  { reader, look, pad: padAtFirst, position, cursor, news, over }: FollowingStart,
  stop: AbortSignal,
): Batches<undefined> {
  const { ownerId, threadId } = reader;
  const activity = new Activity(look, over);
  const scratchpadId = news === 'CREATED' ? null : (padAtFirst?.scratchpadId ?? null);
  const deliveries = new Deliveries(reader, activity, { scratchpadId, position, cursor });
  let pad = padAtFirst;
  const judge = createJudging(deps, reader, activity);
  const thread = new Lookahead(deps.threads.follow(logKey(ownerId, threadId), look.lastSeq, stop));

  /** What the thread's log has at hand; the stream's end if it ended. */
  const takeOfThread = (): Turn | null => {
    const turn = turnOf(thread.take());
    if (typeof turn === 'string') return turn === 'GONE' ? 'THREAD_DELETED' : turn;
    if (activity.take(turn.item)) deliveries.back();
    return null;
  };

  /** Waits a moment, or until the thread has something, and takes that. */
  const pauseWithThread = async function* (): Batches<Turn | null> {
    if (deliveries.told > 0) yield deliveries.handOver();
    await pause(thread, PAUSE_MS);
    return thread.isReady ? takeOfThread() : null;
  };

  /** What was kept back in a gap is told as it is now. Tried until the stores answer. */
  const settle = async function* (pad: PadAddress): Batches<Turn | null> {
    while (deliveries.isUnsettled && !stop.aborted) {
      const found = await present(deps, reader, pad, { content: true, position: deliveries.position }).catch(
        () => null,
      );
      if (found !== null) {
        // Whatever else it is, the logs tell.
        if (typeof found !== 'string' && found.isActive && found.positionHolds)
          deliveries.settle(found.content);
        return null;
      }
      const ended = yield* pauseWithThread();
      if (ended !== null) return ended;
    }
    return null;
  };

  /**
   * Items of `log`, each once the thread has got to where it stands, or once `judged` said that it need not. `take` says
   * whether that is enough.
   */
  const read = async function* <Item>(
    log: Lookahead<Item>,
    threadSeqOf: (item: Item) => number,
    take: (item: Item, wasActive?: boolean) => boolean,
    judged: (item: Item) => Promise<boolean | DeliveryEnd | null> = () => Promise.resolve(null),
  ): Batches<Turn | null> {
    let next: Item | undefined;
    for (;;) {
      if (pad !== null && deliveries.isUnsettled) {
        const ended = yield* settle(pad);
        if (ended !== null) return ended;
      }
      if (next !== undefined && activity.reaches(threadSeqOf(next))) {
        if (take(next)) return null;
        next = undefined;
        if (deliveries.told >= BATCH) yield deliveries.handOver();
        continue;
      }
      if (!thread.isReady && (next !== undefined || !log.isReady)) {
        const isOver = next !== undefined && activity.isOver(threadSeqOf(next));
        if (deliveries.told > 0 && !isOver) yield deliveries.handOver();
        if (next === undefined) await anyReady([thread, log]);
        else if (!isOver) await pause(thread, BEHIND_MS);
      }
      if (next !== undefined && !thread.isReady && !stop.aborted) {
        const verdict = await judged(next);
        if (typeof verdict === 'string') return verdict;
        if (verdict === null) {
          const ended = yield* pauseWithThread();
          if (ended !== null) return ended;
          continue;
        }
        if (take(next, verdict)) return null;
        next = undefined;
        if (deliveries.told >= BATCH) yield deliveries.handOver();
        continue;
      }
      if (thread.isReady) {
        const over = takeOfThread();
        if (over !== null) return over;
        continue;
      }
      const turn = turnOf(log.take());
      if (typeof turn === 'string') return turn;
      next = turn.item;
    }
  };

  const awaitPad = async function* (): Batches<Turn | PadAddress> {
    // The stream outlives this log, whose one item comes first.
    const awaited = new AbortController();
    const release = stopOn(awaited, [stop]);
    try {
      const log = new Lookahead(deps.making.follow(makingKey(ownerId, threadId), 0, awaited.signal));
      let made: PadAddress | null = null;
      const ended = yield* read(
        log,
        () => 0,
        ({ scratchpadId: id }) => {
          made = { ownerId, threadId, scratchpadId: id };
          deliveries.created(id);
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
  const lookAgain = async function* (pad: PadAddress): Batches<Turn | null> {
    for (;;) {
      if (stop.aborted) return 'STOPPED';
      try {
        const found = await present(deps, reader, pad, { position: deliveries.position });
        if (typeof found === 'string') return found;
        if (found !== null) {
          activity.found(found);
          if (found.positionHolds) deliveries.position = { ...deliveries.position, ...logOf(found.position) };
          else deliveries.reset(found.position);
          return null;
        }
      } catch {
        // A store is away: whoever follows waits.
      }
      const ended = yield* pauseWithThread();
      if (ended !== null) return ended;
    }
  };

  yield [deliveries.at(null)];
  if (pad === null) {
    const made = yield* awaitPad();
    if (typeof made === 'string') {
      if (made !== 'STOPPED') deliveries.end(made as DeliveryEnd);
      if (deliveries.told > 0) yield deliveries.handOver();
      return undefined;
    }
    pad = made;
  } else if (news === 'CREATED') deliveries.created(pad.scratchpadId);
  else if (news === 'RESET') deliveries.reset(position);
  for (;;) {
    const { position: from } = deliveries;
    const log = new Lookahead(deps.pads.follow(padLogKey(pad, from), from.rev, stop));
    const followed = pad;
    const turn = yield* read(
      log,
      threadSeqOf,
      (change, wasActive) => {
        deliveries.take(change, wasActive);
        return false;
      },
      (change) => judge(followed, change),
    );
    const ended = turn === 'GONE' ? yield* lookAgain(pad) : turn;
    if (ended === null || ended === 'GONE') continue;
    if (ended === 'SCRATCHPAD_DELETED') deliveries.end(ended, { kind: 'DELETED' });
    else if (ended !== 'STOPPED') deliveries.end(ended);
    if (deliveries.told > 0) yield deliveries.handOver();
    return undefined;
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
