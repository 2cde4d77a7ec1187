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

/** Runs an operation and counts it; an open stream counts as a subscription until `ended`. */
export interface Accounts {
  run(operation: Operation, caller: Caller): Promise<Running>;
  /** Counts an operation that was refused before it ran. */
  refused(caller: Caller, result: ExecutionResult): void;
  /** Operations that have not answered yet, over all doors. */
  readonly inFlight: number;
}

export interface Running {
  readonly result: ExecutionResult | PayloadStream;
  /** The stream is over. To be called for streams; more than once does no harm. */
  ended(): void;
}

export const createAccounts = (metrics: Metrics): Accounts => {
  let inFlight = 0;
  return {
    get inFlight() {
      return inFlight;
    },
    async run(operation, { transport }) {
      const started = clock();
      inFlight += 1;
      const result = await operation.run();
      inFlight -= 1;
      const { kind, field } = operation;
      const isOpen = isStream(result);
      const code = isOpen ? 'OK' : codeOf(result);
      metrics.operationDone({ transport, kind, field, code, seconds: clock() - started });
      if (!isOpen) return { result, ended: () => {} };
      metrics.subscriptionOpened();
      let isCounted = true;
      return {
        result,
        ended() {
          if (isCounted) metrics.subscriptionClosed();
          isCounted = false;
        },
      };
    },
    refused({ transport }, result) {
      metrics.operationDone({ transport, kind: 'refused', field: 'none', code: codeOf(result), seconds: 0 });
    },
  };
};
