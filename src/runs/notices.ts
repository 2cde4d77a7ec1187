import type { Bus } from '../live/bus.ts';
import type { Json } from '../shared/canonical.ts';
import { jsonSize } from '../shared/jsonSize.ts';

/** Says that a run changed, or what its participants are doing. A lost message costs latency; activity is best effort. */
export const runChannel = (runId: string): string => `live:run:${runId}`;

/** More of it is not told. */
const ACTIVITY_BYTES = 16 * 1024;

export interface RunNotices {
  /** After the commit. */
  changed(runId: string): void;
  /** To whoever follows the run now: told once, and not kept. Too much of it (over 16 KiB) is not told. */
  activity(runId: string, activity: Json): void;
}

export const runNoticesOn = (bus: Bus): RunNotices => ({
  changed(runId) {
    void bus.publish(runChannel(runId), '');
  },
  activity(runId, activity) {
    if (jsonSize(activity, ACTIVITY_BYTES) <= ACTIVITY_BYTES)
      void bus.publish(runChannel(runId), JSON.stringify(activity));
  },
});
