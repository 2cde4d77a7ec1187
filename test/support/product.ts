import { createDoors } from '../../src/graphql/doors.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { createGraphiqlPage } from '../../src/http/graphiql.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { log } from '../../src/shared/log.ts';
import { createApi } from './api.ts';
import { createTestDatabase } from './database.ts';
import { openLine } from './line.ts';

/** One whole server on a port of its own, reached over a line that can be cut. */
export const openProduct = async () => {
  const { database, drop } = await createTestDatabase();
  const api = createApi(database);
  const { services, authentication } = api;
  const graphiql = createGraphiqlPage();
  const doors = createDoors({
    schema: createSchema(),
    createContext: (caller) => ({ ...caller, services, loaders: services.createLoaders(caller.actor) }),
    authentication,
    readiness: async () => ({}),
    metrics: createMetrics(),
    log,
    allowedOrigins: [],
    isSchemaOpen: true,
    suggestions: true,
    trustProxy: false,
    page: (exchange) => graphiql.servePage(exchange),
    routes: [graphiql],
  });
  const port = await doors.listen(0, '127.0.0.1');
  const line = await openLine(port);
  return {
    api,
    url: `http://127.0.0.1:${line.port}/graphql`,
    wsUrl: `ws://127.0.0.1:${line.port}/graphql`,
    origin: `http://127.0.0.1:${line.port}`,
    /** Resets every connection without a word. */
    cut: line.cut,
    async close() {
      line.close();
      await doors.close();
      await api.close();
      await drop();
    },
  };
};

export type Product = Awaited<ReturnType<typeof openProduct>>;
