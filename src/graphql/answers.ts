import { type ExecutionResult, GraphQLError } from 'graphql';
import { answerTooLarge } from '../http/outgoing.ts';
import { jsonSize } from '../shared/jsonSize.ts';

/** The result, or where it is larger than `limit` bytes the one error that says so: nothing of it is made a text. */
export const bounded = (result: ExecutionResult, limit: number): ExecutionResult => {
  if (jsonSize(result, limit) <= limit) return result;
  const cause = answerTooLarge(limit);
  return { data: null, errors: [new GraphQLError(cause.message, { originalError: cause })] };
};
