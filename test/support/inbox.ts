import type { Server, Tenant } from './app.ts';
import { type Heard, subscribe } from './subscribe.ts';

/** What a test looks at of a delivery. */
export interface Given {
  readonly channel: 'CONTROL' | 'MESSAGE' | 'OBSERVATION';
  readonly deliveryId: string | null;
  readonly thread: { readonly id: string } | null;
  readonly deletedThreadId: string | null;
  readonly cursor: string | null;
  readonly pendingCount: number;
  readonly attempt: number;
  readonly leaseExpiresAt: string | null;
  readonly notice: string | null;
  readonly ended: string | null;
  readonly events: readonly {
    readonly __typename: string;
    readonly id: string;
    readonly seq: number;
    readonly content?: string;
  }[];
  readonly changes: readonly { readonly __typename: string }[];
}

const GIVEN = `channel deliveryId thread { id } deletedThreadId cursor pendingCount attempt leaseExpiresAt notice ended
  events { __typename id seq ... on Message { content } } changes { __typename }`;

const INBOX = `subscription($as: ID, $batch: Int, $standby: Boolean, $onlyMentions: Boolean) {
  inbox(as: $as, batch: $batch, standby: $standby, onlyMentions: $onlyMentions) { ${GIVEN} } }`;

export interface Stream extends AsyncDisposable {
  readonly given: readonly Given[];
  until(isEnough: (given: readonly Given[]) => boolean): Promise<readonly Given[]>;
}

export const openInbox = (
  server: Server,
  token: string,
  options: { batch?: number; standby?: boolean; onlyMentions?: boolean; as?: string } = {},
): Stream => {
  const heard: Heard<{ inbox: Given }> = subscribe(server, token, INBOX, options);
  const all = (): Given[] => heard.payloads.map(({ inbox }) => inbox);
  return {
    get given() {
      return all();
    },
    until: async (isEnough) => {
      await heard.until(() => isEnough(all()));
      return all();
    },
    [Symbol.asyncDispose]: () => heard[Symbol.asyncDispose](),
  };
};

interface Outcome<T> {
  readonly code: string;
  readonly data: T;
}

/** The API as one participant. An answer is its data, or else the code of its error. */
export const inboxApi = (server: Pick<Server, 'graphql'>, token: string) => {
  const ask = async <T>(query: string, variables: object): Promise<Outcome<T>> => {
    const { data, errors } = await server.graphql<T>(token, query, variables as Record<string, unknown>);
    return { code: errors?.[0]?.extensions?.code ?? 'OK', data: data as T };
  };
  return {
    take: async (input: object = {}): Promise<readonly Given[]> => {
      const { code, data } = await ask<{ takePending: { deliveries: Given[] } }>(
        `mutation($input: TakePendingInput!) { takePending(input: $input) { deliveries { ${GIVEN} } } }`,
        { input },
      );
      if (code !== 'OK') throw new Error(code);
      return data.takePending.deliveries;
    },
    tryTake: async (input: object): Promise<string> =>
      (
        await ask(
          'mutation($input: TakePendingInput!) { takePending(input: $input) { deliveries { channel } } }',
          { input },
        )
      ).code,
    acknowledge: async (input: object): Promise<string> =>
      (
        await ask('mutation($input: AcknowledgeInput!) { acknowledge(input: $input) { pendingCount } }', {
          input,
        })
      ).code,
    extend: async (deliveryId: string, seconds: number): Promise<string> =>
      (
        await ask('mutation($input: ExtendLeaseInput!) { extendLease(input: $input) { leaseExpiresAt } }', {
          input: { deliveryId, seconds },
        })
      ).code,
    post: async (input: object): Promise<{ id: string; cursor: string; seq: number; sources: string[] }> => {
      const { code, data } = await ask<{
        postMessage: { cursor: string; message: { id: string; seq: number; sources: { id: string }[] } };
      }>(
        'mutation($input: PostMessageInput!) { postMessage(input: $input) { cursor message { id seq sources { id } } } }',
        { input },
      );
      if (code !== 'OK') throw new Error(code);
      const { message, cursor } = data.postMessage;
      return { id: message.id, seq: message.seq, cursor, sources: message.sources.map(({ id }) => id) };
    },
    retract: async (messageId: string): Promise<string> =>
      (
        await ask('mutation($input: RetractMessageInput!) { retractMessage(input: $input) { cursor } }', {
          input: { messageId },
        })
      ).code,
    peek: async (threadId: string): Promise<{ count: number; contents: string[] }> => {
      const { data } = await ask<{ peekPending: { count: number; messages: { content: string }[] } }>(
        'query($threadId: ID!) { peekPending(threadId: $threadId) { count messages { content } } }',
        { threadId },
      );
      return {
        count: data.peekPending.count,
        contents: data.peekPending.messages.map(({ content }) => content),
      };
    },
  };
};

/** Opens a thread of these participants of a tenant. */
export const openThread = async (
  server: Pick<Server, 'graphql'>,
  tenant: Tenant,
  ...handles: string[]
): Promise<string> => {
  const { data } = await server.graphql<{ openThread: { thread: { id: string } } }>(
    tenant.apiKey,
    'mutation($input: OpenThreadInput!) { openThread(input: $input) { thread { id } } }',
    { input: { participantIds: handles.map((handle) => tenant.participants[handle]?.id) } },
  );
  if (!data) throw new Error('No thread was opened.');
  return data.openThread.thread.id;
};

export const changeMember = async (
  server: Pick<Server, 'graphql'>,
  tenant: Tenant,
  threadId: string,
  handle: string,
  to: 'removeParticipant' | 'readdParticipant',
): Promise<void> => {
  const { errors } = await server.graphql(
    tenant.apiKey,
    `mutation($input: ParticipantStateInput!) { ${to}(input: $input) { cursor } }`,
    { input: { threadId, participantId: tenant.participants[handle]?.id } },
  );
  if (errors) throw new Error(JSON.stringify(errors));
};

/** Contents of the messages that were delivered, in order. */
export const contentsOf = (given: readonly Given[]): string[] =>
  given
    .filter(({ channel }) => channel === 'MESSAGE')
    .flatMap(({ events }) => events.map(({ content }) => content ?? ''));
