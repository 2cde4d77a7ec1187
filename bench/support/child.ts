import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Child extends AsyncDisposable {
  /** What it said when it was ready. */
  readonly ready: string;
  /** Of the debugger, where `inspected`. */
  readonly inspector: string | null;
}

interface ChildOptions {
  /** Arguments of node. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Matches the line that says that it is ready; its first group is `ready`. */
  readonly says: RegExp;
  readonly inspected?: boolean;
}

/** A Node process of this run's own: it ends with it. */
export const startChild = async ({ args, env, says, inspected = false }: ChildOptions): Promise<Child> => {
  const child = spawn(process.execPath, [...(inspected ? ['--inspect=127.0.0.1:0'] : []), ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const onExit = (): void => void child.kill('SIGKILL');
  process.once('exit', onExit);
  let inspector: string | null = null;
  createInterface({ input: child.stderr }).on('line', (line) => {
    const [, url] = /^Debugger listening on (ws:\S+)/.exec(line) ?? [];
    if (url !== undefined) inspector = url;
    else if (!/^(For help|Debugger)/.test(line)) console.error(line);
  });
  const ready = await readiness(child, says);
  return {
    ready,
    get inspector() {
      return inspector;
    },
    async [Symbol.asyncDispose]() {
      process.off('exit', onExit);
      if (child.exitCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
};

const readiness = (child: ChildProcess, says: RegExp): Promise<string> =>
  new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`It ended with ${code} before it was ready.`)));
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const match = says.exec(line);
      if (match !== null) resolve(match[1] ?? line);
    });
  });
