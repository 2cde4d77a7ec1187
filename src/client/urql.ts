import {
  type Exchange,
  type ExecutionResult,
  type SubscriptionForwarder,
  subscriptionExchange,
} from '@urql/core';
import { asError } from './problems.ts';
import { type ResumeOptions, resumable } from './resumable.ts';
import type { StreamClient } from './stream.ts';

/** For urql's `subscriptionExchange({ forwardSubscription })`: each subscription resumes where it was (see `resumable`). */
export const resumableForward = (client: StreamClient, options?: ResumeOptions): SubscriptionForwarder => {
  const stream = resumable(client, options);
  return ({ query = '', operationName, variables, extensions }) => ({
    subscribe: (observer) => ({
      unsubscribe: stream.subscribe(
        {
          query,
          ...(operationName === undefined ? {} : { operationName }),
          ...(variables === undefined ? {} : { variables }),
          ...(extensions === undefined ? {} : { extensions }),
        },
        {
          next: (result) => observer.next(result as ExecutionResult),
          complete: () => observer.complete(),
          error(problem) {
            if (!Array.isArray(problem)) return observer.error(asError(problem));
            observer.next({ errors: problem });
            observer.complete();
          },
        },
      ),
    }),
  });
};

/** The exchange for subscriptions through urql, with everything at its default. */
export const resumableExchange = (client: StreamClient, options?: ResumeOptions): Exchange =>
  subscriptionExchange({ forwardSubscription: resumableForward(client, options) });
