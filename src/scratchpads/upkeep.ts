import type { Cluster, Redis } from 'ioredis';
import type { Logger } from '../shared/log.ts';
import type { Database } from '../storage/database.ts';
import { fenceOutbox } from './fencing.ts';
import { createOutboxWorker, type OutboxWorker, workOff } from './outbox.ts';
import { createPlane, type Plane } from './plane.ts';
import { purgeOutbox } from './purging.ts';
import { retimeOutbox } from './retiming.ts';
import { markLegacyChecked } from './rows.ts';
import { createSweeping } from './sweeping.ts';

/** The state of scratchpads in Redis, and what one process does to keep it in step with SQL. */
export interface PadUpkeep {
  readonly plane: Plane;
  /** Fences to raise, state to purge and times to tell. */
  readonly outbox: OutboxWorker;
  close(): Promise<void>;
}

export const createPadUpkeep = ({
  database,
  redis,
  log,
}: {
  database: Database;
  redis: Redis | Cluster;
  log: Logger;
}): PadUpkeep => {
  const plane = createPlane({ redis, markLegacyChecked: (pad) => markLegacyChecked(database, pad) });
  const outboxes = [
    workOff(fenceOutbox(plane), { database, log }),
    workOff(purgeOutbox(plane), { database, log }),
    workOff(retimeOutbox(plane), { database, log }),
  ];
  const outbox = createOutboxWorker(outboxes, { database, log });
  const sweeping = createSweeping({ database, redis, log });
  return {
    plane,
    outbox,
    async close() {
      await outbox.close();
      await sweeping.close();
    },
  };
};
