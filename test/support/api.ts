import { type ExecutionResult, type GraphQLError, graphql } from 'graphql';
import { Redis } from 'ioredis';
import { inject } from 'vitest';
import { createAuthentication } from '../../src/auth/authenticate.ts';
import type { Presented } from '../../src/auth/session.ts';
import type { GraphQLContext } from '../../src/graphql/context.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { createHub } from '../../src/live/hub.ts';
import { createRedisBus } from '../../src/live/redisBus.ts';
import { createPadUpkeep } from '../../src/scratchpads/upkeep.ts';
import { createServices } from '../../src/services.ts';
import { DomainError } from '../../src/shared/errors.ts';
import { log } from '../../src/shared/log.ts';
import type { Database } from '../../src/storage/database.ts';
import { createEmptying } from '../../src/threads/emptying.ts';
import { ADMIN_TOKEN } from './identity.ts';

const schema = createSchema();

export interface ApiOptions {
  readonly redisUrl?: string;
  /** A connection of the test's own, which it may hold back. */
  readonly commands?: Redis;
  readonly answerBytes?: number;
  readonly digestSeconds?: number;
  readonly leaseSeconds?: number;
}

/** The services of one process and the schema over them, without a door. */
export const createApi = (database: Database, options: ApiOptions = {}) => {
  const path = (options.redisUrl ?? inject('redisUrl')).replace('unix://', '');
  const commands = options.commands ?? new Redis(path);
  const subscriber = new Redis(path);
  for (const link of [commands, subscriber]) link.on('error', () => undefined);
  const bus = createRedisBus({ commands, subscriber, log });
  const hub = createHub({ bus, log });
  const authentication = createAuthentication({ database, adminToken: ADMIN_TOKEN, bus });
  const padUpkeep = createPadUpkeep({ database, redis: commands, log });
  const emptying = createEmptying({ database, log, onEmptied: padUpkeep.outbox.wake });
  const services = createServices({
    database,
    redis: commands,
    bus,
    hub,
    authentication,
    emptying,
    padUpkeep,
    maxAgentHops: 0,
    scratchpadTtlSeconds: 0,
    inboxLeaseSeconds: options.leaseSeconds ?? 60,
    inboxDigestSeconds: options.digestSeconds ?? 1,
    answerBytes: options.answerBytes ?? 64 * 1024 * 1024,
  });

  /** One operation over HTTP, so to speak; throws what authentication throws. */
  const run = async (
    presented: Presented,
    source: string,
    variableValues: { readonly [name: string]: unknown } = {},
  ): Promise<ExecutionResult> => {
    const actor = await authentication.authenticate(presented);
    const contextValue: GraphQLContext = {
      actor,
      session: null,
      requestId: 'test',
      transport: 'http',
      signal: new AbortController().signal,
      lastEventId: null,
      services,
      loaders: services.createLoaders(actor),
    };
    return graphql({ schema, source, variableValues, contextValue });
  };

  const close = async (): Promise<void> => {
    services.close();
    await emptying.close();
    await padUpkeep.close();
    hub.close();
    await authentication.close();
    bus.close();
    commands.disconnect();
    subscriber.disconnect();
  };

  return { services, authentication, padUpkeep, run, close };
};

/** What a door would tell of an error, as text, to be compared byte by byte. */
export const told = (error: GraphQLError): string => {
  const { originalError: original, path } = error;
  if (!(original instanceof DomainError)) return JSON.stringify({ message: error.message, path });
  return JSON.stringify({ code: original.code, message: original.message, facts: original.facts, path });
};
