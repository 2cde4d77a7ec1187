import { randomUUID } from 'node:crypto';
import type { Session } from '../auth/session.ts';
import { stoppable } from '../live/stopping.ts';
import { DomainError } from '../shared/errors.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import type { Announce } from '../timeline/timeline.ts';
import {
  handedDelivery,
  type InboxDelivery,
  lastDelivery,
  type Observed,
  observation,
} from './deliveries.ts';
import { Digest, MOST_OBSERVED, observedBytes } from './digest.ts';
import { type HandedOut, newDeliveryIds, takeInbox } from './handOut.ts';
import { claimInbox, giveBack, releaseInbox, requireAgent } from './holding.ts';
import { inboxOf } from './inboxes.ts';
import { PadObserver, type PadObserving } from './pads.ts';
import { type Pulling, requireBatch } from './pulling.ts';
import { createSleep } from './sleep.ts';

export interface FollowInboxInput {
  readonly as?: string | null | undefined;
  /** At most so many messages of a thread at once. */
  readonly batch?: number | null | undefined;
  readonly standby?: boolean | null | undefined;
  readonly onlyMentions?: boolean | null | undefined;
}

export interface FollowInboxOptions extends Pulling, PadObserving {
  readonly announce: Pick<Announce, 'woken' | 'freed'>;
  readonly digestSeconds: number;
}

/** Deliveries that are taken, and so leased, at a time: no more of them wait for the socket to take them. */
const PORTION = 16;
/** How soon a store that was away is asked again. */
const AGAIN_MS = 1_000;

/**
 * Follows an inbox: what is told at once, deliveries as they may be taken, and a digest of the rest. It takes the inbox over from
 * whoever has it, or waits for its turn. State is in the database alone: whatever was not acknowledged comes again, to this
 * stream or another. Errors before it: FORBIDDEN (a person), NOT_FOUND, BAD_USER_INPUT.
 */
export const createFollowInbox =
  (options: FollowInboxOptions) =>
  async (
    session: Session,
    input: FollowInboxInput,
    clientGone: AbortSignal,
  ): Promise<AsyncGenerator<InboxDelivery>> => {
    const { database, waking, announce, digestSeconds, draining } = options;
    const { inbox } = inboxOf(session.actor, input.as);
    const batch = requireBatch(input.batch);
    const onlyMentions = input.onlyMentions ?? false;
    await requireAgent(database, inbox);

    const holder = randomUUID();
    const { participantId: viewerId } = inbox;
    const digest = new Digest(options, inbox, onlyMentions);
    const sleep = createSleep();
    let hasMoved = true;
    let isOver = false;
    let isBegun = false;
    let isHeld = await claimInbox(database, inbox, holder, input.standby ?? false);
    if (isHeld) announce.woken([viewerId]);
    const pads = new PadObserver(options, session, inbox, observedBytes(options.answerBytes));

    /** What came of takes, and may be in hand still. */
    const inHand = new Set<string>();
    const leave = waking.join({
      inHand,
      asks: () => ({
        inbox,
        threadId: null,
        holder: isHeld ? holder : null,
        onlyMentions,
        since: digest.since,
        isStandby: !isHeld,
      }),
      wake: sleep.wake,
      moved: () => {
        hasMoved = true;
      },
    });
    const signals = [clientGone, session.ended, draining];
    for (const signal of signals) signal.addEventListener('abort', sleep.wake, { once: true });
    const free = (): void => {
      if (isOver) return;
      isOver = true;
      leave();
      pads.close();
      for (const signal of signals) signal.removeEventListener('abort', sleep.wake);
      sleep.wake();
    };
    const isStopped = (): boolean => isOver || signals.some((signal) => signal.aborted);

    /** What is taken, or may have been by a take whose answer was lost, and was not handed on yet. */
    let unsent: string[] = [];
    const release = async (): Promise<void> => {
      if (!isHeld) return;
      await digest.settle().catch(() => undefined);
      await releaseInbox(database, inbox, holder, unsent).catch(() => undefined);
      announce.freed(viewerId);
    };

    /** While the database is away nothing is given and nothing lost; undefined: try again. */
    const attempt = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof DomainError && error.code === 'UNAVAILABLE')) throw error;
        if (!isStopped()) await sleep.for(AGAIN_MS);
        return undefined;
      }
    };

    const take = async (told: readonly string[]): Promise<HandedOut> => {
      if (unsent.length > 0) await giveBack(database, inbox, holder, unsent);
      unsent = newDeliveryIds(PORTION);
      const given = await takeInbox(options, inbox, {
        threadId: null,
        batch,
        onlyMentions,
        holder,
        told,
        deliveryIds: unsent,
        once: false,
      });
      unsent = [];
      if (given === 'TAKEN_OVER') return given;
      for (const one of given) if (one.channel === 'MESSAGE') unsent.push(one.deliveryId);
      for (const id of unsent) inHand.add(id);
      return given;
    };

    /** The next digest; where nothing happened it asks nothing. */
    const observe = async (): Promise<Observed> => {
      await pads.look();
      const isDue = hasMoved;
      hasMoved = false;
      try {
        const events = isDue ? await digest.read() : [];
        const isCut = isDue && digest.isCut;
        hasMoved ||= isCut;
        const changes = await pads.take(MOST_OBSERVED - events.length);
        return { events, changes, isCut: isCut || pads.hasMore };
      } catch (error) {
        hasMoved = true;
        throw error;
      }
    };

    const deliver = async function* (): AsyncGenerator<InboxDelivery> {
      const digestMs = digestSeconds * 1_000;
      /** Whether there may be something to take: nothing is asked otherwise. */
      let isWoken = true;
      let digestedAt = performance.now();
      let told: string[] = [];
      let ended: DeliveryEnd | null = null;
      isBegun = true;
      try {
        while (!isHeld && !isStopped()) {
          // It asks nothing itself: the look for all streams finds that the inbox is free, where nobody says so.
          await sleep.for();
          if (!isStopped())
            isHeld = (await attempt(() => claimInbox(database, inbox, holder, true))) ?? false;
        }
        // Where they cannot be looked for now, they are before the next digest.
        if (!isStopped()) await attempt(() => pads.look());
        while (!isStopped()) {
          const given: HandedOut | undefined = isWoken ? await attempt(() => take(told)) : [];
          if (given === undefined) continue;
          told = [];
          if (given === 'TAKEN_OVER') {
            ended = 'TAKEN_OVER';
            break;
          }
          for (const one of given) {
            if (isStopped()) break;
            if (one.channel === 'MESSAGE') unsent = unsent.filter((id) => id !== one.deliveryId);
            yield handedDelivery(viewerId, one);
            // The next is asked for: this one came, unless it was held back because the credential has ended.
            if (one.channel === 'CONTROL' && !session.ended.aborted) told.push(one.number);
          }
          isWoken = given.length > 0;
          const untilDigest = digestedAt + digestMs - performance.now();
          if (untilDigest > 0) {
            if (!isWoken && !isStopped()) isWoken = await sleep.for(untilDigest);
            continue;
          }
          digestedAt = performance.now();
          const observed = await attempt(() => observe());
          if (observed === undefined || isStopped()) continue;
          if (observed.events.length + observed.changes.length > 0) yield observation(viewerId, observed);
          if (!session.ended.aborted) digest.came();
        }
        if (clientGone.aborted || isOver) return;
        if (ended === null) {
          ended = session.ended.aborted ? session.ending : 'SERVER_DRAINING';
          // Not all at once, so that they do not all come back at once.
          if (ended === 'SERVER_DRAINING') {
            await sleep.for(0);
            await sleep.for(Math.random() * Number(draining.reason));
          }
        }
        await release();
        isHeld = false;
        yield lastDelivery(viewerId, ended);
      } finally {
        free();
        await release();
      }
    };
    return stoppable(deliver(), () => {
      free();
      // Nothing of a generator runs that was never asked.
      if (!isBegun) void release();
    });
  };
