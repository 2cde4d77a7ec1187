import { randomUUID } from 'node:crypto';
import type { Actor } from '../../src/auth/actor.ts';
import { createAuthentication } from '../../src/auth/authenticate.ts';
import { createCredentials } from '../../src/auth/credentials.ts';
import type { Wakeups } from '../../src/auth/revocations.ts';
import type { Presented } from '../../src/auth/session.ts';
import { createParticipants } from '../../src/participants/participants.ts';
import { createUsers } from '../../src/participants/users.ts';
import type { Database } from '../../src/storage/database.ts';

export const ADMIN: Actor = { kind: 'ADMIN' };
export const ADMIN_TOKEN = 'correct horse battery staple';

export const bearer = (secret: string, actAs?: string): Presented => ({
  authorization: `Bearer ${secret}`,
  actAs,
});

/** Authentication and the services of identity, as one process has them. */
export const createIdentity = (
  database: Database,
  options: { bus?: Wakeups; monotonic?: () => number } = {},
) => {
  const authentication = createAuthentication({ database, adminToken: ADMIN_TOKEN, ...options });
  const announceEnded = authentication.announceEnded;
  return {
    ...authentication,
    credentials: createCredentials({ database, announceEnded }),
    users: createUsers({ database, announceEnded }),
    participants: createParticipants({ database }),
  };
};

export type Identity = ReturnType<typeof createIdentity>;

/** A user with an agent and a human, a key of the user and a token of the agent. */
export const seedTenant = async (identity: Pick<Identity, 'users' | 'participants' | 'credentials'>) => {
  const { user, apiKey, credential } = await identity.users.create(ADMIN, { name: `Tenant ${randomUUID()}` });
  const owner: Actor = { kind: 'API_KEY', userId: user.id, credentialId: credential.id, actAs: null };
  const agent = await identity.participants.create(owner, { kind: 'AGENT', handle: 'agent' });
  const human = await identity.participants.create(owner, { kind: 'HUMAN', handle: 'human' });
  const token = await identity.credentials.createParticipantToken(owner, { participantId: agent.id });
  return { user, apiKey, credential, owner, agent, human, token };
};
