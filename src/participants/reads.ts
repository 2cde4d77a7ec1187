import { type Database, statement } from '../storage/database.ts';
import type { Participant } from '../storage/generated/prisma/client.ts';

type Row = Omit<Participant, 'createdAt'> & { readonly createdAt: string };

const BY_ID = statement<Row>(
  'participants_by_id',
  `SELECT p.id, p.owner_id AS "ownerId", p.kind::text AS kind, p.handle, p.display_name AS "displayName",
     p.concurrent_threads AS "concurrentThreads", p.listed, p.tools, p.meta_data AS "metaData", p.created_at AS "createdAt"
   FROM unnest($1::text[], $2::text[]) AS u(owner_id, id)
   JOIN participants p ON p.owner_id = u.owner_id AND p.id = u.id`,
);

/** Participants of one owner by their ids, in that order; null for those that are not there. Whoever may see them is the caller's. */
export type ReadParticipants = (ownerId: string, ids: readonly string[]) => Promise<(Participant | null)[]>;

interface Asked {
  readonly ownerId: string;
  readonly ids: readonly string[];
  resolve(found: (Participant | null)[]): void;
  reject(error: unknown): void;
}

/** One statement for all who ask in the same moment, as executions of several events do; nothing of it is kept. */
export const createReadParticipants = (database: Database): ReadParticipants => {
  let asked: Asked[] = [];

  const read = async (batch: readonly Asked[]): Promise<void> => {
    try {
      const pairs = batch.flatMap(({ ownerId, ids }) =>
        ids.map((id) => [`${ownerId} ${id}`, ownerId, id] as const),
      );
      const wanted = [...new Map(pairs.map((pair) => [pair[0], pair])).values()];
      const owners = wanted.map(([, ownerId]) => ownerId);
      const rows = await database.query(BY_ID, [owners, wanted.map(([, , id]) => id)]);
      const byId = new Map(rows.map((row) => [row.id, { ...row, createdAt: new Date(row.createdAt) }]));
      for (const { ownerId, ids, resolve } of batch)
        resolve(
          ids.map((id) => {
            const found = byId.get(id);
            return found?.ownerId === ownerId ? found : null;
          }),
        );
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  return (ownerId, ids) =>
    new Promise((resolve, reject) => {
      if (asked.length === 0)
        process.nextTick(() => {
          const batch = asked;
          asked = [];
          void read(batch);
        });
      asked.push({ ownerId, ids, resolve, reject });
    });
};
