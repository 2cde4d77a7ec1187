import type { GraphQLError } from 'graphql';
import { requestError } from './errors.ts';
import type { OperationParams } from './operations.ts';

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;

const PARAMETERS = new Set(['query', 'variables', 'operationName', 'extensions']);

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;

/** Reads a GraphQL request that came as JSON. Throws `BAD_REQUEST`. Source: GraphQL over HTTP, §5. */
export const readParams = (request: unknown): OperationParams => {
  if (Array.isArray(request)) throw bad('Batches are not served: send one operation a request.');
  if (typeof request !== 'object' || request === null)
    throw bad(`A request is an object, not ${kindOf(request)}.`);
  for (const [name, value] of Object.entries(request))
    if (!PARAMETERS.has(name) && !isAbsent(value))
      throw bad(`A request has no parameter "${name.slice(0, 64)}".`);
  const { query, variables, operationName, extensions } = request as Partial<Record<string, unknown>>;
  if (isAbsent(query)) throw bad('The parameter "query" is missing.');
  if (typeof query !== 'string') throw bad(`The parameter "query" is a string, not ${kindOf(query)}.`);
  if (!isAbsent(operationName) && typeof operationName !== 'string')
    throw bad(`The parameter "operationName" is a string, not ${kindOf(operationName)}.`);
  if (!isAbsent(extensions) && kindOf(extensions) !== 'object')
    throw bad(`The parameter "extensions" is an object, not ${kindOf(extensions)}.`);
  if (!isRecord(variables) && !isAbsent(variables))
    throw bad(`The parameter "variables" is an object, not ${kindOf(variables)}.`);
  return {
    query,
    variables: variables ?? null,
    operationName: operationName === '' ? null : (operationName ?? null),
  };
};

/** The same, from a URL's parameters: `variables` and `extensions` as JSON. */
export const readQueryParams = (url: URLSearchParams): OperationParams => {
  const json = (name: string): unknown => {
    const text = url.get(name);
    if (text === null || text === '') return null;
    return parseJson(text, `The parameter "${name}"`);
  };
  return readParams({
    query: url.get('query'),
    operationName: url.get('operationName'),
    variables: json('variables'),
    extensions: json('extensions'),
  });
};

export const parseJson = (text: string, what: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw bad(`${what} is not valid JSON.`);
  }
};

const isRecord = (value: unknown): value is Record<string, unknown> => kindOf(value) === 'object';

const bad = (message: string): GraphQLError => requestError('BAD_REQUEST', message);
