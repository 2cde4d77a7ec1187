import type { LogEvent, Observation } from './observed.ts';

// The rules of an inbox in a few plain lines, for one thing after the other.

interface Hand {
  /** Null: nobody was told. */
  readonly deliveryId: string | null;
  readonly seqs: readonly number[];
  readonly attempt: number;
  /** Its lease goes on. */
  readonly isLive: boolean;
}

/** Where an agent stands in a thread. */
export interface Place {
  /** The record up to here. */
  readonly head: number;
  readonly acknowledged: number;
  readonly hand: Hand | null;
  /** Deliveries that were acknowledged. */
  readonly closed: readonly string[];
}

export const FIRST_PLACE: Place = { head: 0, acknowledged: 0, hand: null, closed: [] };

/** The record of one thread, ascending, as one agent sees it. */
export class Record {
  readonly events: readonly LogEvent[];
  readonly #agent: string;
  readonly #known = new Map<string, readonly number[]>();

  constructor(agent: string, events: readonly LogEvent[]) {
    this.#agent = agent;
    this.events = events;
  }

  isActive(head: number): boolean {
    const last = this.events.findLast(
      (event) => event.seq <= head && event.kind === 'CHANGE' && event.subject === this.#agent,
    );
    return last?.kind === 'CHANGE' ? last.isActive : true;
  }

  /** What waits: seen, by others, not acknowledged, not taken back. Nothing while removed. */
  pending({ head, acknowledged }: Place): readonly number[] {
    const key = `${head} ${acknowledged}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const there = this.events.filter(({ seq }) => seq <= head);
    const retracted = new Set(there.flatMap((event) => (event.kind === 'RETRACTION' ? event.message : [])));
    const seqs = this.isActive(head)
      ? there
          .filter((event) => event.kind === 'MESSAGE' && event.sender !== this.#agent)
          .map(({ seq }) => seq)
          .filter((seq) => seq > acknowledged && !retracted.has(seq) && this.isActive(seq - 1))
      : [];
    this.#known.set(key, seqs);
    return seqs;
  }
}

const close = (place: Place, { deliveryId }: Hand): Place => ({
  ...place,
  hand: null,
  closed: deliveryId === null ? place.closed : [deliveryId, ...place.closed].slice(0, 16),
});
const upTo = (place: Place, seq: number): Place => ({
  ...place,
  acknowledged: Math.max(seq, place.acknowledged),
});
const lastOf = ({ seqs }: Hand): number => seqs.at(-1) ?? 0;
const isSame = (one: readonly number[], other: readonly number[]): boolean =>
  one.length === other.length && one.every((seq, index) => seq === other[index]);

/** Where a delivery that is taken now leaves the place; null: none can be. */
export const take = (
  place: Place,
  record: Record,
  deliveryId: string | null,
  batch: number,
): (Place & { readonly hand: Hand }) | null => {
  if (place.hand?.isLive === true) return null;
  const seqs = record.pending(place).slice(0, batch);
  if (seqs.length === 0) return null;
  return { ...place, hand: { deliveryId, seqs, attempt: (place.hand?.attempt ?? 0) + 1, isLive: true } };
};

/** What ran out, and has nothing left that waits, is nobody's any more once somebody looks; null: it is not so. */
export const letGo = (place: Place, record: Record): Place | null =>
  place.hand?.isLive === false && record.pending(place).length === 0 ? { ...place, hand: null } : null;

/** Acknowledges a delivery; null: it is not in flight. */
const acknowledge = (place: Place, deliveryId: string, seq: number | null): Place | null => {
  const { hand } = place;
  if (hand?.deliveryId !== deliveryId) return null;
  return upTo(close(place, hand), seq ?? lastOf(hand));
};

/**
 * Where the place is after this was seen; null: so it cannot have been seen here. `isBusy`: the agent has something in hand, and may
 * have nothing else.
 */
export const after = (
  place: Place,
  seen: Observation,
  record: Record,
  agent: string,
  isBusy: boolean,
): Place | null => {
  const { hand } = place;
  switch (seen.kind) {
    case 'EVENT': {
      const { event, answers } = seen;
      if (event.seq !== place.head + 1) return null;
      const then = { ...place, head: event.seq };
      if (event.kind === 'CHANGE') return event.subject === agent ? { ...then, hand: null } : then;
      if (event.kind === 'MESSAGE' && !record.isActive(place.head) && event.sender === agent) return null;
      return answers === null ? then : acknowledge(then, answers, null);
    }
    case 'GIVEN': {
      const taken = isBusy ? null : take(place, record, seen.deliveryId, seen.batch);
      return taken?.hand.attempt === seen.attempt && isSame(taken.hand.seqs, seen.seqs) ? taken : null;
    }
    case 'ACKNOWLEDGED': {
      const { deliveryId, code } = seen;
      if (deliveryId === null) {
        if (code === 'CONFLICT') return null;
        const then = upTo(place, seen.upTo ?? 0);
        return hand !== null && lastOf(hand) <= (seen.upTo ?? 0) ? close(then, hand) : then;
      }
      const then =
        acknowledge(place, deliveryId, seen.upTo) ?? (place.closed.includes(deliveryId) ? place : null);
      if (code === 'CONFLICT') return then === null ? place : null;
      return then;
    }
    case 'REFUSED':
      if (seen.code === 'PARTICIPANT_NOT_ACTIVE') return record.isActive(place.head) ? null : place;
      return record.isActive(place.head) && hand?.deliveryId !== seen.deliveryId ? place : null;
    case 'EXTENDED': {
      // What ran out is taken up again only where it could be handed out.
      const isIn = hand?.deliveryId === seen.deliveryId && (hand.isLive || seen.seconds === 0 || !isBusy);
      if (seen.code === 'CONFLICT') return isIn ? null : place;
      if (!isIn) return null;
      return { ...place, hand: { ...hand, isLive: seen.seconds > 0 } };
    }
    case 'LAPSED': {
      const { found } = seen;
      if (found === null)
        return hand === null || (seen.deliveryId !== null && hand.deliveryId !== seen.deliveryId)
          ? place
          : null;
      if (hand === null || (hand.deliveryId ?? found) !== found) return null;
      return { ...place, hand: { ...hand, isLive: false } };
    }
    case 'PENDING':
      return isSame(record.pending(place), seen.seqs) ? place : null;
    default:
      return seen satisfies never;
  }
};
