import type { Cluster, Redis } from 'ioredis';

/** Resolves when the connection is (again) usable, whatever errors come before. */
export const ready = (connection: Redis | Cluster): Promise<void> =>
  new Promise((resolve) => {
    if (connection.status === 'ready') resolve();
    else connection.once('ready', () => resolve());
  });
