import { newId } from '../shared/ids.ts';
import { LIMITS } from '../shared/input.ts';
import type { Prisma } from '../storage/generated/prisma/client.ts';

/** Of one statement: each stays far from any time-out, however large the memory and its entries are. */
const BATCH = { entries: 1_000, bytes: LIMITS.memoryPayload } as const;

/**
 * Gives a new agent what another has stored up to now, with its stamps and order, under ids of its own. In one transaction
 * with the agent itself, so that there is either none or one that remembers all of it, also after a crash.
 */
export const copyMemory = async (
  tx: Prisma.TransactionClient,
  ownerId: string,
  fromId: string,
  toId: string,
): Promise<void> => {
  const head = await tx.memoryHead.findUnique({
    where: { ownerId_participantId: { ownerId, participantId: fromId } },
  });
  const until = head?.lastNumber ?? 0;
  for (let after = 0; after < until; ) {
    const ids = Array.from({ length: Math.min(BATCH.entries, until - after) }, () => newId('MemoryEntry'));
    const [row] = await tx.$queryRaw<{ last: number | null }[]>`
      SELECT copy_memory(${ownerId}, ${fromId}, ${toId}, ${after}::int, ${until}::int, ${BATCH.bytes}::int, ${ids}::text[]) AS last`;
    // Entries go with their user alone, which the caller looks at last.
    if (typeof row?.last !== 'number') return;
    after = row.last;
  }
};
