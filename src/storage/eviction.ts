import { Cluster, type Redis } from 'ioredis';
import { log } from '../shared/log.ts';

/**
 * Warns once if a Redis would drop keys when its memory is full: scratchpads live there. Asked whenever a connection is
 * ready, since a server may start before its Redis. A server that does not tell is not guessed about.
 */
export const warnOfEviction = (commands: Redis | Cluster): void => {
  let isWarned = false;
  const ask = async (): Promise<void> => {
    const nodes = commands instanceof Cluster ? commands.nodes('master') : [commands];
    for (const node of nodes) {
      const memory = await node.info('memory');
      const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1] ?? NO_EVICTION;
      if (policy === NO_EVICTION || isWarned) continue;
      isWarned = true;
      log.warn({ policy }, WARNING);
    }
  };
  const askQuietly = (): void => {
    ask().catch(() => undefined);
  };
  if (commands.status === 'ready') askQuietly();
  commands.on('ready', askQuietly);
};

const NO_EVICTION = 'noeviction';

const WARNING =
  'Redis is configured to evict keys when its memory is full (maxmemory-policy). The notes in scratchpads live in ' +
  'Redis alone: an evicted one is lost. Set maxmemory-policy to noeviction.';
