import type { z } from 'zod';

/** Where a value of a request stood. */
export type Place = 'path' | 'query' | 'header' | 'body';

/** One fault of a request, in the shape that clients of this resource parse. */
export interface Issue {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
}

/** A request that does not fit its route: 422 with all that is wrong with it. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
  constructor(readonly issues: readonly Issue[]) {
    super('The request does not fit its route.');
  }
}

type ZodIssue = z.core.$ZodIssue;

export const issuesOf = (error: z.core.$ZodError, place: Place, input: unknown): Issue[] =>
  error.issues.flatMap((issue) => {
    const loc = [place, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))];
    const value = valueAt(input, issue.path);
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) =>
        issueOf('extra_forbidden', 'Extra inputs are not permitted', [...loc, key], valueAt(value, [key])),
      );
    if (value === undefined || (value === null && issue.path.length === 0))
      return [issueOf('missing', 'Field required', loc, valueAt(input, issue.path.slice(0, -1)))];
    const { type, msg } = faultOf(issue, value);
    return [issueOf(type, msg, loc, value)];
  });

export const issueOf = (type: string, msg: string, loc: Issue['loc'], input: unknown): Issue => ({
  type,
  loc,
  msg,
  input: echo(input),
});

interface Fault {
  readonly type: string;
  readonly msg: string;
}

const faultOf = (issue: ZodIssue, value: unknown): Fault => {
  switch (issue.code) {
    case 'invalid_type':
      return typeFault(issue.expected, value);
    case 'too_small':
      return sizeFault(issue.origin, Number(issue.minimum), 'at least', value);
    case 'too_big':
      return sizeFault(issue.origin, Number(issue.maximum), 'at most', value);
    default:
      return { type: 'value_error', msg: `Value error, ${issue.message}` };
  }
};

const TYPE_FAULTS: Readonly<Record<string, Fault>> = {
  string: { type: 'string_type', msg: 'Input should be a valid string' },
  boolean: { type: 'bool_type', msg: 'Input should be a valid boolean' },
  array: { type: 'list_type', msg: 'Input should be a valid list' },
  record: { type: 'dict_type', msg: 'Input should be a valid dictionary' },
  object: {
    type: 'model_attributes_type',
    msg: 'Input should be a valid dictionary or object to extract fields from',
  },
};

const typeFault = (expected: string, value: unknown): Fault =>
  TYPE_FAULTS[expected] ??
  (typeof value === 'string'
    ? {
        type: 'int_parsing',
        msg: 'Input should be a valid integer, unable to parse string as an integer',
      }
    : { type: 'int_type', msg: 'Input should be a valid integer' });

const sizeFault = (
  origin: string,
  bound: number,
  relation: 'at least' | 'at most',
  value: unknown,
): Fault => {
  const isLeast = relation === 'at least';
  const plural = bound === 1 ? '' : 's';
  if (origin === 'string')
    return {
      type: isLeast ? 'string_too_short' : 'string_too_long',
      msg: `String should have ${relation} ${bound} character${plural}`,
    };
  if (origin === 'array')
    return {
      type: isLeast ? 'too_short' : 'too_long',
      msg: `List should have ${relation} ${bound} item${plural} after validation, not ${(value as readonly unknown[]).length}`,
    };
  return {
    type: isLeast ? 'greater_than_equal' : 'less_than_equal',
    msg: `Input should be ${isLeast ? 'greater' : 'less'} than or equal to ${bound}`,
  };
};

const valueAt = (input: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? (value as Readonly<Record<PropertyKey, unknown>>)[key]
        : undefined,
    input,
  );

/** Characters of JSON that are repeated to whoever sent them; of more, nothing is. */
const ECHO_LIMIT = 2_048;

const echo = (input: unknown): unknown => {
  const text = JSON.stringify(input ?? null);
  return text.length > ECHO_LIMIT ? null : (input ?? null);
};
