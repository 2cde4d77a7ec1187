import { forbidden, notFound } from '../shared/errors.ts';
import { newId } from '../shared/ids.ts';
import type { Credential, Prisma } from '../storage/generated/prisma/client.ts';
import type { Actor } from './actor.ts';
import { appendAudit } from './audit.ts';
import { noCredential } from './presented.ts';
import { newSecret } from './secrets.ts';

export interface Minted {
  /** Shown once. */
  readonly secret: string;
  readonly credential: Credential;
}

type Wanted = {
  readonly userId: string;
  readonly label: string | null;
  /** Null: never expires, or with the token that asks. */
  readonly expiresInSeconds: number | null;
} & ({ readonly kind: 'API_KEY' } | { readonly kind: 'PARTICIPANT_TOKEN'; readonly participantId: string });

/**
 * Makes a credential. It holds the rows whose endings would end it too (user, participant, the credential that
 * asks) until its transaction is over: so whoever ends those, ends this one as well or comes first.
 */
export const mintCredential = async (
  tx: Prisma.TransactionClient,
  actor: Actor,
  wanted: Wanted,
): Promise<Minted> => {
  const { userId, kind, label, expiresInSeconds } = wanted;
  const now = await holdUser(tx, userId);
  if (now === null) throw actor.kind === 'ADMIN' ? notFound('User') : noCredential();
  const participantId = kind === 'PARTICIPANT_TOKEN' ? wanted.participantId : null;
  if (participantId !== null) await holdParticipant(tx, userId, participantId);
  const asked = expiresInSeconds === null ? null : new Date(now.getTime() + expiresInSeconds * 1_000);
  const expiresAt = actor.kind === 'ADMIN' ? asked : noLater(asked, await holdCaller(tx, actor), actor.kind);

  const { secret, ...stored } = newSecret(kind);
  const credential = await tx.credential.create({
    data: { id: newId('Credential'), ownerId: userId, kind, participantId, label, expiresAt, ...stored },
  });
  const details = { kind, ...(participantId !== null && { participantId }) };
  await appendAudit(tx, actor, [
    { ownerId: userId, act: 'credential.created', subjectId: credential.id, details },
  ]);
  return { secret, credential };
};

/** Holds a user, so that it is not deleted meanwhile; null for one that is. The database's clock. */
export const holdUser = async (tx: Prisma.TransactionClient, userId: string): Promise<Date | null> => {
  const [user] = await tx.$queryRaw<{ now: Date }[]>`
    SELECT clock_timestamp() AS now FROM users WHERE id = ${userId} AND deleted_at IS NULL FOR SHARE`;
  return user?.now ?? null;
};

const holdParticipant = async (tx: Prisma.TransactionClient, userId: string, id: string): Promise<void> => {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 AS held FROM participants WHERE owner_id = ${userId} AND id = ${id} FOR SHARE`;
  if (rows.length === 0) throw notFound('Participant');
};

/** When the credential that asks expires. Throws if it ended meanwhile. */
const holdCaller = async (
  tx: Prisma.TransactionClient,
  { userId, credentialId }: Exclude<Actor, { kind: 'ADMIN' }>,
): Promise<Date | null> => {
  const rows = await tx.$queryRaw<{ expires_at: Date | null }[]>`
    SELECT expires_at FROM credentials
    WHERE owner_id = ${userId} AND id = ${credentialId} AND revoked_at IS NULL FOR SHARE`;
  const [caller] = rows;
  if (caller === undefined) throw noCredential();
  return caller.expires_at;
};

/** A participant's token makes none that outlives it; the user's key may. */
const noLater = (asked: Date | null, callers: Date | null, kind: Actor['kind']): Date | null => {
  if (kind === 'API_KEY' || callers === null) return asked;
  if (asked !== null && asked > callers)
    throw forbidden('A token cannot make one that lives longer. Ask the user for a new one.');
  return asked ?? callers;
};
