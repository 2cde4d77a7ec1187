import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Session } from '../auth/session.ts';
import { atPad, runOf } from '../auth/sight.ts';
import { type Batched, batched, stopOn } from '../live/stopping.ts';
import { isNoPadCursor, noPadCursor, padCursor, parsePadCursor } from '../shared/cursors.ts';
import { badInput, invalidCursor, notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import type { Look } from '../timeline/look.ts';
import { requireThreadId } from '../timeline/timeline.ts';
import type { Reader, ScratchpadDelivery } from './deliveries.ts';
import { type FollowingDeps, type FollowingStart, following } from './following.ts';
import { NOWHERE, type Pad } from './pad.ts';

export interface FollowScratchpadInput {
  /** Exactly one of the two; of a thread without a scratchpad it is waited for. */
  readonly scratchpadId?: string | null | undefined;
  readonly threadId?: string | null | undefined;
  readonly as?: string | null | undefined;
  /** Start after this position; not given: at the present end. */
  readonly after?: string | null | undefined;
}

/**
 * Follows a scratchpad as one viewer, from a cursor on, until the client goes, the pad or its thread is deleted, the
 * credential ends or the process drains: each entry that the viewer may see and that is still there, once, in order; of
 * the body always the newest. The first payload comes at once and carries no change.
 * Errors before it: NOT_FOUND, FORBIDDEN, INVALID_CURSOR, BAD_USER_INPUT, UNAVAILABLE.
 */
export const createFollowScratchpad =
  (deps: FollowingDeps) =>
  async (
    session: Session,
    input: FollowScratchpadInput,
    clientGone: AbortSignal,
  ): Promise<Batched<ScratchpadDelivery>> => {
    const start = await startOf(deps, session, input);
    const stop = new AbortController();
    const release = stopOn(stop, [clientGone, session.ended]);
    const free = (): void => {
      stop.abort();
      release();
    };
    const deliver = async function* (): AsyncGenerator<readonly ScratchpadDelivery[], undefined> {
      let last: ScratchpadDelivery | undefined;
      try {
        for await (const batch of following(deps, start, stop.signal)) {
          last = batch.at(-1);
          yield batch;
        }
        if (last?.ended === null && session.ended.aborted && !clientGone.aborted)
          yield [{ ...last, change: null, subject: null, ended: session.ending }];
      } finally {
        free();
      }
    };
    return batched(deliver(), free);
  };

const isGiven = (value: string | null | undefined): value is string => value !== null && value !== undefined;

const startOf = async (
  { access, looks, reading }: FollowingDeps,
  session: Session,
  { scratchpadId, threadId, as, after }: FollowScratchpadInput,
): Promise<FollowingStart> => {
  const tenant = requireTenant(session.actor);
  const run = runOf(tenant);
  const asked = viewerOf(tenant, as);
  const viewerId = run === null ? asked : run.padViewerId;
  if (isGiven(scratchpadId) === isGiven(threadId))
    throw badInput('Give scratchpadId or threadId, one of them.', { field: 'scratchpadId' });
  if (isGiven(threadId)) requireThreadId(threadId);
  if (isGiven(scratchpadId) && !isId('Scratchpad', scratchpadId)) throw notFound('Scratchpad');
  const ownerId = tenant.userId;
  const granted = await access.grant({
    ownerId,
    participantId: viewerId,
    ...(isGiven(scratchpadId) ? { scratchpadId } : { threadId: threadId ?? '' }),
  });
  // A run reaches its own pad alone, and waits for none.
  const isOutOfReach = run !== null && (granted === null || atPad(run, granted.pad, asked) === null);
  if (isOutOfReach || (granted === null && isGiven(scratchpadId)))
    throw notFound(isGiven(scratchpadId) ? 'Scratchpad' : 'Thread');
  const reader: Reader = { ownerId, threadId: granted?.pad.threadId ?? threadId ?? '', viewerId };
  const answer = await looks.read(reader);
  if (answer === null) throw notFound(isGiven(scratchpadId) ? 'Scratchpad' : 'Thread');
  const { look } = answer;
  if (granted === null) {
    if (isGiven(after) && !isNoPadCursor(after, look.threadId)) throw invalidCursor();
    const cursor = after ?? noPadCursor(look.threadId);
    return { reader, look, pad: null, position: NOWHERE, cursor, news: null, over: 0 };
  }
  return startIn(reading, reader, look, granted.pad, after);
};

/** A page of nothing, for its end alone. */
const END = { after: null, before: null, limit: 0, isBackward: true } as const;

const startIn = async (
  reading: FollowingDeps['reading'],
  reader: Reader,
  look: Look,
  pad: Pad,
  after: string | null | undefined,
): Promise<FollowingStart> => {
  const isNew = isGiven(after) && isNoPadCursor(after, pad.threadId);
  if (isNew) return { reader, look, pad, position: NOWHERE, cursor: after, news: 'CREATED', over: 0 };
  const position = isGiven(after) ? { ...parsePadCursor(after, pad.scratchpadId) } : undefined;
  const ask = { pages: [END], ...(position === undefined ? {} : { position }) };
  const [seen] = await reading.read([{ pad, look, ask }]);
  if (!seen) throw notFound('Scratchpad');
  const end = seen.pages[0]?.end ?? NOWHERE;
  const base = { reader, look: seen.look, pad, over: seen.over };
  if (!isGiven(after) || position === undefined)
    return { ...base, position: end, cursor: padCursor(pad.scratchpadId, end), news: null };
  const isBeyond = position.epoch === end.epoch && (position.rev > end.rev || position.seq > end.seq);
  // Who is active stands at the log's own end: beyond it is what was lost in a fail-over.
  if (isBeyond && !seen.isActive) throw invalidCursor();
  if (!seen.positionHolds) return { ...base, position: seen.position, cursor: after, news: 'RESET' };
  const { epoch, tag } = seen.position;
  return { ...base, position: { ...position, epoch, tag }, cursor: after, news: null };
};
