import type { ExecutionResult } from 'graphql';
import type { Metrics } from '../http/metrics.ts';
import type { Caller } from './caller.ts';
import { isStream, type Operation } from './operations.ts';
import type { PayloadStream } from './stream.ts';

const clock = (): number => performance.now() / 1000;

const codeOf = ({ errors }: ExecutionResult): string => {
  const code = errors?.[0]?.extensions.code;
  return errors === undefined ? 'OK' : typeof code === 'string' ? code : 'INTERNAL';
};

export interface Accounts {
  /** Runs an operation and counts it; a stream counts as a subscription until it is over, which `onOver` is told too. */
  run(
    operation: Operation,
    caller: Caller,
    onOver?: (hasLeft: boolean) => void,
  ): Promise<ExecutionResult | PayloadStream>;
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
  refused({ transport }, result) {
    metrics.operationDone({ transport, kind: 'refused', field: 'none', code: codeOf(result), seconds: 0 });
  },
});
