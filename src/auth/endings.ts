import { Prisma } from '../storage/generated/prisma/client.ts';

/**
 * Ends those credentials of `ownerId` that `which` selects and that are not ended yet: marks them, and writes the
 * log that every process reads. Returns their ids, to be announced once the transaction is committed.
 */
export const endCredentials = async (
  tx: Prisma.TransactionClient,
  ownerId: string,
  which: Prisma.Sql,
): Promise<string[]> => {
  const rows = await tx.$queryRaw<{ credential_id: string }[]>`
    WITH ended AS (
      UPDATE credentials SET revoked_at = clock_timestamp()
      WHERE owner_id = ${ownerId} AND revoked_at IS NULL AND ${which} RETURNING id
    )
    INSERT INTO revocation_log (credential_id) SELECT id FROM ended RETURNING credential_id`;
  return rows.map((row) => row.credential_id);
};

export const allCredentials = Prisma.sql`true`;
export const credentialsById = (ids: readonly string[]): Prisma.Sql =>
  Prisma.sql`id IN (${Prisma.join(ids)})`;
export const credentialsOf = (participantId: string): Prisma.Sql =>
  Prisma.sql`participant_id = ${participantId}`;
