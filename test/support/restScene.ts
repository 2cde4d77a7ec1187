import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { createTenant, type Server, startApp, type Tenant } from './app.ts';
import { createRestClient, objectAs, parsedAs, type RestClient, type RestReply } from './rest.ts';

/**
 * A server for the file, and for each test a tenant of its own: ada and scout in a thread with a scratchpad, nora in
 * none; and a stranger's tenant beside it.
 */
export const restScene = () => {
  let server: Server;
  let tenant: Tenant;
  let stranger: Tenant;
  let owner: RestClient;
  let threadId = '';
  let padId = '';

  const idOf = (handle: string): string => tenant.participants[handle]?.id ?? '';
  const openThread = async (...handles: string[]): Promise<string> =>
    String(parsedAs('Thread', await owner.post('/v1/threads', { participant_ids: handles.map(idOf) })).id);
  const newPadOf = async (thread: unknown): Promise<string> =>
    String(parsedAs('ScratchpadRead', await owner.post('/v1/scratchpads', { thread_id: thread })).id);

  beforeAll(async () => {
    server = await startApp();
    stranger = await createTenant(server, { zoe: 'HUMAN' });
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT', nora: 'HUMAN' });
    owner = createRestClient(server, tenant.apiKey);
    threadId = await openThread('ada', 'scout');
    padId = await newPadOf(threadId);
  });

  const change = (handle: string, how: 'remove' | 'readd'): Promise<RestReply> =>
    owner.post(`/v1/threads/${threadId}/participants/${idOf(handle)}/${how}`);
  const content = (): string => `/v1/scratchpads/${padId}/content`;
  const entries = (): string => `/v1/scratchpads/${padId}/entries`;

  return {
    get server() {
      return server;
    },
    get tenant() {
      return tenant;
    },
    get owner() {
      return owner;
    },
    get threadId() {
      return threadId;
    },
    get padId() {
      return padId;
    },
    get stranger() {
      return createRestClient(server, stranger.apiKey);
    },
    idOf,
    openThread,
    as: (handle: string) => createRestClient(server, tenant.participants[handle]?.token ?? ''),
    acting: (handle: string) => createRestClient(server, tenant.apiKey, idOf(handle)),
    newPad: async () => newPadOf(parsedAs('Thread', await owner.post('/v1/threads', {})).id),
    remove: (handle: string) => change(handle, 'remove'),
    readd: (handle: string) => change(handle, 'readd'),
    content,
    entries,
    readContent: async (client = owner) => parsedAs('ContentRead', await client.get(content())),
    readEntries: async (client = owner, path = entries()): Promise<unknown[]> => {
      const { object, data } = parsedAs('List', await client.get(path));
      expect(object).toBe('list');
      return (data as unknown[]).map((entry) => objectAs('EntryRead', entry).content);
    },
  };
};

export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
export const problem = ({ status, text }: RestReply): string => `${status} ${text}`;
export const THREAD_GONE = '404 {"detail":"Thread not found"}';
export const PAD_GONE = '404 {"detail":"Scratchpad not found"}';

/** All that is said to be wrong with a request. */
export const faults = (reply: RestReply): unknown => {
  expect([reply.status, reply.code]).toEqual([422, 'BAD_USER_INPUT']);
  return (reply.body as { detail: unknown }).detail;
};
export const extra = (name: string, input: unknown) => ({
  type: 'extra_forbidden',
  loc: ['body', name],
  msg: 'Extra inputs are not permitted',
  input,
});
export const tooShort = (name: string) => ({
  type: 'string_too_short',
  loc: ['body', name],
  msg: 'String should have at least 1 character',
  input: '',
});
