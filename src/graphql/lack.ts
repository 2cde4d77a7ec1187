import type { ExecutionResult, GraphQLError } from 'graphql';
import { LogGone } from '../shared/errors.ts';
import { publicCodeOf, rootOf } from './errors.ts';

/**
 * Why the result of an execution is not what an event has to say. `AWAY`: a store cannot be asked at the moment.
 * `GONE`: what the stream follows was deleted. `TORN`: another log was, between two reads of this execution. `BROKEN`:
 * something failed that nobody expected.
 */
export interface Lack {
  readonly kind: 'AWAY' | 'GONE' | 'TORN' | 'BROKEN';
  readonly error: GraphQLError;
}

/** What a stream follows: it ends when one of them is deleted, and with nothing else. */
export interface FollowedIds {
  /** Of a scratchpad's stream its thread, without which there is no scratchpad. */
  readonly threadId?: string | null;
  readonly scratchpadId?: string | null;
}

/** The lack of a result in a stream of `followed`; null where each of its errors is an answer. The gravest counts. */
export const lackOf = ({ errors }: ExecutionResult, followed: FollowedIds): Lack | null => {
  if (errors === undefined) return null;
  const lacks = errors.map((error) => ({ kind: kindOf(error, followed), error }));
  for (const grave of GRAVEST_FIRST)
    for (const { kind, error } of lacks) if (kind === grave) return { kind, error };
  return null;
};

/** What is gone cannot be read any more; what is away comes back and may then read otherwise. */
const GRAVEST_FIRST = ['GONE', 'AWAY', 'BROKEN', 'TORN'] as const;

const kindOf = (error: GraphQLError, { threadId, scratchpadId }: FollowedIds): Lack['kind'] | null => {
  const cause = rootOf(error);
  if (cause instanceof LogGone)
    return cause.id === (cause.kind === 'Thread' ? threadId : scratchpadId) ? 'GONE' : 'TORN';
  const code = publicCodeOf(error);
  if (code === 'UNAVAILABLE') return 'AWAY';
  return code === 'INTERNAL' ? 'BROKEN' : null;
};
