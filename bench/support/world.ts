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
