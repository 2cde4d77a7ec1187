import { requireReach, requireTenant, viewerOf } from '../auth/acting.ts';
import type { Session } from '../auth/session.ts';
import type { Logs } from '../live/logs.ts';
import type { Followed } from '../live/source.ts';
import { type Batched, batched, stopOn } from '../live/stopping.ts';
import { parseTimelineCursor, timelineCursor } from '../shared/cursors.ts';
import { invalidCursor, notFound } from '../shared/errors.ts';
import type { TimelineEvent, TimelineEventType } from './events.ts';
import { foldFrom } from './fold.ts';
import { logKey } from './live.ts';
import type { Looks } from './looks.ts';
import { requireThreadId } from './timeline.ts';

/** Why a stream ends. */
export type DeliveryEnd =
  | 'THREAD_DELETED'
  | 'SCRATCHPAD_DELETED'
  | 'TAKEN_OVER'
  | 'CREDENTIAL_ENDED'
  | 'RUN_CLOSED'
  | 'SERVER_DRAINING';

/** One payload: where the reader stands now, and the event that brought it there or why the stream ends. */
export interface TimelineDelivery {
  readonly threadId: string;
  readonly viewerId: string | null;
  readonly cursor: string;
  readonly event: TimelineEvent | null;
  /** The event, one object for all who follow the thread. */
  readonly subject: TimelineEvent | null;
  readonly ended: DeliveryEnd | null;
}

export interface FollowInput {
  readonly threadId: string;
  readonly as?: string | null | undefined;
  /** Start after this position; not given: at the present end. */
  readonly after?: string | null | undefined;
  /** Filters what is sent, never what is folded. */
  readonly types?: readonly TimelineEventType[] | null | undefined;
}

/** Events at hand are told together, up to so many. */
const BATCH = 32;

/**
 * Follows a thread as one viewer: every event it may see, once, in order, from a cursor on, until the client goes,
 * the thread is deleted, the credential ends or the process drains. The first payload comes at once and carries no event.
 * Errors before it: NOT_FOUND, FORBIDDEN, INVALID_CURSOR, BAD_USER_INPUT.
 */
export const createFollowTimeline =
  ({ looks, logs }: { looks: Looks; logs: Logs<TimelineEvent> }) =>
  async (
    session: Session,
    input: FollowInput,
    clientGone: AbortSignal,
  ): Promise<Batched<TimelineDelivery>> => {
    const tenant = requireTenant(session.actor);
    const viewerId = viewerOf(tenant, input.as);
    const { threadId } = input;
    requireThreadId(threadId);
    requireReach(tenant, threadId);
    const position =
      input.after === null || input.after === undefined ? null : parseTimelineCursor(input.after, threadId);
    const answer = await looks.read({ ownerId: tenant.userId, threadId, viewerId, position });
    if (answer === null) throw notFound('Thread');
    const { look, positionHolds } = answer;
    if (!positionHolds || (position !== null && position.seq > look.end.seq)) throw invalidCursor();
    // A removed viewer stands at its end; what came after it is folded from the present head on, unseen.
    const start = position?.seq ?? look.lastSeq;
    const cursor = input.after ?? timelineCursor(threadId, look.end.seq, look.end.id);
    const fold = foldFrom(look, start);
    const types = input.types ? new Set<TimelineEventType>(input.types) : null;
    const stop = new AbortController();
    const steps = logs.follow(logKey(tenant.userId, threadId), start, stop.signal);
    const release = stopOn(stop, [clientGone, session.ended]);

    let at = cursor;
    const delivery = (event: TimelineEvent | null, ended: DeliveryEnd | null): TimelineDelivery => ({
      threadId,
      viewerId,
      cursor: at,
      event,
      subject: event,
      ended,
    });
    /** What a step and those at hand behind it tell. */
    const told = (first: Followed<TimelineEvent>): TimelineDelivery[] => {
      const batch: TimelineDelivery[] = [];
      let step: Followed<TimelineEvent> | undefined = first;
      while (step !== undefined) {
        const event: TimelineEvent | undefined = step.item;
        if (event === undefined)
          batch.push(delivery(null, step.ended === 'GONE' ? 'THREAD_DELETED' : 'SERVER_DRAINING'));
        else if (fold.sees(event) && (types === null || types.has(event.type))) {
          at = timelineCursor(threadId, event.seq, event.id);
          batch.push(delivery(event, null));
        }
        step = event === undefined || batch.length >= BATCH ? undefined : steps.poll();
      }
      return batch;
    };
    const deliver = async function* (): AsyncGenerator<readonly TimelineDelivery[], undefined> {
      try {
        yield [delivery(null, null)];
        for await (const step of steps) {
          const batch = told(step);
          if (batch.length > 0) yield batch;
          if (batch.at(-1)?.ended) return undefined;
        }
        if (session.ended.aborted && !clientGone.aborted) yield [delivery(null, session.ending)];
      } finally {
        free();
      }
      return undefined;
    };
    const free = (): void => {
      stop.abort();
      release();
    };
    return batched(deliver(), free);
  };
