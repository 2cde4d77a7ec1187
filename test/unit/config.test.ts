import { isAbsolute } from 'node:path';
import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../src/config.ts';

test('without any variable everything has a default that works on this machine alone', () => {
  const config = readConfig({});
  expect(config).toMatchObject({
    environment: 'development',
    host: '127.0.0.1',
    port: 4000,
    databaseUrl: null,
    redisUrl: null,
    adminToken: null,
    allowedOrigins: [],
    graphiql: true,
    openIntrospection: true,
    maxAgentHops: 0,
  });
  expect(isAbsolute(config.dataDir)).toBe(true);
  expect(Object.isFrozen(config)).toBe(true);
});

test('production is closed unless asked otherwise, and an empty value counts as absent', () => {
  expect(readConfig({ NODE_ENV: 'production', PORT: '', REDIS_URL: '' })).toMatchObject({
    graphiql: false,
    openIntrospection: false,
    port: 4000,
    redisUrl: null,
  });
  expect(readConfig({ NODE_ENV: 'production', GRAPHIQL: 'true' }).graphiql).toBe(true);
});

test.each([
  ['PORT', 'http'],
  ['PORT', '65536'],
  ['DATABASE_URL', 'mysql://localhost/x'],
  ['DATABASE_URL', 'postgresql://me:secret@[bad/db'],
  ['DATABASE_URL', 'postgresql://me:%zz@localhost:port/db'],
  ['REDIS_URL', 'http://localhost'],
  ['ADMIN_TOKEN', 'short'],
  ['ALLOWED_ORIGINS', 'https://a.example,b.example'],
  ['ALLOWED_ORIGINS', 'https://a.example/'],
  ['TRUST_PROXY', 'loopback'],
  ['NODE_ENV', 'prod'],
  ['LOG_LEVEL', 'loud'],
  ['MAX_AGENT_HOPS', '-1'],
  ['INBOX_LEASE_SECONDS', '0'],
  ['INBOX_DIGEST_SECONDS', 'often'],
  ['SHUTDOWN_SECONDS', '0'],
  ['SHUTDOWN_SECONDS', '3601'],
])('a wrong %s (%s) is named in one line', (name, value) => {
  const read = () => readConfig({ [name]: value });
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(new RegExp(`^${name} is wrong: [^\\n]+$`));
});
