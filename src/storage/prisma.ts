import type { SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import { translated } from './conflict.ts';
import { PrismaClient } from './generated/prisma/client.ts';

/** A client whose operations fail with a `DomainError` wherever the failure means one, on every engine. */
export const openPrisma = (adapter: SqlDriverAdapterFactory): PrismaClient => {
  const client = new PrismaClient({ adapter, errorFormat: 'minimal' });
  const extended = client.$extends({
    query: { $allOperations: ({ args, query }) => translated(() => query(args)) },
  });
  // An extension of queries changes no signature.
  return extended as unknown as PrismaClient;
};
