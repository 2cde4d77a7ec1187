import { unavailable } from '../shared/errors.ts';
import { domainErrorOf } from '../storage/conflict.ts';
import type { Look } from '../timeline/look.ts';
import type { Access } from './access.ts';
import type { Pad, PadEntry, PadPosition } from './pad.ts';
import type { PadPage, PadRead, PadState, PadWants, PageWant, Plane, ThreadWindow } from './plane.ts';

/** What one viewer asks of a pad. Everything is answered as of one moment. */
export interface PadAsk {
  readonly content?: boolean;
  readonly pages?: readonly PageAsk[];
  /** Single entries, by seq. */
  readonly seqs?: readonly number[];
  readonly position?: PadPosition;
}

export type PageAsk = Omit<PageWant, 'windows'>;

export interface WantedPad {
  readonly pad: Pad;
  /** Says who looks, and what it may see. */
  readonly look: Look;
  readonly ask: PadAsk;
}

/** A pad as one viewer may see it. */
export interface SeenState extends Pick<PadState, 'position' | 'positionHolds' | 'over'> {
  readonly pad: Pad;
  /** The look that it is answered as of: a later one than was given, where membership changed meanwhile. */
  readonly look: Look;
  /** Whether the viewer is active now (or the owner): content and expiry are for those alone. */
  readonly isActive: boolean;
  readonly content: PadState['content'];
  /** Unix ms; null: kept, or not to be seen. */
  readonly expiresAt: number | null;
  /** As asked, in that order; each with its own `end`. */
  readonly pages: readonly PadPage[];
  /** Those of the asked seqs that are there and visible. */
  readonly entries: readonly PadEntry[];
}

/** How often a read is authorised again before it is given up. */
const ROUNDS = 6;

/** Reads of scratchpads through their viewers' windows. */
export interface Reading {
  /**
   * Any number of pads in one pipeline, in their order; null for one that is deleted. A read that meets a position above
   * what its look saw is authorised again, with a look that waits for the change. Errors: UNAVAILABLE.
   */
  read(wanted: readonly WantedPad[]): Promise<(SeenState | null)[]>;
}

export const createReading = ({
  plane,
  access,
}: {
  plane: Plane;
  access: Pick<Access, 'settledLook'>;
}): Reading => ({
  async read(wanted) {
    const seen: (SeenState | null)[] = wanted.map(() => null);
    let open = wanted.map((one, index) => ({ ...one, index, settles: null as string | null }));
    for (let round = 1; open.length > 0; round += 1) {
      if (round > ROUNDS)
        throw unavailable('The members of this thread change too often at the moment. Try again.');
      const outcomes = await answered(plane.read(open.map(readOf)));
      const again = open.map(async (one, index): Promise<(typeof open)[number] | null> => {
        const outcome = outcomes[index];
        if (outcome === undefined || outcome.kind === 'GONE') return null;
        if (outcome.kind === 'STATE') {
          seen[one.index] = seenAs(one, outcome);
          return null;
        }
        const look = await access.settledLook(one.look);
        return look && { ...one, look, settles: outcome.mark };
      });
      open = (await Promise.all(again)).filter((one) => one !== null);
    }
    return seen;
  },
});

/** Where the viewer was active, as positions of the thread; null: the owner sees everything. */
export const windowsOf = ({
  viewerId,
  windows,
}: Pick<Look, 'viewerId' | 'windows'>): ThreadWindow[] | null =>
  viewerId === null ? null : windows.map(({ after, end }) => ({ from: after, until: end }));

export const isInWindows = (windows: readonly ThreadWindow[] | null, threadSeq: number): boolean =>
  windows === null ||
  windows.some(({ from, until }) => from <= threadSeq && (until === null || threadSeq < until));

export const isActive = ({ viewerId, member }: Pick<Look, 'viewerId' | 'member'>): boolean =>
  viewerId === null || member?.state === 'ACTIVE';

const readOf = ({ pad, look, ask, settles }: WantedPad & { readonly settles: string | null }): PadRead => {
  const windows = windowsOf(look);
  const wants: PadWants = {
    content: ask.content === true && isActive(look),
    pages: (ask.pages ?? []).map((page) => ({ ...page, windows })),
    seqs: ask.seqs ?? [],
    seqWindows: windows,
    ...(ask.position === undefined ? {} : { position: ask.position }),
  };
  return { pad, grant: { threadSeq: look.lastSeq, readAt: look.readAt, settles }, wants };
};

const seenAs = ({ pad, look }: WantedPad, state: PadState): SeenState => {
  const active = isActive(look);
  return {
    pad,
    look,
    isActive: active,
    position: state.position,
    positionHolds: state.positionHolds,
    content: active ? state.content : null,
    expiresAt: active ? state.expiresAt : null,
    pages: state.pages,
    entries: state.entries,
    over: state.over,
  };
};

/** A store that is away is `UNAVAILABLE`, within its time limit for a command. */
export const answered = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    throw domainErrorOf(error) ?? error;
  }
};
