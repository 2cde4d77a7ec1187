import { newSecret } from '../../src/auth/secrets.ts';
import { newId } from '../../src/shared/ids.ts';
import { createParticipant, createTenant, startApp, type Tenant } from './app.ts';

const CAPABILITIES = [{ type: 'thread' }, { type: 'memory' }, { type: 'scratchpad' }];

/** A server, and a tenant whose agents have every tool. */
export const toolScene = async (environment: Readonly<Record<string, string>> = {}) => {
  const server = await startApp(environment);
  const tenant: Tenant = await createTenant(server, {
    ada: 'HUMAN',
    bo: 'HUMAN',
    scout: 'AGENT',
    rex: 'AGENT',
  });
  const people = { ...tenant.participants };
  const idOf = (handle: string): string => people[handle]?.id ?? '';
  const tokenOf = (handle: string): string => people[handle]?.token ?? '';

  const ask = async <Data>(query: string, variables: object, token = tenant.apiKey): Promise<Data> => {
    const { data, errors } = await server.graphql<Data>(token, query, { ...variables });
    if (!data || errors) throw new Error(JSON.stringify(errors));
    return data;
  };
  const open = async (...handles: string[]): Promise<string> => {
    const { openThread } = await ask<{ openThread: { thread: { id: string } } }>(
      'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
      { ids: handles.map(idOf) },
    );
    return openThread.thread.id;
  };
  const padOf = async (threadId: string): Promise<string> => {
    const { createScratchpad } = await ask<{ createScratchpad: { scratchpad: { id: string } } }>(
      'mutation ($t: ID!) { createScratchpad(input: { threadId: $t }) { scratchpad { id } } }',
      { t: threadId },
    );
    return createScratchpad.scratchpad.id;
  };
  const post = (threadId: string, handle: string, content: string) =>
    ask('mutation ($input: PostMessageInput!) { postMessage(input: $input) { cursor } }', {
      input: { threadId, as: idOf(handle), content },
    });
  interface Shown {
    readonly __typename: string;
    readonly content?: string;
    readonly kind?: string;
    readonly data?: unknown;
  }
  const eventsOf = async (threadId: string): Promise<readonly Shown[]> => {
    const { thread } = await ask<{ thread: { timeline: { events: { nodes: Shown[] } } } }>(
      `query ($t: ID!) { thread(id: $t) { timeline { events(first: 200) { nodes {
        __typename ... on Message { content } ... on SystemEvent { kind data } } } } } }`,
      { t: threadId },
    );
    return thread.timeline.events.nodes;
  };

  const equip = (handle: string) =>
    ask(
      'mutation ($input: UpdateParticipantInput!) { updateParticipant(input: $input) { participant { id } } }',
      { input: { participantId: idOf(handle), tools: CAPABILITIES } },
    );
  for (const agent of ['scout', 'rex']) await equip(agent);

  return {
    server,
    tenant,
    ask,
    idOf,
    tokenOf,
    open,
    padOf,
    post,
    eventsOf,
    /** One more agent with every tool, which nothing waits for. */
    newAgent: async (handle: string): Promise<string> => {
      people[handle] = await createParticipant(server, tenant.apiKey, handle, 'AGENT');
      await equip(handle);
      return handle;
    },
    messagesOf: async (threadId: string): Promise<string[]> =>
      (await eventsOf(threadId)).flatMap(({ content }) => (content === undefined ? [] : [content])),
    /** Another token of the same participant, and how it is ended. */
    freshToken: async (handle: string): Promise<{ token: string; revoke(): Promise<void> }> => {
      const { createParticipantToken: made } = await ask<{
        createParticipantToken: { token: string; credential: { id: string } };
      }>(
        'mutation ($p: ID!) { createParticipantToken(input: { participantId: $p }) { token credential { id } } }',
        { p: idOf(handle) },
      );
      return {
        token: made.token,
        revoke: async () => {
          await ask(
            'mutation ($c: ID!) { revokeCredential(input: { credentialId: $c }) { credential { id } } }',
            {
              c: made.credential.id,
            },
          );
        },
      };
    },
    /** A run of `handle` in a conversation, on a scratchpad that it sees through `padViewer`’s windows. */
    newRun: async (
      handle: string,
      given: {
        readonly conversation: string;
        readonly padId: string | null;
        /** Null: the owner’s full record. */
        readonly padViewer?: string | null;
        readonly delegator?: string;
        readonly access?: 'READ' | 'APPEND' | 'WRITE';
        readonly maxToolCalls?: number;
      },
    ): Promise<{ id: string; token: string }> => {
      const { prisma } = server.services.database;
      const { secret, hash, prefix } = newSecret('RUN_TOKEN');
      const id = newId('Run');
      const ownerId = tenant.userId;
      const participantId = idOf(handle);
      await prisma.run.create({
        data: {
          id,
          rootRunId: id,
          ownerId,
          participantId,
          delegatorId: given.delegator === undefined ? null : idOf(given.delegator),
          conversationThreadId: given.conversation,
          scratchpadId: given.padId,
          access: given.access ?? 'WRITE',
          padViewerId: given.padViewer === null ? null : idOf(given.padViewer ?? handle),
          maxToolCalls: given.maxToolCalls ?? 200,
        },
      });
      await prisma.credential.create({
        data: { id: newId('Credential'), ownerId, kind: 'RUN_TOKEN', participantId, runId: id, prefix, hash },
      });
      return { id, token: secret };
    },
  };
};

export type Scene = Awaited<ReturnType<typeof toolScene>>;
