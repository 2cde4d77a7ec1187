import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';

/** The server as it is built, as a process, with nothing but these variables. */
const startServer = (variables: Readonly<Record<string, string>>) => {
  const child = spawn(process.execPath, ['dist/main.js'], {
    env: { PATH: process.env['PATH'], PORT: '0', ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let complaints = '';
  child.stderr.on('data', (data: Buffer) => {
    complaints += data.toString();
  });
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => code ?? signal);
  return {
    pid: child.pid ?? 0,
    ended,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    line: async (): Promise<string> => String((await lines.next()).value),
    complaints: () => complaints.trim().split('\n'),
  };
};

const redisIsGone = async (dataDir: string): Promise<boolean> => {
  const redis = new Redis({
    path: join(dataDir, 'redis/redis.sock'),
    lazyConnect: true,
    retryStrategy: () => null,
  });
  redis.on('error', () => undefined);
  const answer = await redis.connect().then(
    () => false,
    () => true,
  );
  redis.disconnect();
  return answer;
};

test('the first start makes an example and says where to look; a second server is refused; SIGTERM ends all of it', async () => {
  await using folder = await temporaryFolder();
  const server = startServer({ DATA_DIR: folder.path });
  const [, url = ''] = /^Threadpad listens on (http:\S+)$/.exec(await server.line()) ?? [];
  const [, key = ''] = /API key, shown once: (\S+)$/.exec(await server.line()) ?? [];
  expect(await server.line()).toContain(`${url}#key=${key}&thread=thread_`);
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ query: '{ viewer { user { name } } }' }),
  });
  expect(await answer.json()).toMatchObject({ data: { viewer: { user: { name: expect.any(String) } } } });

  const second = startServer({ DATA_DIR: folder.path });
  expect(await second.ended).toBe(1);
  expect(second.complaints()).toEqual([expect.stringContaining(`is in use by process ${server.pid} on`)]);

  server.kill('SIGTERM');
  expect(await server.ended).toBe(0);
  expect(await redisIsGone(folder.path)).toBe(true);
});

test('a signal in the middle of a start ends what was begun', async () => {
  await using folder = await temporaryFolder();
  const server = startServer({ DATA_DIR: folder.path });
  await expect.poll(() => redisIsGone(folder.path), { timeout: 30_000 }).toBe(false);
  server.kill('SIGINT');
  expect(await server.ended).toBe(0);
  expect(await redisIsGone(folder.path)).toBe(true);
});

test('a port that is taken is named, and nothing is left running', async () => {
  await using folder = await temporaryFolder();
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  await using store = await createTestDatabase();
  const server = startServer({
    DATA_DIR: folder.path,
    DATABASE_URL: store.url,
    PORT: String(port),
    LOG_LEVEL: 'error',
  });
  expect(await server.ended).toBe(1);
  expect(server.complaints()).toEqual([expect.stringMatching(/^The port is in use already: set PORT/)]);
  expect(await redisIsGone(folder.path)).toBe(true);
  taken.close();
});

test('a first start that finds its port taken does not use up the key that is shown once; a later one says where to look', async () => {
  await using folder = await temporaryFolder();
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const refused = startServer({ DATA_DIR: folder.path, PORT: String(port), LOG_LEVEL: 'error' });
  expect(await refused.ended).toBe(1);
  taken.close();

  // In production there is no GraphiQL to point at.
  const first = startServer({ DATA_DIR: folder.path, NODE_ENV: 'production' });
  await first.line();
  expect(await first.line()).toMatch(/API key, shown once: \S+$/);
  first.kill('SIGTERM');
  expect(await first.ended).toBe(0);
  expect(await first.line()).toBe('undefined');

  const second = startServer({ DATA_DIR: folder.path, HOST: '0.0.0.0' });
  const [, there = ''] =
    /^Threadpad listens on http:\/\/0\.0\.0\.0(:\d+\/graphql)$/.exec(await second.line()) ?? [];
  expect(await second.line()).toBe(
    `Explore it in GraphiQL, with the API key of the first start: http://127.0.0.1${there}`,
  );
  second.kill('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('what cannot be started says why in one line', async () => {
  await using folder = await temporaryFolder();
  await using store = await createTestDatabase();
  const missing = new URL(inject('postgresUrl'));
  missing.pathname = '/nowhere';
  const failures: [Readonly<Record<string, string>>, RegExp][] = [
    [{ PORT: 'http' }, /^PORT is wrong: a whole number is meant\.$/],
    [
      { DATABASE_URL: 'postgresql://u:secret@127.0.0.1:1/none' },
      /^The database of DATABASE_URL cannot be reached: .*ECONNREFUSED 127\.0\.0\.1:1$/,
    ],
    [
      { DATABASE_URL: missing.href },
      /^The database of DATABASE_URL cannot be used: .*"nowhere" does not exist$/,
    ],
    [
      { HOST: 'nowhere.invalid', DATABASE_URL: store.url },
      /^HOST is wrong: nowhere\.invalid is no address of this machine \(.*\)\.$/,
    ],
    [
      { HOST: '203.0.113.7', DATABASE_URL: store.url },
      /^HOST is wrong: 203\.0\.113\.7 is no address of this machine \(.*\)\.$/,
    ],
  ];
  for (const [variables, reason] of failures) {
    const server = startServer({
      DATA_DIR: folder.path,
      REDIS_URL: inject('redisUrl'),
      LOG_LEVEL: 'error',
      ...variables,
    });
    expect(await server.ended).toBe(1);
    expect(server.complaints()).toEqual([expect.stringMatching(reason)]);
  }
});

test('a database of one’s own that nobody uses yet comes with a word on how to get the first user', async () => {
  await using folder = await temporaryFolder();
  await using store = await createTestDatabase();
  const token = 'sixteen-characters';
  const start = (variables: Readonly<Record<string, string>>) =>
    startServer({
      DATA_DIR: folder.path,
      DATABASE_URL: store.url,
      REDIS_URL: inject('redisUrl'),
      ...variables,
    });

  const first = start({});
  await first.line();
  expect(await first.line()).toMatch(/^Nobody uses it yet: start it with ADMIN_TOKEN .* createUser/);
  first.kill('SIGTERM');
  expect(await first.ended).toBe(0);

  const second = start({ ADMIN_TOKEN: token });
  const [, url = ''] = /^Threadpad listens on (http:\S+)$/.exec(await second.line()) ?? [];
  expect(await second.line()).toMatch(/^Nobody uses it yet: as the bearer of ADMIN_TOKEN .* createUser/);
  const made = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: 'mutation { createUser(input: { name: "First" }) { apiKey } }' }),
  });
  expect(await made.json()).toEqual({
    data: { createUser: { apiKey: expect.stringMatching(/^tp_key_/) } },
  });
  second.kill('SIGTERM');
  expect(await second.ended).toBe(0);

  const third = start({});
  await third.line();
  third.kill('SIGTERM');
  expect(await third.ended).toBe(0);
  expect(await third.line()).toBe('undefined');
});
