import type { DeliveryEnd } from '../timeline/follow.ts';
import type { Looks } from '../timeline/looks.ts';
import type { Access } from './access.ts';
import type { Activity } from './activity.ts';
import { type Reader, threadSeqOf } from './deliveries.ts';
import type { PadAddress } from './keys.ts';
import type { PadChange } from './pad.ts';
import type { PadAsk, Reading, SeenState } from './reading.ts';

export interface PresentDeps {
  readonly access: Access;
  readonly looks: Looks;
  readonly reading: Reading;
}

/** How the pad is now for a reader, as asked; why it is no more; null: not to be said at the moment. */
export const present = async (
  { access, looks, reading }: PresentDeps,
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

/** A look decides as many entries as this, or as these bytes of them. */
const ENTRIES = 100;
const BYTES = 64 * 1024;

/**
 * Decides what the thread's log cannot: changes at positions above the record's head, which are there after a restore of
 * an older one. The thread may never get there, or get there with other events. A look under the thread's lock says what
 * a reader of the pad would be shown, by places in the list: of entries those of the viewer's windows, of all else what
 * is for the active now.
 */
export const createJudging = (
  deps: PresentDeps,
  reader: Reader,
  activity: Activity,
): ((pad: PadAddress, change: PadChange) => Promise<boolean | DeliveryEnd | null>) => {
  let known = { epoch: '', after: 0, upTo: 0, shown: new Set<number>() };

  const learn = ({ position, pages: [page] }: SeenState, after: number): void => {
    if (page === undefined) throw new Error('A page was asked for.');
    const { entries, skipped, total } = page;
    const isAll = skipped + entries.length >= total;
    const upTo = isAll ? position.seq : (entries.at(-1)?.seq ?? after);
    known = { epoch: position.epoch, after, upTo, shown: new Set(entries.map(({ seq }) => seq)) };
  };
  const isKnown = ({ epoch, seq }: PadChange['at']): boolean =>
    epoch === known.epoch && seq > known.after && seq <= known.upTo;

  /** Whether the viewer is shown it; why the stream ends; null: the thread's log will say, or nobody can at the moment. */
  return async (pad, change) => {
    const { seq, epoch } = change.at;
    if (change.kind === 'ENTRY' && isKnown(change.at)) return known.shown.has(seq);
    const page = { after: seq - 1, before: null, limit: ENTRIES, isBackward: false, maxBytes: BYTES };
    const ask = change.kind === 'ENTRY' ? { pages: [page] } : {};
    const found = await present(deps, reader, pad, ask).catch(() => null);
    if (found === null || typeof found === 'string') return found;
    // Its log is gone, which is told next.
    if (found.position.epoch !== epoch) return false;
    activity.found(found);
    if (!activity.isOver(threadSeqOf(change))) return null;
    if (change.kind !== 'ENTRY') return found.isActive;
    learn(found, seq - 1);
    return known.shown.has(seq);
  };
};
