import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * A server that cannot outlive the test run: a small shell stands beside it, and ends it and removes its folder as soon
 * as the pipe to us closes, in whatever way we ended.
 */
export interface Guarded {
  readonly pid: number;
  /** Resolves when the process has ended and been waited for. */
  end(options: { signal: NodeJS.Signals; keepFolder: boolean }): Promise<void>;
  /** Resolves when the process has ended by itself or was killed. */
  readonly ended: Promise<void>;
}

export interface GuardedOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** Removed at the end. */
  readonly folder: string;
  readonly logFile: string;
  /** What ends it when we are gone. The shell has it ignore INT and QUIT unless it takes them up again itself. */
  readonly endsBy: 'KILL' | 'QUIT';
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

const GUARD = `
exec 3<&0
"$@" </dev/null >>"$LOG" 2>&1 3<&- &
child=$!
echo "started $child"
(
  read -r signal keep
  kill -CONT $child 2>/dev/null
  kill -\${signal:-$END} $child 2>/dev/null
  [ "$keep" = keep ]
) <&3 &
reader=$!
exec 3<&-
wait $child
# In a shell of its own: when nobody reads any more it is this one that dies of it.
( echo ended ) 2>/dev/null
wait $reader || rm -rf "$FOLDER"
`;

export const startGuarded = async (options: GuardedOptions): Promise<Guarded> => {
  const { command, args, folder, logFile, endsBy, user, env } = options;
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', command, ...args], {
    cwd: '/',
    // A group of its own: Ctrl-C reaches it by the pipe alone.
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {
      PATH: process.env.PATH ?? '/usr/bin:/bin',
      LOG: logFile,
      FOLDER: folder,
      END: endsBy,
      LC_ALL: 'C',
      ...env,
    },
    ...user,
  });
  guard.stdin?.on('error', () => undefined);
  const { pid, ended } = await watch(guard);
  guard.unref();
  return {
    pid,
    ended,
    end: async ({ signal, keepFolder }) => {
      guard.ref();
      const closed = once(guard, 'close');
      guard.stdin?.end(`${signal.replace(/^SIG/, '')} ${keepFolder ? 'keep' : 'remove'}\n`);
      await closed;
    },
  };
};

const watch = async (guard: ChildProcess): Promise<{ pid: number; ended: Promise<void> }> => {
  let said = '';
  let onEnded: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    onEnded = resolve;
  });
  const pid = await new Promise<number>((resolve, reject) => {
    guard.once('error', reject);
    guard.once('close', () => {
      onEnded();
      reject(new Error('The guard ended before it started anything.'));
    });
    guard.stdout?.on('data', (data: Buffer) => {
      said += data.toString();
      const started = /started (\d+)/.exec(said);
      if (started !== null) resolve(Number(started[1]));
      if (said.includes('ended')) onEnded();
    });
  });
  return { pid, ended };
};
