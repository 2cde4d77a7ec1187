import { type Api, createApi } from '../../scripts/replay/api.ts';
import { type Child, startChild } from './child.ts';
import type { Stores } from './stores.ts';

export interface Product extends AsyncDisposable {
  /** `http://127.0.0.1:…/graphql` */
  readonly url: string;
  readonly port: number;
  readonly api: Api;
  readonly child: Child;
}

export const ADMIN_TOKEN = 'administers-the-bench';

/** The product as it is deployed: built, in production, a process of its own. */
export const startProduct = async (
  { databaseUrl, redis }: Stores,
  { inspected = false, env = {} }: { inspected?: boolean; env?: Readonly<Record<string, string>> } = {},
): Promise<Product> => {
  const child = await startChild({
    args: ['dist/main.js'],
    env: {
      NODE_ENV: 'production',
      PORT: '0',
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      ADMIN_TOKEN,
      LOG_LEVEL: 'warn',
      MAX_SOCKETS_PER_USER: '100000',
      MAX_SOCKETS_PER_CREDENTIAL: '100000',
      MAX_UNINITIALISED_SOCKETS_PER_ADDRESS: '100000',
      ...env,
    },
    says: /listens on (\S+)/,
    inspected,
  });
  const url = child.ready;
  return {
    url,
    port: Number(new URL(url).port),
    api: createApi(url),
    child,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
};
