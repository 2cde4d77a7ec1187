import type { Observation, Span } from './observed.ts';
import { Record } from './rules.ts';
import type { Notice } from './world.ts';

/**
 * What an agent should have been told at once and was not, and what it was told that is not so: its own changes of state, and that a
 * message that waited for it, or was in its hands, was taken back. `spared`: what was told then may have come to
 * nobody, as an answer was lost on its way, or a stream left unread; it counts as told where it was sent.
 */
export const notToldRight = (
  agent: string,
  seen: readonly Observation[],
  notices: readonly Notice[],
  spared: readonly Span[] = [],
): string[] => {
  const own = notices.filter((notice) => notice.agent === agent);
  const isTold = (kind: string, thread: string, seq: number): boolean =>
    own.some((notice) => notice.kind === kind && notice.thread === thread && notice.seq === seq);
  const threads = [...new Set(seen.map(({ thread }) => thread))];
  const wrong: string[] = [];
  for (const thread of threads) {
    const here = seen.filter((one) => one.thread === thread);
    const events = here.flatMap((one) => (one.kind === 'EVENT' ? one : []));
    const record = new Record(
      agent,
      events.map(({ event }) => event).sort((one, other) => one.seq - other.seq),
    );
    for (const { event, span } of events) {
      const isSpared = spared.some((one) => one.to >= span.from);
      if (event.kind === 'CHANGE' && event.subject === agent) {
        const kind = event.isActive ? 'READDED' : 'REMOVED';
        if (!isSpared && !isTold(kind, thread, event.seq))
          wrong.push(`${agent} was not told ${kind} of ${thread} at ${event.seq}.`);
      }
      if (event.kind !== 'RETRACTION') continue;
      const message = record.events.find(({ seq }) => seq === event.message);
      const isMine = message?.kind === 'MESSAGE' && message.sender === agent;
      const sees = record.isActive(event.message - 1) && record.isActive(event.seq - 1);
      // Acknowledged perhaps, and surely.
      const moves = here.filter(
        (one) =>
          (one.kind === 'ACKNOWLEDGED' && one.code !== 'CONFLICT') ||
          (one.kind === 'EVENT' && one.answers !== null),
      );
      const mayBeRead = moves.some((one) => one.span.from <= span.to);
      if (!isSpared && sees && !isMine && !mayBeRead && !isTold('MESSAGE_RETRACTED', thread, event.seq))
        wrong.push(
          `${agent} was not told that ${event.message} of ${thread} was taken back at ${event.seq}.`,
        );
      if ((isMine || !sees) && isTold('MESSAGE_RETRACTED', thread, event.seq))
        wrong.push(`${agent} was told of ${event.message} of ${thread}, which is none of what it waits for.`);
    }
    for (const { kind, seq } of own.filter((notice) => notice.thread === thread)) {
      const event = record.events.find((one) => one.seq === seq);
      const isSo =
        kind === 'MESSAGE_RETRACTED'
          ? event?.kind === 'RETRACTION'
          : event?.kind === 'CHANGE' && event.subject === agent && event.isActive === (kind === 'READDED');
      if (!isSo) wrong.push(`${agent} was told ${kind} of ${thread} at ${seq}, which is not so.`);
    }
  }
  return wrong;
};
