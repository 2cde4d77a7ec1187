import { type Server, type Stores, startProcess, type Tenant } from './app.ts';
import { createTestDatabase } from './database.ts';
import type { Proxy as Wire } from './proxy.ts';
import { type RedisOptions, type RedisServer, startRedis } from './redis.ts';
import { startTcpProxy, type TcpProxy } from './tcpProxy.ts';

type ServerProcess = Awaited<ReturnType<typeof startProcess>>;

/** Two server processes on one Postgres and a Redis of their own, and one address that leads to whichever is up. */
export interface Cluster extends AsyncDisposable {
  readonly stores: Stores;
  readonly redis: RedisServer;
  readonly proxy: TcpProxy;
  /** What lies between each server and Redis; empty unless asked for. */
  readonly wires: readonly Wire[];
  /** The address before the two. */
  readonly place: () => { readonly url: string; readonly socketUrl: string };
  /** One that is up, another at each call. */
  server(): ServerProcess;
  /** Ends one and starts another in its place. The address leads to the other meanwhile. */
  replace(index: 0 | 1, how: 'KILL' | 'DRAIN'): Promise<void>;
  /** One operation, sent again until it is answered: to whichever is up, whatever breaks in between. */
  readonly graphql: Server['graphql'];
}

export const ROOMY = {
  MAX_SUBSCRIPTIONS_PER_SOCKET: '20000',
  MAX_SOCKETS_PER_CREDENTIAL: '20000',
  MAX_SOCKETS_PER_USER: '20000',
  MAX_UNINITIALISED_SOCKETS_PER_ADDRESS: '20000',
};

export interface ClusterOptions extends RedisOptions {
  /** Lays a wire from one server to Redis, given its socket. */
  readonly layWire?: (path: string) => Promise<Wire>;
}

export const startCluster = async ({ layWire, ...options }: ClusterOptions = {}): Promise<Cluster> => {
  const [testDatabase, redis] = await Promise.all([createTestDatabase(), startRedis(options)]);
  const stores = { databaseUrl: testDatabase.url, redisUrl: redis.url };
  const wires = layWire === undefined ? [] : await Promise.all([layWire(redis.path), layWire(redis.path)]);
  const start = (index: 0 | 1) => {
    const wire = wires[index];
    return startProcess(wire === undefined ? stores : { ...stores, redisUrl: `unix://${wire.path}` }, ROOMY);
  };
  const servers: (ServerProcess | null)[] = await Promise.all([start(0), start(1)]);
  let turn = 0;

  const server = (): ServerProcess => {
    const up = servers.filter((candidate) => candidate !== null);
    const chosen = up[turn++ % up.length];
    if (chosen === undefined) throw new Error('No server is up.');
    return chosen;
  };
  const proxy = await startTcpProxy(() => ({ host: '127.0.0.1', port: Number(new URL(server().url).port) }));
  const at = `127.0.0.1:${proxy.port}/graphql`;

  return {
    stores,
    redis,
    proxy,
    wires,
    server,
    place: () => ({ url: `http://${at}`, socketUrl: `ws://${at}` }),
    async replace(index, how) {
      const old = servers[index];
      servers[index] = null;
      await (how === 'KILL' ? old?.kill9() : old?.close());
      servers[index] = await start(index);
    },
    graphql: async <Data>(...operation: Parameters<Server['graphql']>) => {
      for (;;) {
        const answer = await server()
          .graphql<Data>(...operation)
          .catch(() => null);
        const isAnswered = answer?.errors?.every(({ extensions }) => extensions?.code !== 'UNAVAILABLE');
        if (answer !== null && isAnswered !== false) return answer;
      }
    },
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await Promise.all(servers.map((candidate) => candidate?.close()));
      await Promise.all(wires.map((wire) => wire[Symbol.asyncDispose]()));
      await redis.stop();
      await testDatabase.drop();
    },
  };
};

/** Opens the thread of all of a tenant's participants. */
export const openThread = async (
  server: Pick<Server, 'graphql'>,
  tenant: Tenant,
  handles?: readonly string[],
) => {
  const members = (handles ?? Object.keys(tenant.participants)).map(
    (handle) => tenant.participants[handle]?.id,
  );
  const { data } = await server.graphql<{
    openThread: { thread: { id: string; timeline: { windows: { after: string }[] } } };
  }>(
    tenant.apiKey,
    `mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id timeline { windows { after } } } } }`,
    { ids: members },
  );
  const thread = data?.openThread.thread;
  if (thread === undefined) throw new Error('No thread was opened.');
  return { id: thread.id, start: thread.timeline.windows[0]?.after ?? '' };
};
