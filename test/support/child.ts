import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A process of a test's own, which runs one of `children/` and says on standard output how far it is. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** The next line that it says; rejects when it ends before. */
  line(): Promise<string>;
  /** Its standard error so far. */
  readonly complaints: string;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  kill(signal?: NodeJS.Signals): void;
}

export const startChild = (name: string, args: readonly string[] = []): Child => {
  const file = fileURLToPath(new URL(`./children/${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let complaints = '';
  child.stderr.on('data', (data: Buffer) => {
    complaints += data.toString();
  });
  const ended = endOf(child);
  const kill = (signal: NodeJS.Signals = 'SIGKILL'): void => void child.kill(signal);
  return {
    pid: child.pid ?? 0,
    line: async () => {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${name} ended: ${complaints}`);
      return value;
    },
    get complaints() {
      return complaints;
    },
    ended,
    kill,
    [Symbol.asyncDispose]: async () => {
      kill();
      await ended;
    },
  };
};

const endOf = async (child: ChildProcess): Promise<number | string> => {
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return code ?? signal ?? 0;
};
