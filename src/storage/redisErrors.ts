import { type DomainError, unavailable } from '../shared/errors.ts';

/** What ioredis says, in messages only, when Redis is away or cannot serve at the moment. */
const AWAY =
  /^(Command timed out|Connection is closed\.|Stream isn't writeable|Socket timeout\.|Cluster isn't ready|Cluster is ended|Failed to refresh slots cache|All sentinels are unreachable|Connection in subscriber mode)|Connection is closed|max retries per request limit|^(LOADING|BUSY|CLUSTERDOWN|MASTERDOWN|READONLY|TRYAGAIN|NOREPLICAS|MISCONF|OOM|UNBLOCKED)\b/;

/** The `DomainError` that a failed Redis command means; undefined where it is a fault of ours. */
export const redisErrorOf = (error: unknown): DomainError | undefined =>
  error instanceof Error && AWAY.test(error.message)
    ? unavailable('The store is not available at the moment. Try again.')
    : undefined;
