import { isEnumType } from 'graphql';
import { entryCursor, keysetCursor, padCursor, timelineCursor } from '../../src/shared/cursors.ts';
import { entryId, type IdKind, newEpoch, newId, readEntryId } from '../../src/shared/ids.ts';
import { type Leaf, type RootField, type Variables, variablesOf } from './operations.ts';
import { cursorOf, type World } from './world.ts';

/** What an argument names: objects of these kinds, or a position. */
export type Refers = IdKind | 'Position' | 'PadPosition' | 'EntryPosition' | `List:${string}`;

/** What each argument of type ID or Cursor refers to, by coordinate or, where all of a name agree, by name. */
const REFERS: Readonly<Record<string, readonly Refers[]>> = {
  as: ['Participant'],
  threadId: ['Thread'],
  participantId: ['Participant'],
  participantIds: ['Participant'],
  mentionIds: ['Participant'],
  credentialId: ['Credential'],
  userId: ['User'],
  messageId: ['Event'],
  runId: ['Run'],
  parentRunId: ['Run'],
  conversationThreadId: ['Thread'],
  scratchpadId: ['Scratchpad'],
  originatingMessageId: ['Event'],
  sourceIds: ['Event', 'ScratchpadEntry', 'MemoryEntry'],
  upTo: ['Position'],
  ifNothingAfter: ['Position'],
  acknowledgeUpTo: ['Position'],
  deliveryId: ['Delivery'],
  'Query.node.id': [
    'User',
    'Participant',
    'Credential',
    'Thread',
    'Event',
    'Engagement',
    'Scratchpad',
    'ScratchpadEntry',
    'MemoryEntry',
    'Run',
  ],
  'Query.nodes.ids': [
    'User',
    'Participant',
    'Credential',
    'Thread',
    'Event',
    'Engagement',
    'Scratchpad',
    'ScratchpadEntry',
    'MemoryEntry',
    'Run',
  ],
  'Query.thread.id': ['Thread'],
  'Query.run.id': ['Run'],
  'Query.runs.after': ['List:runs'],
  'Query.runs.before': ['List:runs'],
  'Query.participant.id': ['Participant'],
  'Query.scratchpad.id': ['Scratchpad'],
  'Query.engagement.id': ['Engagement'],
  'Timeline.event.id': ['Event'],
  'Timeline.events.after': ['Position'],
  'Timeline.events.before': ['Position'],
  'Subscription.timeline.after': ['Position'],
  'Subscription.scratchpad.after': ['PadPosition'],
  'Scratchpad.entries.after': ['EntryPosition'],
  'Scratchpad.entries.before': ['EntryPosition'],
  'Query.threads.after': ['List:threads'],
  'Query.threads.before': ['List:threads'],
  'Query.engagements.after': ['List:engagements'],
  'Query.engagements.before': ['List:engagements'],
  'Query.participants.after': ['List:part'],
  'Query.participants.before': ['List:part'],
  'Query.credentials.after': ['List:cred'],
  'Query.credentials.before': ['List:cred'],
  'Query.scratchpads.after': ['List:scratchpads'],
  'Query.scratchpads.before': ['List:scratchpads'],
  'Query.searchMessages.after': ['List:found'],
  'Query.searchMessages.before': ['List:found'],
  'Query.recall.after': ['List:recall'],
  'Query.recall.before': ['List:recall'],
  'Participant.memory.after': ['List:memory'],
  'Participant.memory.before': ['List:memory'],
  'Query.users.after': ['List:user'],
  'Query.users.before': ['List:user'],
};

export const isReference = ({ type }: Leaf): boolean => type.name === 'ID' || type.name === 'Cursor';

/** Throws for an argument that nobody has told the tests of. */
export const refersTo = (leaf: Leaf): readonly Refers[] => {
  const refers = REFERS[leaf.coordinate] ?? REFERS[leaf.name];
  if (refers === undefined)
    throw new Error(`${leaf.coordinate} takes an id or a cursor: say in test/support/samples.ts of what.`);
  return refers;
};

/** Everything of a world that can be referred to, by kind. */
export type References = Readonly<Partial<Record<Refers, readonly string[]>>>;

const ACTIVITY = '1700000000000000';
const CREATED = '1700000000000';

export const referencesIn = (world: World): Record<IdKind, readonly string[]> & References => {
  const { people, threadId, laterThreadId, engagementId, scratchpadId, owner, userId } = world;
  const events = [world.message, world.reply, world.late, world.removal, world.retraction];
  const everybody = Object.values(people);
  const [first] = everybody;
  return {
    User: [userId],
    Participant: everybody.map(({ id }) => id),
    Credential: [owner.credentialId, ...everybody.map(({ credentialId }) => credentialId)],
    Thread: [threadId, laterThreadId],
    Event: [...events.map(({ id }) => id), world.opening.id],
    Engagement: [engagementId],
    Scratchpad: [scratchpadId],
    ScratchpadEntry: [world.note.id, world.lateNote.id],
    MemoryEntry: [world.memory.id, world.known.id],
    Run: [world.runId],
    Delivery: [world.deliveryId],
    Audit: [],
    Position: events.map(cursorOf),
    PadPosition: world.padCursors,
    EntryPosition: entryCursorsOf(world),
    'List:threads': [keysetCursor('threads', [ACTIVITY, threadId])],
    'List:engagements': [keysetCursor('engagements', [ACTIVITY, threadId])],
    'List:scratchpads': [keysetCursor('scratchpads', [CREATED, scratchpadId])],
    'List:part': [keysetCursor('part', [first?.id ?? ''])],
    'List:cred': [keysetCursor('cred', [owner.credentialId])],
    'List:found': [keysetCursor('found', [world.late.id, 1, world.reply.id])],
    'List:recall': [keysetCursor('recall', [2, 0, world.memory.number])],
    'List:memory': [keysetCursor('memory', [world.memory.number])],
    'List:user': [keysetCursor('user', [userId])],
    'List:runs': [keysetCursor('runs', [world.runId])],
  };
};

/** Of the list's edges: its note, and the one that was written after rex was removed. */
export const entryCursorsOf = ({ scratchpadId, note, lateNote }: World): string[] =>
  [note, lateNote].flatMap(({ id }) => {
    const place = readEntryId(id);
    return place === undefined ? [] : [entryCursor(scratchpadId, place.epoch, place.seq)];
  });

/** One that never existed. */
export const unknown = (refers: Refers): string => {
  switch (refers) {
    case 'Position':
      return timelineCursor(newId('Thread'), 3, newId('Event'));
    case 'PadPosition':
      return padCursor(newId('Scratchpad'), { epoch: newEpoch(), rev: 3, seq: 1, tag: '00000000' });
    case 'EntryPosition':
      return entryCursor(newId('Scratchpad'), newEpoch(), 1);
    case 'ScratchpadEntry':
      return entryId({ scratchpadId: newId('Scratchpad'), epoch: newEpoch(), seq: 1 });
    case 'List:threads':
    case 'List:engagements':
      return keysetCursor(refers.slice(5), [ACTIVITY, newId('Thread')]);
    case 'List:scratchpads':
      return keysetCursor('scratchpads', [CREATED, newId('Scratchpad')]);
    case 'List:part':
      return keysetCursor('part', [newId('Participant')]);
    case 'List:cred':
      return keysetCursor('cred', [newId('Credential')]);
    case 'List:runs':
      return keysetCursor('runs', [newId('Run')]);
    case 'List:user':
      return keysetCursor('user', [newId('User')]);
    case 'List:found':
      return keysetCursor('found', [newId('Event'), 1, newId('Event')]);
    case 'List:recall':
      return keysetCursor('recall', [2, 0, 1]);
    case 'List:memory':
      return keysetCursor('memory', [1]);
    default:
      return newId(refers as IdKind);
  }
};

let count = 0;

type Sample = (world: World) => unknown;

/** A value that does its work in this world, by coordinate or by name. */
const SAMPLES: Readonly<Record<string, Sample>> = {
  as: ({ people }) => people.ada.id,
  'TakePendingInput.as': ({ people }) => people.scout.id,
  'ExtendLeaseInput.as': ({ people }) => people.scout.id,
  'Query.peekPending.as': ({ people }) => people.scout.id,
  'Subscription.inbox.as': ({ people }) => people.scout.id,
  deliveryId: ({ deliveryId }) => deliveryId,
  seconds: () => 60,
  max: () => 5,
  'Query.recall.as': ({ people }) => people.scout.id,
  'StoreMemoryInput.as': ({ people }) => people.scout.id,
  threadId: ({ threadId }) => threadId,
  participantId: ({ people }) => people.scout.id,
  participantIds: ({ people }) => [people.ada.id, people.scout.id, people.rex.id],
  credentialId: ({ people }) => people.scout.credentialId,
  userId: ({ userId }) => userId,
  messageId: ({ late }) => late.id,
  runId: ({ runId }) => runId,
  'Query.run.id': ({ runId }) => runId,
  'UpdateRunInput.status': () => 'CANCELLED',
  scratchpadId: ({ scratchpadId }) => scratchpadId,
  upTo: ({ reply }) => cursorOf(reply),
  'Query.node.id': ({ threadId }) => threadId,
  'Query.nodes.ids': ({ threadId, late }) => [threadId, late.id],
  'Query.thread.id': ({ threadId }) => threadId,
  'Query.engagement.threadId': ({ threadId }) => threadId,
  'Query.participant.id': ({ people }) => people.scout.id,
  'Query.scratchpad.id': ({ scratchpadId }) => scratchpadId,
  'CreateScratchpadInput.threadId': ({ laterThreadId }) => laterThreadId,
  'Timeline.event.id': ({ reply }) => reply.id,
  'OpenThreadInput.participantIds': ({ people }) => [people.ada.id, people.lil.id],
  'ExtendThreadInput.participantIds': ({ people }) => [people.lil.id],
  'Query.searchMessages.query': ({ mark }) => mark,
  payload: ({ mark }) => ({ note: `${mark} remembers` }),
  handle: ({ mark }) => `${mark}-new-${++count}`,
  name: ({ mark }) => `${mark} new ${++count}`,
  content: ({ mark }) => `${mark} says`,
  contents: ({ mark }) => [`${mark} says`, `${mark} adds`],
  text: ({ mark }) => `${mark} writes`,
  confirmName: ({ mark }) => `${mark} company`,
  token: ({ apiKey }) => apiKey,
  threadOnly: () => true,
  metaData: () => ({ colour: 'red' }),
  displayName: ({ mark }) => `${mark} renamed`,
  label: ({ mark }) => mark,
  'SignalInput.kind': () => 'typing',
  kind: () => 'AGENT',
  tools: () => [{ type: 'scratchpad' }],
  'ExecuteToolInput.name': () => 'append_scratchpad',
  arguments: ({ mark }) => ({ note: `${mark} notes` }),
  'CreateConnectionTicketInput.query': () => 'subscription { threads { ended } }',
};

/** Arguments without which the operation would only say that something is missing. */
const GIVEN = new Set([
  'TakePendingInput.max',
  'upTo',
  'StoreMemoryInput.threadId',
  'CreateApiKeyInput.label',
  'UpdateRunInput.status',
  'Query.participant.id',
  'Query.engagement.threadId',
  'UpdateParticipantInput.displayName',
  'ExecuteToolInput.threadId',
  'UpdateScratchpadInput.metaData',
  'Subscription.scratchpad.scratchpadId',
  'DelegateRunInput.scratchpadId',
]);

/** Where somebody must act though it is no mutation. */
const ACTS = new Set(['Query.peekPending.as', 'Query.recall.as', 'Subscription.inbox.as']);

/** Whether a working call gives it: what is required, what little else is needed, and who acts where somebody must. */
export const isGiven = ({ coordinate, name, isRequired, path }: Leaf, actsAs: boolean): boolean =>
  isRequired ||
  GIVEN.has(coordinate) ||
  GIVEN.has(name) ||
  (actsAs && name === 'as' && (path.length > 1 || ACTS.has(coordinate)));

export const sampleOf = (leaf: Leaf, world: World): unknown => {
  const sample = SAMPLES[leaf.coordinate] ?? SAMPLES[leaf.name];
  if (sample !== undefined) return sample(world);
  if (isEnumType(leaf.type)) return leaf.type.getValues()[0]?.name;
  throw new Error(`${leaf.coordinate} is required: give it a sample in test/support/samples.ts.`);
};

/** Two ways to name one thing, of which one is given. */
const EITHER = [
  ['Query.engagement.id', 'Query.engagement.threadId'],
  ['Query.participant.id', 'Query.participant.handle'],
  ['ExecuteToolInput.runId', 'ExecuteToolInput.threadId'],
  ['Subscription.scratchpad.scratchpadId', 'Subscription.scratchpad.threadId'],
];
export const isEither = (one: Leaf, other: Leaf): boolean =>
  one !== other && EITHER.some((pair) => pair.includes(one.coordinate) && pair.includes(other.coordinate));

/** Variables with which a user's operation does its work in this world, but for what is replaced. */
export const workingCall = (
  { leaves }: RootField,
  world: World,
  replaced: ReadonlyMap<Leaf, unknown> = new Map(),
): Variables =>
  variablesOf(
    leaves
      .filter(
        (leaf) =>
          replaced.has(leaf) ||
          (isGiven(leaf, true) && ![...replaced.keys()].some((other) => isEither(leaf, other))),
      )
      .map((leaf) => [leaf.path, replaced.has(leaf) ? replaced.get(leaf) : sampleOf(leaf, world)] as const),
  );
