import type { Json } from '../shared/canonical.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { badInput, forbidden, notFound } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import { LIMITS, requireBytes, requireCharacters, requireExpiry, requireObject } from '../shared/input.ts';
import { idRange, keysetPage, type Page, type PageArgs } from '../shared/paging.ts';
import { type Database, statement } from '../storage/database.ts';
import type { Credential, CredentialKind, Prisma } from '../storage/generated/prisma/client.ts';
import { refuseRunToken, requireAdmin, requireOwner, requireTenant } from './acting.ts';
import type { Actor, TenantActor } from './actor.ts';
import { appendAudit } from './audit.ts';
import { credentialsById, credentialsOf, endCredentials } from './endings.ts';
import { type Minted, mintCredential } from './mint.ts';
import { noCredential } from './presented.ts';
import { newSecret } from './secrets.ts';
import { operationHash, TICKET_LIFETIME } from './tickets.ts';
import { visibleCredentials } from './visibility.ts';

export interface CredentialsOptions {
  readonly database: Database;
  /** Told of credentials that this process has ended, after the commit. */
  readonly announceEnded: (credentialIds: readonly string[]) => void;
}

interface Lifetime {
  readonly label?: string | null | undefined;
  readonly expiresInSeconds?: number | null | undefined;
}

export interface CredentialFilter {
  readonly participantId?: string | null | undefined;
  readonly kind?: CredentialKind | 'ADMIN' | null | undefined;
  readonly includeRevoked?: boolean | null | undefined;
}

export interface Ticket {
  /** Shown once. */
  readonly ticket: string;
  readonly expiresAt: string;
}

/** A credential as it may be shown: the administrator's is no row. */
export type CredentialView = Omit<
  Credential,
  'kind' | 'hash' | 'ownerId' | 'isDelegators' | 'madeThroughId'
> & {
  readonly kind: CredentialKind | 'ADMIN';
};

const ADMIN_CREDENTIAL: CredentialView = {
  id: 'cred_admin',
  kind: 'ADMIN',
  participantId: null,
  runId: null,
  label: 'ADMIN_TOKEN',
  prefix: '',
  createdAt: new Date(),
  lastUsedAt: null,
  expiresAt: null,
  revokedAt: null,
};

/** $8: whoever makes a ticket also sweeps up a few that are long dead. */
const ADD_TICKET = statement<{ expires_at: string }>(
  'ticket_add',
  `WITH swept AS (
     DELETE FROM tickets WHERE hash IN (
       SELECT hash FROM tickets WHERE expires_at < clock_timestamp() - interval '5 minutes'
         AND (alive_at IS NULL OR alive_at < clock_timestamp() - interval '5 minutes') LIMIT 20)
   )
   INSERT INTO tickets (hash, owner_id, credential_id, act_as, operation_hash, expires_at)
   SELECT $1, c.owner_id, c.id, $4, $5, clock_timestamp() + ${TICKET_LIFETIME}
   FROM credentials c WHERE c.owner_id = $2 AND c.id = $3 AND c.revoked_at IS NULL
   RETURNING expires_at`,
);

/** Credentials: made, listed, ended. A secret is in the answer that makes it and nowhere else. */
export const createCredentials = ({ database, announceEnded }: CredentialsOptions) => {
  const { prisma } = database;

  const requireLifetime = ({ label, expiresInSeconds }: Lifetime) => ({
    label:
      typeof label === 'string' ? requireCharacters(label, 'label', LIMITS.label, { empty: true }) : null,
    expiresInSeconds: requireExpiry(expiresInSeconds),
  });

  /** `end` returns the ids that its transaction ends. */
  const endIn = async (
    actor: TenantActor,
    end: (tx: Prisma.TransactionClient) => Promise<string[]>,
  ): Promise<string[]> => {
    const ended = await prisma.$transaction(async (tx) => {
      const ids = await end(tx);
      await appendAudit(
        tx,
        actor,
        ids.map((id) => ({ ownerId: actor.userId, act: 'credential.revoked', subjectId: id })),
      );
      return ids;
    });
    announceEnded(ended);
    return ended;
  };

  return {
    createApiKey: async (actor: Actor, input: Lifetime): Promise<Minted> => {
      const owner = requireOwner(actor);
      const lifetime = requireLifetime(input);
      return prisma.$transaction((tx) =>
        mintCredential(tx, owner, { kind: 'API_KEY', userId: owner.userId, ...lifetime }),
      );
    },

    /** For another tenant, so only for the administrator. */
    issueApiKey: async (
      actor: Actor,
      { userId, ...input }: Lifetime & { userId: string },
    ): Promise<Minted> => {
      requireAdmin(actor);
      const lifetime = requireLifetime(input);
      if (!isId('User', userId)) throw notFound('User');
      return prisma.$transaction((tx) => mintCredential(tx, actor, { kind: 'API_KEY', userId, ...lifetime }));
    },

    /**
     * The owner for any of its participants; a participant for itself, so that it can rotate. Such a token lives
     * no longer than the one that asks.
     */
    createParticipantToken: async (
      actor: Actor,
      { participantId, ...input }: Lifetime & { participantId: string },
    ): Promise<Minted> => {
      const tenant = refuseRunToken(requireTenant(actor));
      if (tenant.kind === 'PARTICIPANT_TOKEN' && tenant.participantId !== participantId)
        throw forbidden('A token may make tokens for its own participant only.');
      const lifetime = requireLifetime(input);
      if (!isId('Participant', participantId)) throw notFound('Participant');
      const token = { kind: 'PARTICIPANT_TOKEN', userId: tenant.userId, participantId, ...lifetime } as const;
      return prisma.$transaction((tx) => mintCredential(tx, tenant, token));
    },

    /** Also when it has ended already: the answer is the same. */
    revoke: async (actor: Actor, { credentialId }: { credentialId: string }): Promise<Credential> => {
      const tenant = refuseRunToken(requireTenant(actor));
      const where = { AND: [visibleCredentials(tenant), { id: credentialId }] };
      if ((await prisma.credential.count({ where })) === 0) throw notFound('Credential');
      await endIn(tenant, (tx) => endCredentials(tx, tenant.userId, credentialsById([credentialId])));
      const credential = await prisma.credential.findUnique({ where: { id: credentialId } });
      if (credential === null) throw notFound('Credential');
      return credential;
    },

    /** All tokens of one participant, also those that are being made meanwhile. */
    revokeParticipantCredentials: async (
      actor: Actor,
      { participantId }: { participantId: string },
    ): Promise<Credential[]> => {
      const tenant = refuseRunToken(requireTenant(actor));
      if (tenant.kind === 'PARTICIPANT_TOKEN' && tenant.participantId !== participantId)
        throw forbidden('A token may end the tokens of its own participant only.');
      const ended = await endIn(tenant, async (tx) => {
        // Whoever makes a token holds this row; so none is made unseen.
        const rows = await tx.$queryRaw<unknown[]>`
          SELECT 1 AS held FROM participants WHERE owner_id = ${tenant.userId} AND id = ${participantId} FOR NO KEY UPDATE`;
        if (rows.length === 0) throw notFound('Participant');
        return endCredentials(tx, tenant.userId, credentialsOf(participantId));
      });
      return prisma.credential.findMany({ where: { id: { in: ended } }, orderBy: { id: 'asc' } });
    },

    /** In the order in which they were made. */
    page: async (actor: Actor, filter: CredentialFilter, args: PageArgs): Promise<Page<Credential>> => {
      const tenant = refuseRunToken(requireTenant(actor));
      const { participantId, kind, includeRevoked } = filter;
      if (tenant.kind === 'PARTICIPANT_TOKEN' && participantId && participantId !== tenant.participantId)
        throw forbidden('A token may list the tokens of its own participant only.');
      const conditions: Prisma.CredentialWhereInput[] = [visibleCredentials(tenant)];
      if (participantId) conditions.push({ participantId });
      if (kind) conditions.push(kind === 'ADMIN' ? { id: { in: [] } } : { kind });
      if (includeRevoked !== true) conditions.push({ revokedAt: null });
      return keysetPage(args, {
        name: 'cred',
        parts: [KEY_PART.id],
        key: ({ id }) => [id],
        read: (range) => {
          const { where, ...rest } = idRange(range);
          return prisma.credential.findMany({ where: { AND: [...conditions, where] }, ...rest });
        },
      });
    },

    /** Those with these ids that are not another's, in no order. */
    findAll: async (actor: Actor, ids: readonly string[]): Promise<Credential[]> =>
      actor.kind === 'ADMIN'
        ? []
        : prisma.credential.findMany({
            where: { AND: [visibleCredentials(actor), { id: { in: [...ids] } }] },
          }),

    /** The one that was presented; null if it is gone by now. */
    own: async (actor: Actor): Promise<CredentialView | null> =>
      actor.kind === 'ADMIN'
        ? ADMIN_CREDENTIAL
        : prisma.credential.findFirst({ where: { ownerId: actor.userId, id: actor.credentialId } }),

    /** For one stream of one operation, for a client that can set no header. Dies with the caller's credential. */
    createTicket: async (
      actor: Actor,
      input: {
        query: string;
        variables?: Json | null | undefined;
        operationName?: string | null | undefined;
      },
    ): Promise<Ticket> => {
      const tenant = refuseRunToken(requireTenant(actor));
      requireBytes(input.query, 'query', LIMITS.ticketOperation);
      if (input.query.trim() === '') throw badInput('query must not be empty.', { field: 'query' });
      const variables = requireObject(input.variables ?? {}, 'variables', LIMITS.ticketOperation);
      const operationName = input.operationName ?? null;
      if (operationName !== null) requireBytes(operationName, 'operationName', LIMITS.ticketOperation);
      const operation = { query: input.query, variables, operationName };
      const { secret, hash } = newSecret('TICKET');
      const actAs = tenant.kind === 'API_KEY' ? tenant.actAs : null;
      const values = [hash, tenant.userId, tenant.credentialId, actAs, operationHash(operation)];
      const [row] = await database.query(ADD_TICKET, values);
      if (row === undefined) throw noCredential();
      return { ticket: secret, expiresAt: row.expires_at };
    },
  };
};
