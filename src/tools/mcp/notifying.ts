import { setTimeout as delay } from 'node:timers/promises';
import type { Services } from '../../services.ts';
import { noPadCursor } from '../../shared/cursors.ts';
import { DomainError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { Operating } from '../operating.ts';
import { isPlain, type McpCaller, placeOf, placesOf } from './caller.ts';
import { type ResourceName, resourceOf } from './resources.ts';

export interface Notifying {
  readonly services: Services;
  readonly caller: McpCaller;
  readonly log: Logger;
  /** Tells the client, once for whatever happened in a moment. */
  readonly tell: (uri: string, position: string) => Promise<void>;
}

/** Changes within this time are told as one: a notification says that there is something to read, not what. */
const GATHER_MS = 100;
/** What could not be done, since a store is away, is tried again after this. */
export const AGAIN_MS = 500;

/** Where a client stands that was told of a resource: in which thread (''; none), and how far. */
const standing = (threadId: string | null, cursor: string): string => `${threadId ?? ''} ${cursor}`;

/** Where a resource stands now: whoever follows it from there misses nothing, whenever that begins. Errors: UNAVAILABLE. */
export const presentOf = async (uri: string, services: Services, caller: McpCaller): Promise<string> => {
  const at = await placeOf(services, caller);
  const name = resourceOf(uri)?.name;
  if (at === null || name === undefined) return standing(null, '');
  const stop = new AbortController();
  try {
    const { positions } = await follow(services, caller, at, name, '', stop.signal);
    for await (const { cursor } of positions) return standing(at.threadId, cursor);
  } catch (error) {
    if (!isFinal(error)) throw error;
  } finally {
    stop.abort();
  }
  return standing(at.threadId, '');
};

/**
 * Follows one resource as the caller sees it, from where its client was told of it last ('': here and now), and tells of
 * what changes, until `over`. On the plain path it is that of the message in hand: another one, or none any more, is a
 * change. A position that does not hold any more is told as one.
 */
export const notifyOf = async (
  uri: string,
  after: string,
  { services, caller, log, tell }: Notifying,
  over: AbortSignal,
): Promise<void> => {
  const name = resourceOf(uri)?.name;
  if (name === undefined) return;
  const teller = createTeller((position) => tell(uri, position), log, over);
  let [stands = null, cursor = ''] = after === '' ? [] : after.split(' ');
  let leave = (): void => undefined;
  let following: Promise<void> = Promise.resolve();

  /** Until what is followed is over, and again from where it stood after whatever else ended it. */
  const followAt = async (at: Operating, from: string, signal: AbortSignal): Promise<void> => {
    let cursor = from;
    let isAway = false;
    while (!signal.aborted) {
      try {
        const followed = await follow(services, caller, at, name, cursor, signal);
        // What happened before it could be followed is not known.
        if (followed.isFresh && (cursor !== '' || isAway)) teller.tell(standing(at.threadId, ''));
        if (isAway) log.info({ uri }, 'A resource is followed again.');
        isAway = false;
        for await (const step of followed.positions) {
          cursor = step.isGone ? noPadCursor(at.threadId) : step.cursor;
          if (step.isChange) teller.tell(standing(at.threadId, cursor));
          if (step.isLast) return;
        }
      } catch (error) {
        if (isFinal(error)) return;
        if (!isAway) log.warn({ err: error, uri }, 'A resource cannot be followed; it is tried again.');
        isAway = true;
      }
      await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  };

  for await (const at of placesOf(services, caller, over)) {
    leave();
    await following;
    const here = at?.threadId ?? '';
    if (stands !== null && stands !== here) teller.tell(standing(here, ''));
    const from: string = stands === here ? cursor : '';
    [stands, cursor] = [here, ''];
    const stop = new AbortController();
    leave = () => stop.abort();
    if (at !== null) following = followAt(at, from, AbortSignal.any([over, stop.signal]));
  }
  leave();
  await following;
  await teller.done();
};

/** Tells each time that there comes to be something to read, or nothing any more: what is listed says so. */
export const notifyOfList = async (
  { services, caller, log, tell }: Omit<Notifying, 'tell'> & { readonly tell: () => Promise<void> },
  over: AbortSignal,
): Promise<void> => {
  if (!isPlain(caller)) return;
  const teller = createTeller(tell, log, over);
  let wasThere: boolean | null = null;
  for await (const at of placesOf(services, caller, over)) {
    const isThere = at !== null;
    if (wasThere !== null && wasThere !== isThere) teller.tell('');
    wasThere = isThere;
  }
  await teller.done();
};

/** Tells of the last position of each moment, and again until it could or `over`. Neither throws nor rejects. */
export const createTeller = (
  tell: (position: string) => Promise<void>,
  log: Logger,
  over: AbortSignal,
): { tell(position: string): void; done(): Promise<void> } => {
  let untold: string | null = null;
  let telling: Promise<void> | null = null;

  const run = async (): Promise<void> => {
    let waitMs = GATHER_MS;
    while (untold !== null && !over.aborted) {
      await delay(waitMs);
      if (over.aborted) break;
      const position: string = untold;
      try {
        await tell(position);
        if (untold === position) untold = null;
        waitMs = GATHER_MS;
      } catch (error) {
        log.warn({ err: error }, 'A change of a resource could not be told yet.');
        waitMs = AGAIN_MS;
      }
    }
    telling = null;
  };

  return {
    tell: (position) => {
      untold = position;
      telling ??= run();
    },
    done: async () => {
      await telling;
    },
  };
};

interface Step {
  readonly cursor: string;
  readonly isChange: boolean;
  /** The scratchpad was deleted; there may be another one. */
  readonly isGone: boolean;
  /** Nothing comes after it. */
  readonly isLast: boolean;
}

/** Whether it says that there is nothing (any more) for this caller, however often it is asked. */
const isFinal = (error: unknown): boolean =>
  error instanceof DomainError && error.code !== 'UNAVAILABLE' && error.code !== 'INTERNAL';

const follow = async (
  services: Services,
  caller: McpCaller,
  at: Operating,
  name: ResourceName,
  after: string,
  over: AbortSignal,
): Promise<{ positions: AsyncIterable<Step>; isFresh: boolean }> => {
  const begin = (from: string | null): Promise<AsyncIterable<Step>> =>
    name === 'timeline'
      ? timelineSteps(services, caller, at.threadId, from, over)
      : padSteps(services, caller, at, from, over);
  if (after === '') return { positions: await begin(null), isFresh: true };
  try {
    return { positions: await begin(after), isFresh: false };
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'INVALID_CURSOR') throw error;
    return { positions: await begin(null), isFresh: true };
  }
};

const timelineSteps = async (
  services: Services,
  { session }: McpCaller,
  threadId: string,
  after: string | null,
  over: AbortSignal,
): Promise<AsyncIterable<Step>> => {
  const deliveries = await services.followTimeline(session, { threadId, after }, over);
  return stepsOf(deliveries, ({ cursor, event, ended }) => ({
    cursor,
    isChange: event !== null || ended !== null,
    isGone: false,
    isLast: ended !== null,
  }));
};

const padSteps = async (
  services: Services,
  { session }: McpCaller,
  { run, threadId }: Operating,
  after: string | null,
  over: AbortSignal,
): Promise<AsyncIterable<Step>> => {
  const which = run === null ? { threadId } : { scratchpadId: run.scratchpadId };
  const deliveries = await services.followScratchpad(session, { ...which, after }, over);
  return stepsOf(deliveries, ({ cursor, change, ended }) => ({
    cursor,
    isChange: change !== null || ended !== null,
    isGone: ended === 'SCRATCHPAD_DELETED',
    isLast: ended !== null && ended !== 'SCRATCHPAD_DELETED',
  }));
};

async function* stepsOf<Delivery>(
  deliveries: AsyncIterable<Delivery>,
  stepOf: (delivery: Delivery) => Step,
): AsyncGenerator<Step> {
  for await (const delivery of deliveries) yield stepOf(delivery);
}
