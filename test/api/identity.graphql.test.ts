import { randomUUID } from 'node:crypto';
import type { ExecutionResult } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Presented } from '../../src/auth/session.ts';
import { DomainError } from '../../src/shared/errors.ts';
import { newId } from '../../src/shared/ids.ts';
import { createApi, told } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { ADMIN_TOKEN, bearer, seedTenant } from '../support/identity.ts';

/** Every mutation of identity, with the ids it can be given. */
const MUTATIONS = {
  createUser: 'mutation { createUser(input: { name: "X" }) { apiKey } }',
  issueApiKey: 'mutation ($user: ID!) { issueApiKey(input: { userId: $user }) { apiKey } }',
  deleteUser: 'mutation { deleteUser(input: { confirmName: "no" }) { deletedId } }',
  createApiKey: 'mutation { createApiKey(input: {}) { apiKey } }',
  createParticipantToken:
    'mutation ($part: ID!) { createParticipantToken(input: { participantId: $part }) { token } }',
  createConnectionTicket: 'mutation { createConnectionTicket(input: { query: "{ x }" }) { ticket } }',
  revokeCredential:
    'mutation ($cred: ID!) { revokeCredential(input: { credentialId: $cred }) { credential { id } } }',
  revokeParticipantCredentials:
    'mutation ($part: ID!) { revokeParticipantCredentials(input: { participantId: $part }) { credentials { id } } }',
  createParticipant:
    'mutation ($handle: String!) { createParticipant(input: { kind: AGENT, handle: $handle }) { participant { id } } }',
  updateParticipant:
    'mutation ($part: ID!) { updateParticipant(input: { participantId: $part, displayName: "N" }) { participant { id } } }',
  cloneParticipant:
    'mutation ($part: ID!, $handle: String!) { cloneParticipant(input: { participantId: $part, handle: $handle }) { participant { id } } }',
} as const;

type Name = keyof typeof MUTATIONS;

let db: TestDatabase;
let api: ReturnType<typeof createApi>;
let tenant: Awaited<ReturnType<typeof seedTenant>>;
let stranger: Awaited<ReturnType<typeof seedTenant>>;

beforeAll(async () => {
  db = await createTestDatabase();
  api = createApi(db.database);
  tenant = await seedTenant(api.services);
  stranger = await seedTenant(api.services);
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const codeOf = ({ errors }: ExecutionResult): string => {
  const original = errors?.[0]?.originalError;
  if (errors === undefined) return 'OK';
  return original instanceof DomainError ? original.code : (errors[0]?.message ?? '');
};

const ids = (of: typeof tenant) => ({
  user: of.user.id,
  part: of.agent.id,
  cred: of.token.credential.id,
  handle: `h${randomUUID()}`,
});

describe('identity over GraphQL', () => {
  it('gives each kind of credential what the table of authority says, and nothing else', async () => {
    const allowed: Record<Name, readonly string[]> = {
      createUser: ['admin'],
      issueApiKey: ['admin'],
      deleteUser: ['key'],
      createApiKey: ['key'],
      createParticipantToken: ['key', 'own'],
      createConnectionTicket: ['key', 'own', 'other'],
      revokeCredential: ['key', 'own'],
      revokeParticipantCredentials: ['key', 'own'],
      createParticipant: ['key'],
      updateParticipant: ['key', 'own'],
      cloneParticipant: ['key'],
    };
    for (const [name, source] of Object.entries(MUTATIONS) as [Name, string][]) {
      // Each time anew, because some of it ends what it is done with.
      const fresh = await seedTenant(api.services);
      const { secret: other } = await api.services.credentials.createParticipantToken(fresh.owner, {
        participantId: fresh.human.id,
      });
      const callers: Record<string, Presented> = {
        other: bearer(other),
        own: bearer(fresh.token.secret),
        key: bearer(fresh.apiKey),
        admin: bearer(ADMIN_TOKEN),
      };
      for (const [caller, presented] of Object.entries(callers)) {
        const victim = await api.services.credentials.createParticipantToken(fresh.owner, {
          participantId: fresh.agent.id,
        });
        const variables = { ...ids(fresh), cred: victim.credential.id };
        // Asked with a name that is not the user's, so that it may go on.
        const expected = name === 'deleteUser' ? 'BAD_USER_INPUT' : 'OK';
        const code = codeOf(await api.run(presented, source, variables));
        if (allowed[name].includes(caller)) expect([name, caller, code]).toEqual([name, caller, expected]);
        else
          expect([name, caller, code]).toEqual([
            name,
            caller,
            expect.stringMatching(/^(FORBIDDEN|NOT_FOUND)$/),
          ]);
        if (caller === 'own') {
          const renewed = await api.services.credentials.createParticipantToken(fresh.owner, {
            participantId: fresh.agent.id,
          });
          callers.own = bearer(renewed.secret);
        }
      }
    }
  });

  it('answers another tenant\u2019s ids exactly as ids that never existed', async () => {
    const unknown = {
      user: newId('User'),
      part: newId('Participant'),
      cred: newId('Credential'),
      handle: 'nobody',
    };
    const queries = {
      participant: 'query ($part: ID!) { participant(id: $part) { id } }',
      credentials:
        'query ($part: ID!) { credentials(participantId: $part) { edges { node { id } } pageInfo { hasNextPage } } }',
    };
    for (const presented of [bearer(tenant.apiKey), bearer(tenant.token.secret), bearer(ADMIN_TOKEN)])
      for (const [name, source] of Object.entries({ ...MUTATIONS, ...queries })) {
        if (['createUser', 'issueApiKey', 'createParticipant'].includes(name)) continue;
        if (!source.includes('$')) continue;
        const answers = [];
        for (const variables of [{ ...ids(stranger), handle: 'nobody' }, unknown]) {
          const { data, errors } = await api.run(presented, source, variables);
          answers.push(JSON.stringify([data, errors?.map(told)]));
        }
        expect([name, answers[0]]).toEqual([name, answers[1]]);
        expect([name, answers[0]]).toEqual([
          name,
          expect.stringMatching(/code|"participant":null|"edges":\[\]/),
        ]);
      }
  });

  it('says who is asking', async () => {
    const source = `{ viewer {
      user { id name } participant { id }
      credential { kind label prefix participant { handle } expiresAt revokedAt }
    } }`;
    const { user, agent, human } = tenant;
    const viewer = async (presented: Presented) => (await api.run(presented, source)).data?.viewer;
    expect(await viewer(bearer(tenant.apiKey))).toMatchObject({
      user: { id: user.id, name: user.name },
      participant: null,
      credential: { kind: 'API_KEY', participant: null },
    });
    expect(await viewer(bearer(tenant.apiKey, human.id))).toMatchObject({ participant: { id: human.id } });
    expect(await viewer(bearer(tenant.token.secret))).toMatchObject({
      user: { id: user.id },
      participant: { id: agent.id },
      credential: { kind: 'PARTICIPANT_TOKEN', participant: { handle: 'agent' } },
    });
    expect(await viewer(bearer(ADMIN_TOKEN))).toMatchObject({
      user: null,
      participant: null,
      credential: { kind: 'ADMIN' },
    });
  });

  it('lists the user\u2019s credentials, and a participant only its own tokens', async () => {
    const fresh = await seedTenant(api.services);
    const { owner, human, agent, token, credential } = fresh;
    const other = await api.services.credentials.createParticipantToken(owner, { participantId: human.id });
    const source = `query ($kind: CredentialKind, $part: ID, $revoked: Boolean) {
      credentials(kind: $kind, participantId: $part, includeRevoked: $revoked) { nodes { id } } }`;
    const list = async (secret: string, variables = {}) => {
      const result = await api.run(bearer(secret), source, variables);
      const { nodes } = (result.data?.credentials ?? { nodes: [] }) as { nodes: { id: string }[] };
      return nodes.map(({ id }) => id);
    };
    const [key, own, others] = [credential.id, token.credential.id, other.credential.id];
    expect(await list(fresh.apiKey)).toEqual([key, own, others]);
    expect(await list(fresh.apiKey, { kind: 'PARTICIPANT_TOKEN' })).toEqual([own, others]);
    expect(await list(fresh.apiKey, { part: human.id })).toEqual([others]);
    expect(await list(fresh.apiKey, { kind: 'ADMIN' })).toEqual([]);
    expect(await list(token.secret)).toEqual([own]);
    expect(await list(token.secret, { part: agent.id })).toEqual([own]);
    expect(codeOf(await api.run(bearer(token.secret), source, { part: human.id }))).toBe('FORBIDDEN');
    await api.services.credentials.revoke(owner, { credentialId: others });
    expect(await list(fresh.apiKey)).toEqual([key, own]);
    expect(await list(fresh.apiKey, { revoked: true })).toEqual([key, own, others]);
  });

  it('lets a token rotate itself, but not outlive itself', async () => {
    const fresh = await seedTenant(api.services);
    const short = await api.services.credentials.createParticipantToken(fresh.owner, {
      participantId: fresh.agent.id,
      expiresInSeconds: 600,
    });
    const source = `mutation ($part: ID!, $seconds: Int) {
      createParticipantToken(input: { participantId: $part, expiresInSeconds: $seconds, label: "next" }) {
        token credential { label expiresAt }
      }
    }`;
    const rotate = (seconds: number | null) =>
      api.run(bearer(short.secret), source, { part: fresh.agent.id, seconds });
    expect((await rotate(null)).data).toMatchObject({
      createParticipantToken: {
        credential: { label: 'next', expiresAt: short.credential.expiresAt?.toISOString() },
      },
    });
    expect(codeOf(await rotate(60))).toBe('OK');
    expect(codeOf(await rotate(3_600))).toBe('FORBIDDEN');
    expect(codeOf(await rotate(0))).toBe('BAD_USER_INPUT');
    expect(codeOf(await rotate(315_360_001))).toBe('BAD_USER_INPUT');
  });

  it('refuses to renew what is no WebSocket', async () => {
    const source =
      'mutation ($token: String!) { renewConnection(input: { token: $token }) { credential { id } } }';
    expect(codeOf(await api.run(bearer(tenant.apiKey), source, { token: tenant.apiKey }))).toBe(
      'BAD_USER_INPUT',
    );
  });

  it('pages users for the administrator', async () => {
    const source = `query ($after: Cursor) { users(first: 1, after: $after) {
      nodes { id } pageInfo { hasNextPage hasPreviousPage endCursor } } }`;
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const result: ExecutionResult = await api.run(bearer(ADMIN_TOKEN), source, { after });
      const users = result.data?.users as {
        nodes: { id: string }[];
        pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; endCursor: string };
      };
      expect(users.pageInfo.hasPreviousPage).toBe(after !== null);
      seen.push(...users.nodes.map(({ id }) => id));
      after = users.pageInfo.hasNextPage ? users.pageInfo.endCursor : null;
    } while (after !== null);
    expect(seen).toEqual([...new Set(seen)].sort());
    expect(seen).toEqual(expect.arrayContaining([tenant.user.id, stranger.user.id]));
    expect(codeOf(await api.run(bearer(tenant.apiKey), source))).toBe('FORBIDDEN');
  });
});
