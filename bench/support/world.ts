import { type Member, openThread } from '../../scripts/replay/members.ts';
import { ADMIN_TOKEN, type Product } from './product.ts';

export interface Tenant {
  readonly userId: string;
  readonly apiKey: string;
}

export const createTenant = async ({ api }: Product, name: string): Promise<Tenant> => {
  const { createUser } = await api.ask<{ createUser: { apiKey: string; user: { id: string } } }>(
    ADMIN_TOKEN,
    'mutation CreateUser($name: String!) { createUser(input: { name: $name }) { apiKey user { id } } }',
    { name },
  );
  return { userId: createUser.user.id, apiKey: createUser.apiKey };
};

export interface Room {
  readonly threadId: string;
  readonly scratchpadId: string;
  readonly members: readonly Member[];
}

/** A thread of so many new participants, each with a token, and its scratchpad. */
export const openRoom = async (
  { api }: Product,
  { apiKey }: Tenant,
  name: string,
  size: number,
): Promise<Room> => {
  const participants = Array.from({ length: size }, (_, index) => ({
    handle: `${name}-${index}`,
    kind: 'HUMAN' as const,
  }));
  const { threadId, scratchpadId, members } = await openThread({ api, apiKey, participants, prefix: '' });
  return { threadId, scratchpadId, members: participants.flatMap(({ handle }) => members.get(handle) ?? []) };
};

/** Text of exactly so many bytes. */
export const textOf = (bytes: number): string =>
  'The quick brown fox jumps over the lazy dog. '.repeat(Math.ceil(bytes / 45)).slice(0, bytes);

export interface Seat {
  readonly agentId: string;
  readonly threadId: string;
}

/** An agent in a thread with somebody who reads. */
export const takeSeat = async ({ api }: Product, { apiKey }: Tenant, handle: string): Promise<Seat> => {
  const make = async (kind: string, name: string): Promise<string> => {
    const { createParticipant } = await api.ask<{ createParticipant: { participant: { id: string } } }>(
      apiKey,
      'mutation ($input: CreateParticipantInput!) { createParticipant(input: $input) { participant { id } } }',
      { input: { kind, handle: name } },
    );
    return createParticipant.participant.id;
  };
  const agentId = await make('AGENT', handle);
  const { openThread } = await api.ask<{ openThread: { thread: { id: string } } }>(
    apiKey,
    'mutation ($input: OpenThreadInput!) { openThread(input: $input) { thread { id } } }',
    { input: { participantIds: [agentId, await make('HUMAN', `${handle}-reader`)] } },
  );
  return { agentId, threadId: openThread.thread.id };
};
