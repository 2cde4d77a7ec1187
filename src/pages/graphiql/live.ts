import type { StreamResult } from '../../client/index.ts';

/** How many earlier payloads stay in sight below the newest. */
const EARLIER = 20;

export interface LiveView {
  add(result: StreamResult): void;
  /** Shows what has come since the last picture was drawn. */
  flush(): void;
}

/**
 * GraphiQL shows one result at a time, so each event would wipe out the one before. Here the newest payload stands
 * as it came, and under `earlier` those before it; drawn once a frame, however many come.
 */
export const createLiveView = (show: (result: StreamResult, received: number) => void): LiveView => {
  let newest: StreamResult | undefined;
  let earlier: readonly unknown[] = [];
  let received = 0;
  let frame: number | undefined;
  const flush = () => {
    if (frame !== undefined) cancelAnimationFrame(frame);
    frame = undefined;
    if (newest === undefined) return;
    show(withEarlier(newest), received);
  };
  const withEarlier = (result: StreamResult) =>
    earlier.length === 0 ? result : Object.assign({}, result, { earlier });
  return {
    add(result) {
      if (isStart(result)) {
        // That of a resumed stream would wipe the last event from the screen.
        show(newest === undefined ? result : withEarlier(newest), received);
        return;
      }
      if (newest !== undefined)
        earlier = [newest.errors ? newest : newest.data, ...earlier].slice(0, EARLIER);
      newest = result;
      received++;
      frame ??= requestAnimationFrame(flush);
    },
    flush,
  };
};

/** The payload that only tells where a stream starts. */
const isStart = ({ data, errors }: StreamResult): boolean => {
  if (errors !== undefined || typeof data !== 'object' || data === null) return false;
  const [delivery] = Object.values(data) as unknown[];
  if (typeof delivery !== 'object' || delivery === null) return false;
  const { event, change, ended } = delivery as { event?: unknown; change?: unknown; ended?: unknown };
  return (event === null || change === null) && (ended ?? null) === null;
};
