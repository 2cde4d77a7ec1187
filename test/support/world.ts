import type { Actor } from '../../src/auth/actor.ts';
import type { MemoryEntry } from '../../src/memory/entries.ts';
import type { PadEntry } from '../../src/scratchpads/pad.ts';
import type { Services } from '../../src/services.ts';
import { padCursor, timelineCursor } from '../../src/shared/cursors.ts';
import { ID_PREFIX, idSuffix } from '../../src/shared/ids.ts';
import type { TimelineEvent } from '../../src/timeline/events.ts';
import { ADMIN } from './identity.ts';

export const KINDS = { ada: 'HUMAN', scout: 'AGENT', rex: 'AGENT', nora: 'HUMAN', lil: 'UNIT' } as const;
export type Name = keyof typeof KINDS;

export interface Person {
  readonly id: string;
  readonly token: string;
  readonly credentialId: string;
}

/**
 * A tenant with one of everything. Its thread has the members ada, scout and rex, and rex is removed; nora is in no
 * thread and unlisted; lil is listed, and in the thread that continues the first one. The first thread has a scratchpad.
 */
export interface World {
  /** Stands in every name and text of this tenant, and nowhere else. */
  readonly mark: string;
  readonly owner: Extract<Actor, { kind: 'API_KEY' }>;
  readonly userId: string;
  readonly apiKey: string;
  readonly people: Readonly<Record<Name, Person>>;
  readonly threadId: string;
  readonly laterThreadId: string;
  readonly engagementId: string;
  /** By ada, before rex was removed, and retracted afterwards. */
  readonly message: TimelineEvent;
  /** By scout, while everybody was there. */
  readonly reply: TimelineEvent;
  /** By ada, after rex was removed. */
  readonly late: TimelineEvent;
  readonly removal: TimelineEvent;
  readonly retraction: TimelineEvent;
  readonly opening: { readonly id: string };
  /** What scout has in hand. */
  readonly deliveryId: string;
  /** Of the thread; the later one has none. */
  readonly scratchpadId: string;
  /** By ada, before rex was removed, and after it. */
  readonly note: PadEntry;
  readonly lateNote: PadEntry;
  /** Scout's, in the thread, where alone it is recalled, and outside of any. */
  readonly memory: MemoryEntry;
  readonly known: MemoryEntry;
  /** Of ada's for herself: in the thread, on its scratchpad. */
  readonly runId: string;
  readonly runToken: string;
  /** Where the log of the scratchpad stood after each of the two. */
  readonly padCursors: readonly string[];
}

export const cursorOf = ({ threadId, seq, id }: TimelineEvent): string => timelineCursor(threadId, seq, id);

/** Straight through the services: it is scenery. */
export const createWorld = async (services: Services, mark: string): Promise<World> => {
  const { user, apiKey, credential } = await services.users.create(ADMIN, { name: `${mark} company` });
  const owner = { kind: 'API_KEY', userId: user.id, credentialId: credential.id, actAs: null } as const;
  const people = {} as Record<Name, Person>;
  for (const [name, kind] of Object.entries(KINDS) as [Name, (typeof KINDS)[Name]][]) {
    const { id } = await services.participants.create(owner, {
      kind,
      handle: `${mark}-${name}`,
      metaData: { note: mark },
      listed: name === 'lil',
    });
    const { secret, credential } = await services.credentials.createParticipantToken(owner, {
      participantId: id,
      label: mark,
    });
    people[name] = { id, token: secret, credentialId: credential.id };
  }
  const { ada, scout, rex, lil } = people;
  const { threadId } = await services.threads.open(owner, {
    participantIds: [ada.id, scout.id, rex.id],
    metaData: { note: mark },
  });
  const say = async (as: string, content: string): Promise<TimelineEvent> =>
    (await services.timeline.post(owner, { threadId, as, content: `${mark} ${content}`, data: { mark } }))
      .event;
  const message = await say(ada.id, 'Is anybody here?');
  const reply = await say(scout.id, 'I am.');
  const { pad } = await services.scratchpads.create(owner, { threadId, metaData: { note: mark } });
  const { scratchpadId } = pad;
  const jot = (content: string) =>
    services.scratchpadWriting.append(owner, { scratchpadId, as: ada.id, content: `${mark} ${content}` });
  await services.scratchpadWriting.setContent(owner, { scratchpadId, as: ada.id, text: `${mark} plan` });
  const note = await jot('found it');
  const remember = async (text: string, where: { threadId?: string }): Promise<MemoryEntry> =>
    (await services.memories.store(owner, { ...where, as: scout.id, payload: { note: `${mark} ${text}` } }))
      .entry;
  const memory = await remember('secret', { threadId });
  const known = await remember('habit', {});
  const { event: removal } = await services.threads.changeState(
    owner,
    { threadId, participantId: rex.id },
    'REMOVED',
  );
  const late = await say(ada.id, 'Rex is gone.');
  const lateNote = await jot('lost it');
  const { event: retraction } = await services.timeline.retract(owner, {
    messageId: message.id,
    as: ada.id,
    reason: `${mark} regret`,
  });
  const { threadId: laterThreadId } = await services.threads.extend(owner, {
    threadId,
    participantIds: [lil.id],
  });
  const { given } = await services.inbox.take(owner, { as: scout.id }, new AbortController().signal);
  const delivery = given.find(({ channel }) => channel === 'MESSAGE');
  const [opening] = await services.database.query<{ id: string }>(
    { name: 'world_opening', text: 'SELECT id FROM events WHERE thread_id = $1 AND seq = 1' },
    [threadId],
  );
  const { run, token: runToken } = await services.runs.delegate(owner, {
    as: ada.id,
    participantId: ada.id,
    conversationThreadId: threadId,
    scratchpadId,
    input: { mark },
    metaData: { mark },
  });
  return {
    mark,
    owner,
    userId: user.id,
    apiKey,
    people,
    threadId,
    laterThreadId,
    engagementId: `${ID_PREFIX.Engagement}_${idSuffix(threadId)}`,
    message,
    reply,
    late,
    removal,
    retraction,
    opening: { id: opening?.id ?? '' },
    deliveryId: delivery?.channel === 'MESSAGE' ? delivery.deliveryId : '',
    scratchpadId,
    note: note.entry,
    lateNote: lateNote.entry,
    memory,
    known,
    runId: run.id,
    runToken,
    padCursors: [note, lateNote].map(({ position }) => padCursor(scratchpadId, position)),
  };
};

const TABLES: Readonly<Record<string, string>> = {
  users: 'id',
  participants: 'owner_id',
  credentials: 'owner_id',
  tickets: 'owner_id',
  threads: 'owner_id',
  thread_heads: 'owner_id',
  thread_members: 'owner_id',
  visibility_windows: 'owner_id',
  events: 'owner_id',
  message_bodies: 'owner_id',
  retracted_messages: 'owner_id',
  thread_links: 'owner_id',
  idempotency_records: 'owner_id',
  inbox_threads: 'owner_id',
  inboxes: 'owner_id',
  inbox_controls: 'owner_id',
  scratchpads: 'owner_id',
  message_words: 'owner_id',
  memory_heads: 'owner_id',
  memory_scopes: 'owner_id',
  memory_entries: 'owner_id',
  runs: 'owner_id',
  audit_log: 'owner_id',
};

/** Every row of a tenant (or of all), by table, but for when a credential was last used. */
export const rowsOf = async (
  { database }: Pick<Services, 'database'>,
  userId: string | null,
): Promise<Record<string, string[]>> => {
  const rows: Record<string, string[]> = {};
  for (const [table, owner] of Object.entries(TABLES)) {
    const found = await database.query<{ row: string }>(
      {
        name: `rows_of_${table}`,
        text: `SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM ${table} t WHERE $1::text IS NULL OR t.${owner} = $1 ORDER BY 1`,
      },
      [userId],
    );
    rows[table] = found.map(({ row }) => row);
  }
  return rows;
};

/** How many rows there are in each table, over all tenants. */
export const countRows = async ({
  database,
}: Pick<Services, 'database'>): Promise<Record<string, number>> => {
  const counts = Object.keys(TABLES).map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`);
  const [row] = await database.query<Record<string, number>>(
    { name: 'count_rows', text: `SELECT ${counts.join(', ')}` },
    [],
  );
  return { ...row };
};
