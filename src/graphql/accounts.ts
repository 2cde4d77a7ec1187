import type { ExecutionResult } from 'graphql';
import type { Metrics } from '../http/metrics.ts';
import type { Caller } from './caller.ts';
import { codeOf } from './errors.ts';
import { isStream, type Operation, type Outline } from './operations.ts';
import type { PayloadStream } from './stream.ts';

export const clock = (): number => performance.now() / 1000;

export interface Accounts {
  /** Runs an operation and counts it; a stream counts as a subscription until it is over, which `onOver` is told too. */
  run(
    operation: Operation,
    caller: Caller,
    onOver?: (hasLeft: boolean) => void,
  ): Promise<ExecutionResult | PayloadStream>;
  /** Counts an operation that was run elsewhere, since `started` on the `clock`. */
  answered(outline: Outline, caller: Caller, code: string, started: number): void;
  /** Counts an operation that was refused before it ran. */
  refused(caller: Caller, result: ExecutionResult): void;
}

export const createAccounts = (metrics: Metrics): Accounts => ({
  async run(operation, { transport }, onOver) {
    const started = clock();
    const result = await operation.run();
    const { kind, field } = operation;
    const code = isStream(result) ? 'OK' : codeOf(result);
    metrics.operationDone({ transport, kind, field, code, seconds: clock() - started });
    if (!isStream(result)) return result;
    if (result.isOver) {
      onOver?.(true);
      return result;
    }
    metrics.subscriptionOpened();
    result.onOver = (hasLeft) => {
      metrics.subscriptionClosed();
      onOver?.(hasLeft);
    };
    return result;
  },
  answered({ kind, field }, { transport }, code, started) {
    metrics.operationDone({ transport, kind, field, code, seconds: clock() - started });
  },
  refused({ transport }, result) {
    metrics.operationDone({ transport, kind: 'refused', field: 'none', code: codeOf(result), seconds: 0 });
  },
});
