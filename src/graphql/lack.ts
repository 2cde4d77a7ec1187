import type { ExecutionResult, GraphQLError } from 'graphql';
import { LogGone } from '../shared/errors.ts';
import { publicCodeOf, rootOf } from './errors.ts';

/**
 * Why the result of an execution is not what an event has to say. `AWAY`: a store cannot be asked at the moment.
 * `GONE`: the log itself was deleted. `TORN`: another log was, between two reads of this execution. `BROKEN`:
 * something failed that nobody expected.
 */
export interface Lack {
  readonly kind: 'AWAY' | 'GONE' | 'TORN' | 'BROKEN';
  readonly error: GraphQLError;
}

/** The lack of a result about the log of `threadId`; null where each of its errors is an answer. The gravest counts. */
export const lackOf = ({ errors }: ExecutionResult, threadId: string | null): Lack | null => {
  if (errors === undefined) return null;
  const lacks = errors.map((error) => ({ kind: kindOf(error, threadId), error }));
  for (const grave of GRAVEST_FIRST)
    for (const { kind, error } of lacks) if (kind === grave) return { kind, error };
  return null;
};

/** What is gone cannot be read any more; what is away comes back and may then read otherwise. */
const GRAVEST_FIRST = ['GONE', 'AWAY', 'BROKEN', 'TORN'] as const;

const kindOf = (error: GraphQLError, threadId: string | null): Lack['kind'] | null => {
  const cause = rootOf(error);
  if (cause instanceof LogGone) return cause.threadId === threadId ? 'GONE' : 'TORN';
  const code = publicCodeOf(error);
  if (code === 'UNAVAILABLE') return 'AWAY';
  return code === 'INTERNAL' ? 'BROKEN' : null;
};
