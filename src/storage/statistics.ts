import type { Logger } from '../shared/log.ts';
import { type Database, statement } from './database.ts';

const EVERY_MS = 30_000;
/** Of a table that fits into so many blocks any plan will do. */
const SMALL_BLOCKS = 8;

const GROWN = statement<{ name: string }>(
  'tables_grown',
  `SELECT c.relname AS name FROM pg_class c
   WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
     AND pg_relation_size(c.oid) / current_setting('block_size')::int > greatest(2 * c.relpages, ${SMALL_BLOCKS})`,
);

/**
 * Analyses the tables that are twice as large as when that was done last, and gives their names. Without it plans that were made
 * for a few rows are kept, and read whole threads for one event. Whoever analyses the same table now spares us that.
 */
export const analyseGrown = async (database: Database): Promise<string[]> => {
  const grown = (await database.query(GROWN, [])).map(({ name }) => name).sort();
  for (const name of grown)
    await database.query(statement(`analyse_${name}`, `ANALYZE (SKIP_LOCKED) "${name}"`), []);
  return grown;
};

/** Analyses now, and as tables grow: an embedded database has nobody else who does, and a new one waits long for its autovacuum. */
export const keepStatistics = (database: Database, log: Logger): { close(): Promise<void> } => {
  let running: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    try {
      await analyseGrown(database);
    } catch (error) {
      log.warn({ err: error }, 'Tables could not be analysed; it is tried again.');
    }
    running = undefined;
  };
  const begin = (): void => {
    running ??= run();
  };
  const timer = setInterval(begin, EVERY_MS);
  timer.unref();
  begin();
  return {
    async close() {
      clearInterval(timer);
      await running;
    },
  };
};
