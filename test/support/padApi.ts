import { expect } from 'vitest';
import { type Answer, createTenant, type Server, type Tenant } from './app.ts';

export const KINDS = { ada: 'HUMAN', ben: 'AGENT', cleo: 'AGENT', dora: 'HUMAN' } as const;
export type Name = keyof typeof KINDS;

/** A tenant whose ada, ben and cleo have a thread, with a scratchpad unless told otherwise; dora is in none. */
export interface PadWorld {
  readonly tenant: Tenant;
  readonly apiKey: string;
  readonly threadId: string;
  readonly scratchpadId: string;
  id(name: Name): string;
  token(name: Name): string;
  /** One operation; throws unless it has data and no error. */
  must<Data>(token: string, query: string, variables?: object): Promise<Data>;
  /** The code and facts of an operation that is refused. */
  refused(token: string, query: string, variables?: object): Promise<Record<string, unknown>>;
  setState(name: Name, to: 'REMOVED' | 'ACTIVE'): Promise<{ seq: number }>;
  append(token: string, content: string, input?: object): Promise<Appended>;
  setContent(token: string, text: string, input?: object): Promise<Written>;
  clear(token: string, what?: 'Content' | 'Entries' | ''): Promise<void>;
}

export interface Entry {
  readonly id: string;
  readonly seq: number;
  readonly threadSeq: number;
  readonly content: string;
  readonly cursor: string;
  readonly author: { readonly handle: string } | null;
}
export interface Appended {
  readonly entry: Entry;
  readonly cursor: string;
  readonly edge: { readonly cursor: string; readonly node: { readonly id: string } };
}
export interface Written {
  readonly content: { readonly text: string; readonly version: number; readonly etag: string };
  readonly cursor: string;
  readonly scratchpad: { readonly id: string };
}

const ENTRY = 'id seq threadSeq content cursor author { handle }';
export const APPEND = `mutation ($input: AppendScratchpadEntryInput!) {
  appendScratchpadEntry(input: $input) { entry { ${ENTRY} } cursor edge { cursor node { id } } } }`;
export const APPEND_ALL = `mutation ($input: AppendScratchpadEntriesInput!) {
  appendScratchpadEntries(input: $input) { entries { ${ENTRY} } cursor } }`;
export const SET_CONTENT = `mutation ($input: SetScratchpadContentInput!) {
  setScratchpadContent(input: $input) { content { text version etag } cursor scratchpad { id } } }`;

const outcome = <Data>({ data, errors }: Answer<Data>): Data => {
  expect(errors).toBeUndefined();
  if (!data) throw new Error('No data.');
  return data;
};

export const createPadWorld = async (
  server: Pick<Server, 'graphql'>,
  { hasPad = true, ttlSeconds }: { readonly hasPad?: boolean; readonly ttlSeconds?: number } = {},
): Promise<PadWorld> => {
  const tenant = await createTenant(server, KINDS);
  const { apiKey } = tenant;
  const person = (name: Name) => tenant.participants[name] ?? { id: '', token: '' };
  const id = (name: Name): string => person(name).id;
  const must: PadWorld['must'] = async (token, query, variables = {}) =>
    outcome(await server.graphql(token, query, variables as Record<string, unknown>)) as never;

  const { openThread } = await must<{ openThread: { thread: { id: string } } }>(
    apiKey,
    'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
    { ids: [id('ada'), id('ben'), id('cleo')] },
  );
  const threadId = openThread.thread.id;
  const made = hasPad
    ? await must<{ createScratchpad: { scratchpad: { id: string } } }>(
        apiKey,
        'mutation ($input: CreateScratchpadInput!) { createScratchpad(input: $input) { scratchpad { id } } }',
        { input: { threadId, ...(ttlSeconds === undefined ? {} : { ttlSeconds }) } },
      )
    : null;
  const scratchpadId = made?.createScratchpad.scratchpad.id ?? '';
  return {
    tenant,
    apiKey,
    threadId,
    scratchpadId,
    id,
    token: (name) => person(name).token,
    must,
    refused: async (token, query, variables = {}) => {
      const { errors } = await server.graphql(token, query, variables as Record<string, unknown>);
      expect(errors).toBeDefined();
      return errors?.[0]?.extensions ?? {};
    },
    setState: async (name, to) => {
      const field = to === 'ACTIVE' ? 'readdParticipant' : 'removeParticipant';
      const data = await must<Record<string, { event: { seq: number } }>>(
        apiKey,
        `mutation ($input: ParticipantStateInput!) { ${field}(input: $input) { event { seq } } }`,
        { input: { threadId, participantId: id(name) } },
      );
      return { seq: data[field]?.event.seq ?? 0 };
    },
    append: async (token, content, input = {}) =>
      (
        await must<{ appendScratchpadEntry: Appended }>(token, APPEND, {
          input: { scratchpadId, content, ...input },
        })
      ).appendScratchpadEntry,
    setContent: async (token, text, input = {}) =>
      (
        await must<{ setScratchpadContent: Written }>(token, SET_CONTENT, {
          input: { scratchpadId, text, ...input },
        })
      ).setScratchpadContent,
    clear: async (token, what = '') => {
      await must(
        token,
        `mutation ($input: ClearScratchpadInput!) { clearScratchpad${what}(input: $input) { scratchpad { id } } }`,
        { input: { scratchpadId } },
      );
    },
  };
};

export const FOLLOW = `subscription ($scratchpadId: ID, $threadId: ID, $as: ID, $after: Cursor) {
  scratchpad(scratchpadId: $scratchpadId, threadId: $threadId, as: $as, after: $after) {
    cursor scratchpadId ended
    change {
      __typename
      ... on ScratchpadCreated { scratchpad { id } }
      ... on EntryAppended { scratchpadId entry { id seq content author { handle } } }
      ... on ContentUpdated { scratchpadId content { text version updatedBy { handle } } }
      ... on ContentCleared { scratchpadId actor { handle } }
      ... on EntriesCleared { scratchpadId actor { handle } }
      ... on ScratchpadReset { scratchpad { id } }
      ... on ScratchpadDeleted { scratchpadId }
    }
  }
}`;

export interface PadPayload {
  readonly scratchpad: {
    readonly cursor: string;
    readonly scratchpadId: string | null;
    readonly ended: string | null;
    readonly change: {
      readonly __typename: string;
      readonly entry?: { readonly seq: number; readonly content: string };
      readonly content?: { readonly text: string; readonly version: number };
      readonly actor?: { readonly handle: string } | null;
    } | null;
  };
}

/** A payload in a word or two: `+text` an entry, `=text` the body, `-entries` and `-body` clears, `reset` … */
export const told = ({ scratchpad: { change, ended } }: PadPayload): string => {
  if (ended !== null) return `ended ${ended}`;
  switch (change?.__typename) {
    case undefined:
      return 'start';
    case 'EntryAppended':
      return `+${change?.entry?.content}`;
    case 'ContentUpdated':
      return `=${change?.content?.text}`;
    case 'ContentCleared':
      return '-body';
    case 'EntriesCleared':
      return '-entries';
    default:
      return change?.__typename.replace('Scratchpad', '').toLowerCase() ?? '';
  }
};
