import type { SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils';
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

/** The row that a statement gives whatever it finds. */
export const required = <Row>(row: Row | undefined): Row => {
  if (row === undefined) throw new Error('The database answered no row.');
  return row;
};

/**
 * One logical database: real Postgres through a pool, or PGlite inside this process. Sessions run in UTC, and
 * every failure that a caller may expect has become a `DomainError` (`conflict.ts`): the codes our SQL functions raise,
 * `UNAVAILABLE` for a lost connection or a time-out.
 */
export interface Database {
  readonly prisma: PrismaClient;
  /**
   * Runs one statement. Rows as the database gives them: `bigint` and `numeric` as text, `timestamptz` as RFC 3339
   * text in UTC with all its microseconds, `json` parsed, arrays as arrays. A value for a `json` parameter is
   * passed as JSON text, a `timestamptz` one as a Date or text.
   */
  query<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]>;
  /**
   * As `query`, on connections that ordinary work does not use: for the little that everything else waits for (the
   * revocation log, how far followed logs reach), also while the others all wait for locks.
   */
  urgent<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]>;
  /** Runs a script of several statements without parameters, as one transaction (tests and set-up only). */
  script(sql: string): Promise<void>;
  /** A session of its own for migrations: one connection, no statement timeout. */
  openMigrationSession(): Promise<MigrationSession>;
  close(): Promise<void>;
}

export interface MigrationSession {
  /** What Prisma's schema engine talks through. Its `executeScript` sends the whole script at once. */
  readonly adapter: SqlDriverAdapterFactory;
  query<Row>(text: string): Promise<Row[]>;
  close(): Promise<void>;
}
