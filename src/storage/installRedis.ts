import { findProgram, installations, runAll } from './systemPackages.ts';

const PROGRAM = 'redis-server';

const WAYS_OUT =
  'redis-server is not installed. Install it (Debian/Ubuntu: apt-get install redis-server; Fedora: dnf install redis; ' +
  'Alpine: apk add redis; Arch: pacman -S redis; macOS: brew install redis), or set REDIS_URL to a Redis that is running.';

/**
 * The path of redis-server. Where it is missing it is installed if that needs no question (root or password-less
 * sudo on Debian and Ubuntu, Homebrew on a Mac), and said so; else an error with the ways out.
 */
export const requireRedisServer = async (): Promise<string> => {
  const present = await findProgram(PROGRAM);
  if (present !== undefined) return present;
  for (const commands of await installations({ debian: PROGRAM, homebrew: 'redis' })) {
    console.error(
      `redis-server is missing; installing it: ${commands.map((command) => command.join(' ')).join(' && ')}`,
    );
    if (await runAll(commands)) {
      const installed = await findProgram(PROGRAM);
      if (installed !== undefined) return installed;
    }
  }
  throw new Error(WAYS_OUT);
};
