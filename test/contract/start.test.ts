import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
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

  const first = startServer({ DATA_DIR: folder.path });
  await first.line();
  expect(await first.line()).toMatch(/API key, shown once: \S+$/);
  first.kill('SIGTERM');
  expect(await first.ended).toBe(0);

  const second = startServer({ DATA_DIR: folder.path });
  const [, url = ''] = /^Threadpad listens on (http:\S+)$/.exec(await second.line()) ?? [];
  expect(await second.line()).toBe(`Explore it in GraphiQL, with the API key of the first start: ${url}`);
  second.kill('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('what cannot be started says why in one line', async () => {
  await using folder = await temporaryFolder();
  const failures: [Readonly<Record<string, string>>, RegExp][] = [
    [{ PORT: 'http' }, /^PORT is wrong: a whole number is meant\.$/],
    [{ DATABASE_URL: 'postgresql://127.0.0.1:1/none' }, /^A store cannot be reached: .*ECONNREFUSED/],
  ];
  for (const [variables, reason] of failures) {
    const server = startServer({ DATA_DIR: folder.path, ...variables });
    expect(await server.ended).toBe(1);
    expect(server.complaints()).toEqual([expect.stringMatching(reason)]);
  }
});
