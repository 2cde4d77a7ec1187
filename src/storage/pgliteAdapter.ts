import type { Transaction as EngineTransaction, PGlite } from '@electric-sql/pglite';
import type { SqlDriverAdapter, SqlDriverAdapterFactory, Transaction } from '@prisma/driver-adapter-utils';
import { PrismaPGlite } from 'pglite-prisma-adapter';

/**
 * The driver adapter for PGlite, with two things done otherwise than in the package: a script is awaited and its
 * failure reported, and a COMMIT that fails (a deferred constraint) fails for the caller instead of looking done.
 */
export const pgliteAdapter = (engine: PGlite): SqlDriverAdapterFactory => {
  const factory = new PrismaPGlite(engine);
  return {
    provider: factory.provider,
    adapterName: factory.adapterName,
    connect: async () => {
      const adapter = await factory.connect();
      adapter.executeScript = async (script) => void (await engine.exec(script));
      adapter.startTransaction = (isolationLevel) => startTransaction(engine, isolationLevel);
      return adapter;
    },
  };
};

const startTransaction: (
  engine: PGlite,
  ...level: Parameters<SqlDriverAdapter['startTransaction']>
) => Promise<Transaction> = (engine, isolationLevel) =>
  new Promise((resolve, reject) => {
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((done) => {
      finish = done;
    });
    const outcome = engine.transaction(async (transaction) => {
      if (isolationLevel !== undefined)
        await transaction.exec(`SET TRANSACTION ISOLATION LEVEL ${isolationLevel}`);
      resolve(await transactionOn(transaction, finish, () => outcome));
      await finished;
    });
    // A failure before the transaction was handed out; a later one is `outcome`'s, and reported by commit.
    outcome.catch(reject);
  });

const transactionOn = async (
  transaction: EngineTransaction,
  finish: () => void,
  outcome: () => Promise<void>,
): Promise<Transaction> => {
  // Reads and converts through whatever has a `query` like the engine's.
  const queryable = await new PrismaPGlite(transaction as unknown as PGlite).connect();
  return {
    provider: queryable.provider,
    adapterName: queryable.adapterName,
    options: { usePhantomQuery: true },
    queryRaw: (query) => queryable.queryRaw(query),
    executeRaw: (query) => queryable.executeRaw(query),
    commit: () => {
      finish();
      return outcome();
    },
    rollback: async () => {
      await transaction.rollback();
      finish();
      await outcome();
    },
    createSavepoint: async (name) => void (await transaction.exec(`SAVEPOINT ${name}`)),
    rollbackToSavepoint: async (name) => void (await transaction.exec(`ROLLBACK TO SAVEPOINT ${name}`)),
    releaseSavepoint: async (name) => void (await transaction.exec(`RELEASE SAVEPOINT ${name}`)),
  };
};
