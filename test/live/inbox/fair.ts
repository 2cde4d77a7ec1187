import type { Agent, Observation } from './observed.ts';
import { Record } from './rules.ts';

/** So often something later may come first, as somebody else had the thread of what waits for a moment. */
const MOST_PASSED = 3;

/**
 * Of an agent that does one thing at a time: messages that waited while later ones of other threads were handed out, more often
 * than may be. Only what surely waited counts: nothing that moves it had begun.
 */
export const passedOver = ({ handle, isConcurrent }: Agent, seen: readonly Observation[]): string[] => {
  // Of another, whatever came to nobody may be in hand meanwhile.
  if (isConcurrent) return [];
  const events = seen.flatMap((one) => (one.kind === 'EVENT' ? one : []));
  const messages = events.flatMap(({ event, thread, span }) =>
    event.kind === 'MESSAGE' ? { ...event, thread, span } : [],
  );
  const sees = (thread: string, seq: number): boolean =>
    new Record(
      handle,
      events.filter((one) => one.thread === thread).map(({ event }) => event),
    ).isActive(seq - 1);
  const atOf = new Map(messages.map(({ thread, seq, at }) => [`${thread} ${seq}`, at]));
  return messages
    .filter(({ sender, thread, seq }) => sender !== handle && sees(thread, seq))
    .flatMap(({ thread, seq, at, span }) => {
      // From the first on that may have ended its wait nothing is said of it.
      const end = Math.min(
        ...seen
          .filter((one) => one.thread === thread && one.span.to >= span.from && mayMove(one, handle, seq))
          .map((one) => one.span.from),
      );
      const later = seen.filter(
        (one) =>
          one.kind === 'GIVEN' &&
          one.thread !== thread &&
          one.span.from > span.to &&
          one.span.to < end &&
          (atOf.get(`${one.thread} ${one.seqs[0]}`) ?? '') > at,
      );
      return later.length > MOST_PASSED
        ? [`${handle} was given ${later.length} later messages before ${thread} ${seq}.`]
        : [];
    });
};

const mayMove = (one: Observation, agent: string, seq: number): boolean => {
  switch (one.kind) {
    case 'GIVEN':
      return one.seqs.includes(seq);
    case 'ACKNOWLEDGED':
      return one.upTo === null || one.upTo >= seq;
    case 'EVENT':
      return (
        one.answers !== null ||
        (one.event.kind === 'RETRACTION' && one.event.message === seq) ||
        (one.event.kind === 'CHANGE' && one.event.subject === agent)
      );
    default:
      return false;
  }
};
