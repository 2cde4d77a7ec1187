import { requireAdmin, requireOwner } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import { appendAudit } from '../auth/audit.ts';
import { allCredentials, credentialsById, endCredentials } from '../auth/endings.ts';
import { mintCredential } from '../auth/mint.ts';
import { visibleUsers } from '../auth/visibility.ts';
import { inputHash } from '../shared/canonical.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { badInput, DomainError } from '../shared/errors.ts';
import { newId } from '../shared/ids.ts';
import { LIMITS, requireCharacters, requireIdempotencyKey } from '../shared/input.ts';
import { idRange, keysetPage, type Page, type PageArgs } from '../shared/paging.ts';
import type { Database } from '../storage/database.ts';
import type { Credential, Prisma, User } from '../storage/generated/prisma/client.ts';

export interface UsersOptions {
  readonly database: Database;
  /** Told of credentials that this process has ended, after the commit. */
  readonly announceEnded: (credentialIds: readonly string[]) => void;
  /** Told after the commit that a user is to be emptied. */
  readonly announceDeleted?: () => void;
}

export interface CreatedUser {
  readonly user: User;
  /** Shown once. */
  readonly apiKey: string;
  readonly credential: Credential;
}

/** Tenants: made and listed by the administrator, deleted by themselves. */
export const createUsers = ({ database, announceEnded, announceDeleted }: UsersOptions) => {
  const { prisma } = database;

  /** The user of this key and input, and whether it was here before. Waits for whoever is making it. */
  const findOrInsert = async (
    tx: Prisma.TransactionClient,
    input: { name: string; idempotencyKey: string | null },
  ): Promise<{ user: User; isReplay: boolean }> => {
    const hash = inputHash({ name: input.name });
    const data = { id: newId('User'), ...input, inputHash: hash };
    const [user] = await tx.user.createManyAndReturn({ data, skipDuplicates: true });
    if (user !== undefined) return { user, isReplay: false };
    await tx.$queryRaw`SELECT 1 AS held FROM users WHERE idempotency_key = ${input.idempotencyKey} FOR UPDATE`;
    const present = await tx.user.findUnique({ where: { idempotencyKey: input.idempotencyKey ?? '' } });
    // It was deleted between the two statements: the key is free again.
    if (present === null) return findOrInsert(tx, input);
    if (present.inputHash !== hash)
      throw new DomainError('IDEMPOTENCY_KEY_REUSED', 'This idempotencyKey made a user of another name.', {
        field: 'idempotencyKey',
      });
    return { user: present, isReplay: true };
  };

  return {
    /**
     * A user and its first API key. A replay answers the same user with a fresh key, since the first was shown
     * once and may be lost, and ends the one shown before.
     */
    create: async (
      actor: Actor,
      input: { name: string; idempotencyKey?: string | null | undefined },
    ): Promise<CreatedUser> => {
      requireAdmin(actor);
      const name = requireCharacters(input.name, 'name', LIMITS.name);
      const idempotencyKey = requireIdempotencyKey(input.idempotencyKey);
      const { created, ended } = await prisma.$transaction(async (tx) => {
        const { user, isReplay } = await findOrInsert(tx, { name, idempotencyKey });
        if (!isReplay)
          await appendAudit(tx, actor, [{ ownerId: user.id, act: 'user.created', subjectId: user.id }]);
        const former = user.firstKeyId === null ? [] : [user.firstKeyId];
        const endedNow =
          former.length === 0 ? [] : await endCredentials(tx, user.id, credentialsById(former));
        const wanted = { kind: 'API_KEY', userId: user.id, label: null, expiresInSeconds: null } as const;
        const { secret, credential } = await mintCredential(tx, actor, wanted);
        await tx.user.update({ where: { id: user.id }, data: { firstKeyId: credential.id } });
        await appendAudit(
          tx,
          actor,
          endedNow.map((id) => ({ ownerId: user.id, act: 'credential.revoked', subjectId: id })),
        );
        return { created: { user, apiKey: secret, credential }, ended: endedNow };
      });
      announceEnded(ended);
      return created;
    },

    /** In the order in which they were made. */
    page: async (actor: Actor, args: PageArgs): Promise<Page<User>> => {
      requireAdmin(actor);
      return keysetPage(args, {
        name: 'user',
        parts: [KEY_PART.id],
        key: ({ id }) => [id],
        read: (range) => {
          const { where, ...rest } = idRange(range);
          return prisma.user.findMany({ where: { AND: [visibleUsers(actor), where] }, ...rest });
        },
      });
    },

    /** Null for what does not exist or is another tenant. */
    find: async (actor: Actor, id: string): Promise<User | null> =>
      prisma.user.findFirst({ where: { AND: [visibleUsers(actor), { id }] } }),

    /** Those with these ids that are no other tenant, in no order. */
    findAll: async (actor: Actor, ids: readonly string[]): Promise<User[]> =>
      prisma.user.findMany({ where: { AND: [visibleUsers(actor), { id: { in: [...ids] } }] } }),

    /**
     * The caller's own tenant is gone with the commit: its credentials are dead and nothing of it can be seen.
     * What it holds is emptied afterwards, in batches.
     */
    remove: async (
      actor: Actor,
      { confirmName }: { confirmName: string },
    ): Promise<{ deletedId: string }> => {
      const { userId } = requireOwner(actor);
      const ended = await prisma.$transaction(async (tx) => {
        // This row first: who makes a credential holds it, so that none is made after the next statement.
        const deleted = await tx.$executeRaw`
          UPDATE users SET deleted_at = clock_timestamp(), idempotency_key = NULL
          WHERE id = ${userId} AND deleted_at IS NULL AND name = ${confirmName}`;
        if (deleted === 0)
          throw badInput('confirmName is not the name of this user.', { field: 'confirmName' });
        await appendAudit(tx, actor, [{ ownerId: userId, act: 'user.deleted', subjectId: userId }]);
        return endCredentials(tx, userId, allCredentials);
      });
      announceEnded(ended);
      announceDeleted?.();
      return { deletedId: userId };
    },
  };
};
