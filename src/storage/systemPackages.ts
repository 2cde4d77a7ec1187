import { execFile, spawn } from 'node:child_process';

export type Command = readonly [string, ...string[]];

export interface PackageNames {
  readonly debian: string;
  /** Absent: Homebrew is not asked. */
  readonly homebrew?: string;
}

/** The ways, best first, to install a package of the system's without a question to anybody; empty where there is none. */
export const installations = async ({
  debian,
  homebrew,
}: PackageNames): Promise<readonly (readonly Command[])[]> => {
  if (process.platform === 'darwin')
    return homebrew === undefined || (await findProgram('brew')) === undefined
      ? []
      : [[['brew', 'install', homebrew]]];
  if ((await findProgram('apt-get')) === undefined) return [];
  const prefix = await asRoot();
  if (prefix === undefined) return [];
  const install: Command = [...prefix, 'apt-get', 'install', '-y', '--no-install-recommends', debian];
  const update: Command = [...prefix, 'apt-get', 'update'];
  // The package lists of a fresh image are often empty.
  return [[install], [update, install]];
};

/** What to put before a command so that it runs as root and asks nothing; undefined where there is no such way. */
const asRoot = async (): Promise<Command | undefined> => {
  const silent = ['env', 'DEBIAN_FRONTEND=noninteractive'] as const;
  if (process.getuid?.() === 0) return silent;
  if ((await findProgram('sudo')) === undefined) return undefined;
  return (await run(['sudo', '-n', 'true'], 'ignore')) ? ['sudo', '-n', ...silent] : undefined;
};

/** One after the other, as long as each ends well. Their output goes to standard error. */
export const runAll = async (commands: readonly Command[]): Promise<boolean> => {
  for (const command of commands) if (!(await run(command, 'inherit'))) return false;
  return true;
};

const run = ([program, ...args]: Command, output: 'inherit' | 'ignore'): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', output === 'inherit' ? 2 : 'ignore', output] });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code === 0));
  });

/** Homebrew's folder and the sbin ones are not on every PATH. */
const FIND = 'PATH="$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/opt/homebrew/bin" command -v "$1"';

export const findProgram = (program: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile('/bin/sh', ['-c', FIND, 'find', program], (error, stdout) =>
      resolve(error === null && stdout.startsWith('/') ? stdout.trim() : undefined),
    );
  });
