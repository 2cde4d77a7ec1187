/** The rules of an inbox in a few plain lines, for one thing after the other. */

export interface ModelMessage {
  readonly kind: 'MESSAGE';
  readonly seq: number;
  readonly sender: string;
  readonly content: string;
  readonly mentions: readonly string[];
  /** When, over all threads. */
  readonly order: number;
  isRetracted: boolean;
}

interface ModelChange {
  readonly kind: 'CHANGE';
  readonly seq: number;
  readonly subject: string;
  readonly isActive: boolean;
}

export interface InHand {
  readonly deliveryId: string;
  readonly seqs: readonly number[];
  readonly attempt: number;
  hasLapsed: boolean;
}

export interface ModelThread {
  readonly id: string;
  readonly members: readonly string[];
  lastSeq: number;
  readonly events: (ModelMessage | ModelChange)[];
  readonly acked: Map<string, number>;
  readonly inHand: Map<string, InHand>;
}

export const newThread = (id: string, members: readonly string[]): ModelThread => ({
  id,
  members,
  lastSeq: 1,
  events: [],
  acked: new Map(),
  inHand: new Map(),
});

export const isActive = (thread: ModelThread, agent: string, before = Number.POSITIVE_INFINITY): boolean => {
  const last = thread.events.findLast(
    (event) => event.kind === 'CHANGE' && event.subject === agent && event.seq < before,
  );
  return last?.kind === 'CHANGE' ? last.isActive : true;
};

/** What waits for an agent in a thread: seen, by others, not acknowledged, not taken back. Nothing while it is removed. */
export const pendingOf = (thread: ModelThread, agent: string, onlyMentions = false): ModelMessage[] =>
  isActive(thread, agent)
    ? thread.events.filter(
        (event): event is ModelMessage =>
          event.kind === 'MESSAGE' &&
          event.sender !== agent &&
          event.seq > (thread.acked.get(agent) ?? 0) &&
          !event.isRetracted &&
          isActive(thread, agent, event.seq) &&
          (!onlyMentions || event.mentions.includes(agent)),
      )
    : [];

export interface Expected {
  readonly threadId: string;
  readonly seqs: readonly number[];
  readonly attempt: number;
  readonly pendingCount: number;
}

/** What a take must give: of each thread nobody has in hand, the longest waiting first. */
export const expectedOf = (
  threads: readonly ModelThread[],
  agent: string,
  options: { max: number; batch: number; isConcurrent: boolean; onlyMentions: boolean },
): Expected[] => {
  const mine = threads.filter(({ members }) => members.includes(agent));
  const isBusy = mine.some((thread) => thread.inHand.get(agent)?.hasLapsed === false);
  if (!options.isConcurrent && isBusy) return [];
  return mine
    .filter((thread) => thread.inHand.get(agent)?.hasLapsed !== false)
    .map((thread) => ({ thread, pending: pendingOf(thread, agent, options.onlyMentions) }))
    .filter(({ pending }) => pending.length > 0)
    .sort((one, other) => (one.pending[0]?.order ?? 0) - (other.pending[0]?.order ?? 0))
    .slice(0, options.isConcurrent ? options.max : 1)
    .map(({ thread, pending }) => ({
      threadId: thread.id,
      seqs: pending.slice(0, options.batch).map(({ seq }) => seq),
      attempt: (thread.inHand.get(agent)?.attempt ?? 0) + 1,
      pendingCount: pendingOf(thread, agent).length,
    }));
};
