import { inject } from 'vitest';
import { type Server, startProcess } from './app.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { type PostgresProxy, startPostgresProxy } from './postgresProxy.ts';

/** A server whose statements a test can hear and hold, on a database of its own. */
export interface Proxied extends AsyncDisposable {
  readonly server: Server;
  readonly proxy: PostgresProxy;
  /** Not through the proxy. */
  readonly testDatabase: TestDatabase;
  /** What ran meanwhile because of it: the upkeep that every process does by the clock is left out. */
  during(action: () => Promise<unknown>): Promise<readonly string[]>;
}

/** Everything that a server asks by its clock, or a while after something, and not for an operation that is under way. */
const UPKEEP = new Set([
  'revocations_read',
  'runs_due',
  'expire_runs',
  'timeline_heads',
  'scratchpads_made',
  'runs_versions',
  'inbox_poll',
  'inbox_renew',
  'inbox_digest',
  'tickets_renew',
  'credentials_last_use',
  'empty_deleted',
  'empty_inboxes',
  'scratchpad_outboxes_due',
  'scratchpad_home',
  'scratchpads_present',
  // Of what is slow, whether it is alive; and of the whole, for whoever asks whether it is ready.
  'lifeline',
  'ready',
]);

const OUTBOXES = /^scratchpad_(fences|purges|retimes)_/;

export const isUpkeep = (statement: string): boolean => UPKEEP.has(statement) || OUTBOXES.test(statement);

export const startBehindProxy = async (
  environment: Readonly<Record<string, string>> = {},
): Promise<Proxied> => {
  const testDatabase = await createTestDatabase();
  const proxy = await startPostgresProxy(testDatabase.url);
  const server = await startProcess({ databaseUrl: proxy.url, redisUrl: inject('redisUrl') }, environment);
  return {
    server,
    proxy,
    testDatabase,
    async during(action) {
      const before = proxy.ran.length;
      await action();
      return proxy.ran.slice(before).filter((statement) => !isUpkeep(statement));
    },
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await proxy[Symbol.asyncDispose]();
      await testDatabase.drop();
    },
  };
};
