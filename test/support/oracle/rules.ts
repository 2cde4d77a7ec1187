/**
 * What the record is and who may see what of it, in plain lines and without windows: rules 1–3 of visibility word
 * by word, everything else derived from them by looking at every event again. Slow and easy to believe.
 */

/** A participant's handle; null: the owner with the full record. */
export type Viewer = string | null;
export type State = 'ACTIVE' | 'REMOVED';

export interface OracleThread {
  readonly members: readonly string[];
  readonly events: OracleEvent[];
  /** Read positions, by member. */
  readonly acknowledged: Map<string, number>;
  /** Filled from what the server answered. */
  id: string;
}

interface EventBase {
  readonly thread: OracleThread;
  readonly seq: number;
  /** Filled from what the server answered. */
  id: string;
  at: string;
  cursor: string;
}
export interface OracleMessage extends EventBase {
  readonly type: 'MESSAGE';
  readonly sender: string;
  readonly content: string;
  readonly clientKey: string | null;
  readonly agentHops: number;
  readonly mentions: readonly string[];
  readonly sources: readonly OracleEvent[];
  readonly originating: OracleEvent | null;
}
export interface OracleStateChange extends EventBase {
  readonly type: 'PARTICIPANT_STATE_CHANGED';
  readonly subject: string;
  readonly to: State;
  readonly actor: Viewer;
}
export interface OracleRetraction extends EventBase {
  readonly type: 'RETRACTION';
  readonly actor: string;
  readonly message: OracleMessage;
  readonly reason: string;
}
export interface OracleSystemEvent extends EventBase {
  readonly type: 'SYSTEM';
  readonly kind: 'THREAD_OPENED' | 'CONTINUED_AS' | 'CONTINUES';
  readonly related: OracleThread | null;
}
export type OracleEvent = OracleMessage | OracleStateChange | OracleRetraction | OracleSystemEvent;
export type OracleEventType = OracleEvent['type'];

// Rules 1–3.

export const isMember = (viewer: Viewer, thread: OracleThread): boolean =>
  viewer === null || thread.members.includes(viewer);

/** As the latest state change strictly before `seq` left it; none: active. */
const stateBefore = (thread: OracleThread, participant: string, seq: number): State =>
  stateChanges(thread, participant).findLast((change) => change.seq < seq)?.to ?? 'ACTIVE';

export const sees = (viewer: Viewer, event: OracleEvent): boolean => {
  if (viewer === null) return true;
  if (!isMember(viewer, event.thread)) return false;
  if (event.type === 'PARTICIPANT_STATE_CHANGED' && event.subject === viewer) return true;
  if (event.type === 'SYSTEM' && event.related !== null && !event.related.members.includes(viewer))
    return false;
  return stateBefore(event.thread, viewer, event.seq) === 'ACTIVE';
};

// What follows from them.

/** Sorted out once for each length of a record, which only grows. */
const sorted = new WeakMap<OracleThread, { length: number; changes: Map<string, OracleStateChange[]> }>();

const stateChanges = (thread: OracleThread, participant: string): readonly OracleStateChange[] => {
  const { length } = thread.events;
  let known = sorted.get(thread);
  if (known?.length !== length) {
    known = { length, changes: new Map(thread.members.map((member) => [member, []])) };
    for (const event of thread.events)
      if (event.type === 'PARTICIPANT_STATE_CHANGED') known.changes.get(event.subject)?.push(event);
    sorted.set(thread, known);
  }
  return known.changes.get(participant) ?? [];
};

export const stateNow = (thread: OracleThread, participant: string): State =>
  stateBefore(thread, participant, Number.POSITIVE_INFINITY);

export const visible = (viewer: Viewer, thread: OracleThread): OracleEvent[] =>
  thread.events.filter((event) => sees(viewer, event));

export const lastEvent = (viewer: Viewer, thread: OracleThread): OracleEvent => {
  const last = visible(viewer, thread).at(-1);
  if (last === undefined) throw new Error('A member sees at least the opening.');
  return last;
};

export const lastMessage = (viewer: Viewer, thread: OracleThread): OracleMessage | null =>
  visible(viewer, thread).findLast((event) => event.type === 'MESSAGE') ?? null;

const retractionOf = (message: OracleMessage): OracleRetraction | null =>
  (message.thread.events.find((event) => event.type === 'RETRACTION' && event.message === message) ??
    null) as OracleRetraction | null;

/** Shown only where the viewer may see it. */
export const retraction = (viewer: Viewer, message: OracleMessage): OracleRetraction | null => {
  const found = retractionOf(message);
  return found !== null && sees(viewer, found) ? found : null;
};

/** Live for who is active now; as of the end of its last window for who is removed. */
export const isRetracted = (viewer: Viewer, message: OracleMessage): boolean => {
  const found = retractionOf(message);
  if (found === null) return false;
  const isRemoved = viewer !== null && stateNow(message.thread, viewer) === 'REMOVED';
  return !isRemoved || found.seq <= lastEvent(viewer, message.thread).seq;
};

export const unreadCount = (viewer: Viewer, thread: OracleThread): number => {
  if (viewer === null) return 0;
  const read = thread.acknowledged.get(viewer) ?? 0;
  return visible(viewer, thread).filter(
    (event) =>
      event.type === 'MESSAGE' && event.sender !== viewer && event.seq > read && !isRetracted(viewer, event),
  ).length;
};

/** (after, end], `end` null while it goes on. */
export const windows = (viewer: Viewer, thread: OracleThread): { after: number; end: number | null }[] => {
  const found: { after: number; end: number | null }[] = [{ after: 0, end: null }];
  if (viewer === null) return found;
  for (const { seq, to } of stateChanges(thread, viewer)) {
    const open = found.at(-1);
    if (to === 'REMOVED' && open !== undefined) open.end = seq;
    if (to === 'ACTIVE') found.push({ after: seq, end: null });
  }
  return found;
};

/** Since when a member is in its state, as far as the viewer may know. */
export const since = (viewer: Viewer, thread: OracleThread, member: string): string => {
  const isAway = viewer !== null && stateNow(thread, viewer) === 'REMOVED';
  const known = stateChanges(thread, member).filter((change) => !isAway || sees(viewer, change));
  return (known.at(-1) ?? thread.events[0])?.at ?? '';
};

const latestFirst = <T>(items: readonly T[], key: (item: T) => readonly [at: string, id: string]): T[] =>
  [...items].sort((a, b) => {
    const [atA, idA] = key(a);
    const [atB, idB] = key(b);
    if (atA !== atB) return atA < atB ? 1 : -1;
    return idA < idB ? 1 : -1;
  });

/** A member's threads (the owner's: all), latest visible activity first. */
export const threadsOf = (viewer: Viewer, threads: readonly OracleThread[]): OracleThread[] =>
  latestFirst(
    threads.filter((thread) => isMember(viewer, thread)),
    (thread) => [lastEvent(viewer, thread).at, thread.id],
  );

/** Threads joined by links of which the viewer may see one of the two events; latest visible activity first. */
export const engagementsOf = (viewer: Viewer, threads: readonly OracleThread[]): OracleThread[][] => {
  const mine = threads.filter((thread) => isMember(viewer, thread));
  const groups = new Map(mine.map((thread) => [thread, [thread]]));
  for (const thread of mine)
    for (const event of thread.events) {
      if (event.type !== 'SYSTEM' || event.related === null || !sees(viewer, event)) continue;
      const [one, other] = [groups.get(thread), groups.get(event.related)];
      if (one === undefined || other === undefined || one === other) continue;
      const joined = [...one, ...other];
      for (const member of joined) groups.set(member, joined);
    }
  const oldestFirst = [...new Set(groups.values())].map((group) =>
    group.sort((a, b) => (a.id < b.id ? -1 : 1)),
  );
  return latestFirst(oldestFirst, (group) => [newest(viewer, group).at, group[0]?.id ?? '']);
};

export const newest = (viewer: Viewer, group: readonly OracleThread[]): OracleEvent => {
  const [first] = latestFirst(
    group.map((thread) => lastEvent(viewer, thread)),
    ({ at, thread }) => [at, thread.id],
  );
  if (first === undefined) throw new Error('An engagement has a thread.');
  return first;
};

export interface OraclePage {
  readonly events: readonly OracleEvent[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

export interface OraclePageInput {
  readonly first?: number | undefined;
  readonly last?: number | undefined;
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  readonly types?: readonly OracleEventType[] | undefined;
}

export const pageOf = (viewer: Viewer, thread: OracleThread, input: OraclePageInput): OraclePage => {
  const { first, last = 50, after = 0, before = Number.POSITIVE_INFINITY, types } = input;
  const all = visible(viewer, thread).filter(({ type }) => types === undefined || types.includes(type));
  const between = all.filter(({ seq }) => seq > after && seq < before);
  const events = first === undefined ? between.slice(-last) : between.slice(0, first);
  return {
    events,
    hasNextPage:
      first === undefined
        ? all.some(({ seq }) => seq >= before)
        : between.length > first || all.some(({ seq }) => seq >= before),
    hasPreviousPage:
      first === undefined
        ? between.length > last || all.some(({ seq }) => seq <= after)
        : all.some(({ seq }) => seq <= after),
  };
};
