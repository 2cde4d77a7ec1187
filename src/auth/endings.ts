import { Prisma } from '../storage/generated/prisma/client.ts';

/**
 * Ends those credentials of `ownerId` that `which` selects and that are not ended yet; a trigger writes the log that
 * every process reads. Returns their ids, to be announced once the transaction is committed.
 */
export const endCredentials = async (
  tx: Prisma.TransactionClient,
  ownerId: string,
  which: Prisma.Sql,
): Promise<string[]> => {
  const rows = await tx.$queryRaw<{ id: string }[]>`
    UPDATE credentials SET revoked_at = clock_timestamp()
    WHERE owner_id = ${ownerId} AND revoked_at IS NULL AND ${which} RETURNING id`;
  return rows.map(({ id }) => id);
};

export const allCredentials = Prisma.sql`true`;
export const credentialsById = (ids: readonly string[]): Prisma.Sql =>
  Prisma.sql`id IN (${Prisma.join(ids)})`;
export const credentialsOf = (participantId: string): Prisma.Sql =>
  Prisma.sql`participant_id = ${participantId}`;
