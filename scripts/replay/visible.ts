/** What of an event decides who may see it. */
export interface Recorded {
  readonly seq: number;
  readonly type: string;
  /** Of a ParticipantStateChanged. */
  readonly participantId?: string | undefined;
  readonly to?: string | undefined;
}

/**
 * What one participant may see of a thread, by the plain rule and in no clever way: its own changes of state, and
 * whatever happens while it is active. An event is judged by the last change before it.
 */
export const visibleTo = <Event extends Recorded>(
  participantId: string,
  record: readonly Event[],
): Event[] => {
  let isActive = true;
  return record.filter((event) => {
    const wasActive = isActive;
    const isOwn = event.type === 'ParticipantStateChanged' && event.participantId === participantId;
    if (isOwn) isActive = event.to === 'ACTIVE';
    return isOwn || wasActive;
  });
};

/** Whether a participant is active at a position of the thread, the change at that position included. */
export const isActiveAt = (
  participantId: string,
  record: readonly Recorded[],
  threadSeq: number,
): boolean => {
  const changes = record.filter(
    (event) =>
      event.type === 'ParticipantStateChanged' &&
      event.participantId === participantId &&
      event.seq <= threadSeq,
  );
  return changes.at(-1)?.to !== 'REMOVED';
};
