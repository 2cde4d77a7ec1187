import type { TimelineEvent } from './events.ts';
import type { Look } from './look.ts';

/**
 * The rule of windows as a fold over the log that is delivered: no permission is remembered but what the log itself
 * said. Visible is what the viewer was active at, and each change of its own state.
 */
export interface Fold {
  /** Takes the next event, in order; answers whether this viewer sees it. */
  sees(event: TimelineEvent): boolean;
  /** Whether the viewer is active after what it was given so far. */
  readonly active: boolean;
}

/** The fold's state at position `after`: some window (a, b] has a ≤ after < b. The owner sees everything. */
export const foldFrom = (look: Look, after: number): Fold => {
  const { viewerId } = look;
  let active =
    viewerId === null ||
    look.windows.some((window) => window.after <= after && (window.end === null || after < window.end));
  return {
    get active() {
      return active;
    },
    sees(event) {
      if (event.type === 'PARTICIPANT_STATE_CHANGED' && event.subjectId === viewerId) {
        active = event.to === 'ACTIVE';
        return true;
      }
      return active && (viewerId === null || !event.hiddenFrom.includes(viewerId));
    },
  };
};
