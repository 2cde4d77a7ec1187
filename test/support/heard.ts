import type { Database, Statement } from '../../src/storage/database.ts';

/** A database that tells what runs on it, and holds back the answers of statements on demand. */
export interface HeardDatabase {
  readonly database: Database;
  /** Names of the prepared statements that were sent, in order. */
  readonly ran: string[];
  /**
   * From now on what `name` answers is held until the returned function is called; the statement itself runs.
   * `answered` resolves when the first of them has.
   */
  hold(name: string): { readonly answered: Promise<void>; release(): void };
}

export const hear = (database: Database): HeardDatabase => {
  const ran: string[] = [];
  const gates = new Map<string, { onAnswer: () => void; released: Promise<void> }>();
  const query = async <Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> => {
    ran.push(statement.name);
    const gate = gates.get(statement.name);
    const rows = await database.query(statement, values);
    gate?.onAnswer();
    await gate?.released;
    return rows;
  };
  return {
    database: { ...database, query, urgent: query },
    ran,
    hold: (name) => {
      const answered = deferred();
      const released = deferred();
      gates.set(name, { onAnswer: answered.resolve, released: released.promise });
      return {
        answered: answered.promise,
        release: () => {
          gates.delete(name);
          released.resolve();
        },
      };
    },
  };
};

export const deferred = (): { readonly promise: Promise<void>; readonly resolve: () => void } => {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
};
