import { execFile, spawn } from 'node:child_process';

const PROGRAM = 'redis-server';

const WAYS_OUT =
  'redis-server is not installed. Install it (Debian/Ubuntu: apt-get install redis-server; Fedora: dnf install redis; ' +
  'Alpine: apk add redis; Arch: pacman -S redis; macOS: brew install redis), or set REDIS_URL to a Redis that is running.';

/**
 * The path of redis-server. Where it is missing it is installed if that needs no question (root or password-less
 * sudo on Debian and Ubuntu, Homebrew on a Mac), and said so; else an error with the ways out.
 */
export const requireRedisServer = async (): Promise<string> => {
  const present = await find(PROGRAM);
  if (present !== undefined) return present;
  for (const commands of await installations()) {
    console.error(
      `redis-server is missing; installing it: ${commands.map((command) => command.join(' ')).join(' && ')}`,
    );
    if (await runAll(commands)) {
      const installed = await find(PROGRAM);
      if (installed !== undefined) return installed;
    }
  }
  throw new Error(WAYS_OUT);
};

type Command = readonly [string, ...string[]];

const installations = async (): Promise<readonly (readonly Command[])[]> => {
  if (process.platform === 'darwin')
    return (await find('brew')) === undefined ? [] : [[['brew', 'install', 'redis']]];
  if ((await find('apt-get')) === undefined) return [];
  const prefix = await asRoot();
  if (prefix === undefined) return [];
  const install: Command = [...prefix, 'apt-get', 'install', '-y', '--no-install-recommends', PROGRAM];
  const update: Command = [...prefix, 'apt-get', 'update'];
  // The package lists of a fresh image are often empty.
  return [[install], [update, install]];
};

/** What to put before a command so that it runs as root and asks nothing; undefined where there is no such way. */
const asRoot = async (): Promise<readonly [string, ...string[]] | undefined> => {
  const silent = ['env', 'DEBIAN_FRONTEND=noninteractive'] as const;
  if (process.getuid?.() === 0) return silent;
  if ((await find('sudo')) === undefined) return undefined;
  return (await run(['sudo', '-n', 'true'], 'ignore')) ? ['sudo', '-n', ...silent] : undefined;
};

const runAll = async (commands: readonly Command[]): Promise<boolean> => {
  for (const command of commands) if (!(await run(command, 'inherit'))) return false;
  return true;
};

/** Its output goes to standard error. */
const run = ([program, ...args]: Command, output: 'inherit' | 'ignore'): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', output === 'inherit' ? 2 : 'ignore', output] });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code === 0));
  });

/** Homebrew's folder and the sbin ones are not on every PATH. */
const FIND = 'PATH="$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/opt/homebrew/bin" command -v "$1"';

const find = (program: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile('/bin/sh', ['-c', FIND, 'find', program], (error, stdout) =>
      resolve(error === null && stdout.startsWith('/') ? stdout.trim() : undefined),
    );
  });
