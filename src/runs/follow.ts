import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Session } from '../auth/session.ts';
import type { Bus } from '../live/bus.ts';
import { stoppable } from '../live/stopping.ts';
import { notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import type { Database } from '../storage/database.ts';
import type { DeliveryEnd } from '../timeline/follow.ts';
import { runChannel } from './notices.ts';
import { isOpen, type Run, readRunsById } from './rows.ts';
import { seesRun } from './visibility.ts';
import { createWatch } from './watching.ts';

/** A run as it is now, something that goes on in it, or why the stream ends. */
export interface RunDelivery {
  readonly run: Run;
  readonly viewerId: string | null;
  readonly activity: unknown;
  readonly ended: DeliveryEnd | null;
}

/** More activity than this that nobody has taken yet is dropped, the oldest first. */
const MOST_ACTIVITY = 64;

/**
 * Follows a run until it ends, the client goes, the credential ends or the process drains. The first payload is the run as it
 * is; then whatever state it comes to, and what goes on in it, best effort. Errors before it: NOT_FOUND.
 */
export const createFollowRun = ({
  database,
  bus,
  draining,
}: {
  database: Database;
  bus: Bus;
  /** Fires when this process is about to stop; its reason: over how many milliseconds readers are told. */
  draining: AbortSignal;
}) => {
  const watch = createWatch(database);

  return async (
    session: Session,
    { runId }: { readonly runId: string },
    clientGone: AbortSignal,
  ): Promise<AsyncGenerator<RunDelivery>> => {
    const tenant = requireTenant(session.actor);
    const viewerId = viewerOf(tenant, null);
    if (!isId('Run', runId)) throw notFound('Run');
    const read = async (): Promise<Run | null> =>
      (await readRunsById(database, tenant.userId, [runId]))[0] ?? null;

    let activities: unknown[] = [];
    let isStale = false;
    let wake: () => void = () => {};
    const stale = (): void => {
      isStale = true;
      wake();
    };
    // Heard before it is read, so that nothing falls between.
    const unsubscribe = bus.subscribe(
      runChannel(runId),
      (message) => {
        if (message === '') return stale();
        activities = [...activities, JSON.parse(message) as unknown].slice(-MOST_ACTIVITY);
        wake();
      },
      stale,
    );
    let known = 0;
    const unwatch = watch(tenant.userId, runId, (version) => {
      if (version !== known) stale();
    });
    const signals = [clientGone, session.ended, draining];
    const onStop = (): void => wake();
    for (const signal of signals) signal.addEventListener('abort', onStop);
    const free = (): void => {
      unsubscribe();
      unwatch();
      for (const signal of signals) signal.removeEventListener('abort', onStop);
      wake();
    };
    const isStopped = (): boolean => signals.some((signal) => signal.aborted);
    const sleep = (ms?: number): Promise<void> =>
      new Promise((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
        if (isStopped() && ms === undefined) resolve();
      });

    let first: Run | null;
    try {
      first = await read();
      if (first === null || !seesRun(tenant, first, viewerId)) throw notFound('Run');
    } catch (error) {
      free();
      throw error;
    }
    let run = first;

    const deliver = async function* (): AsyncGenerator<RunDelivery> {
      const delivery = (activity: unknown, ended: DeliveryEnd | null): RunDelivery => ({
        run,
        viewerId,
        activity,
        ended,
      });
      const state = (): RunDelivery => delivery(null, isOpen(run) ? null : 'RUN_CLOSED');
      try {
        known = run.version;
        yield state();
        while (isOpen(run) && !isStopped()) {
          const told = activities;
          activities = [];
          for (const activity of told) yield delivery(activity, null);
          if (isStale) {
            isStale = false;
            const next = await read().catch(() => run);
            if (next !== null && next.version !== run.version) {
              run = next;
              known = run.version;
              yield state();
            }
          } else if (activities.length === 0) await sleep();
        }
        if (!isOpen(run) || clientGone.aborted) return;
        if (session.ended.aborted) {
          if (session.ending === 'RUN_CLOSED') run = (await read().catch(() => null)) ?? run;
          yield delivery(null, session.ending);
        } else {
          // Not all at once, so that they do not all come back at once.
          await sleep(Math.random() * Number(draining.reason));
          if (!clientGone.aborted)
            yield delivery(null, session.ended.aborted ? session.ending : 'SERVER_DRAINING');
        }
      } finally {
        free();
      }
    };
    return stoppable(deliver(), free);
  };
};
