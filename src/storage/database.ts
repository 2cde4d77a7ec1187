import type { PrismaClient } from './generated/prisma/client.ts';

/**
 * A prepared statement. Hot paths (append, page, tail, authentication) are one of these each, run by name on
 * Postgres; everything else goes through Prisma.
 */
export interface Statement<Row> {
  readonly name: string;
  readonly text: string;
  /** Type only: the shape of a row. */
  readonly row?: Row;
}

export const statement = <Row>(name: string, text: string): Statement<Row> => ({ name, text });

/**
 * One logical database: real Postgres through a pool, or PGlite inside this process. Sessions run in UTC, and
 * every failure that a caller may expect has become a `DomainError` (`conflict.ts`): the codes our SQL functions raise,
 * `UNAVAILABLE` for a lost connection or a time-out.
 */
export interface Database {
  readonly prisma: PrismaClient;
  /** Runs one statement; rows as the database gives them (bigint as text). */
  query<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]>;
  /** Runs a script of several statements without parameters (migrations only). */
  script(sql: string): Promise<void>;
  close(): Promise<void>;
}
