import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Json } from '../shared/canonical.ts';
import { DomainError } from '../shared/errors.ts';
import { requireSafeJson, requireText } from '../shared/input.ts';
import { InvalidRequest, type Issue, issueOf, issuesOf, type Place } from './issues.ts';
import type { RestRoute } from './route.ts';

export interface Received {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Null where there is none. */
  readonly body: string | null;
}

export interface Checked {
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

/** The request as its route's schemas have it. Throws `InvalidRequest` with all that is wrong with it. */
export const checkRequest = (route: RestRoute, { params, query, headers, body }: Received): Checked => {
  const issues: Issue[] = [];
  const check = (schema: z.ZodType | undefined, place: Place, value: unknown): unknown => {
    if (schema === undefined) return undefined;
    const { data, error } = schema.safeParse(value);
    if (error !== undefined) issues.push(...issuesOf(error, place, value));
    return data;
  };
  issues.push(...unsafe('path', params));
  const fields = Object.fromEntries(query);
  issues.push(...unsafe('query', fields));
  const checked = {
    query: check(route.query, 'query', fields),
    headers: check(route.headers, 'header', headers),
  };
  const value = route.body === undefined ? undefined : parse(body, issues);
  const checkedBody =
    route.body === undefined || value === UNREADABLE ? undefined : check(route.body, 'body', value);
  if (issues.length > 0) throw new InvalidRequest(issues);
  return { ...checked, body: checkedBody };
};

const UNREADABLE = Symbol('a body that is no JSON we take');

/** Undefined for none: the schema says that it is missing. */
const parse = (body: string | null, issues: Issue[]): unknown => {
  if (body === null || body === '') return undefined;
  const value = parsed(body);
  if (value === UNREADABLE) {
    issues.push(issueOf('json_invalid', 'JSON decode error', ['body'], {}));
    return UNREADABLE;
  }
  try {
    requireSafeJson(value as Json, 'body');
    return value;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    issues.push(issueOf('value_error', error.message, ['body'], null));
    return UNREADABLE;
  }
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return UNREADABLE;
  }
};

const unsafe = (place: Place, values: Readonly<Record<string, string>>): Issue[] =>
  Object.entries(values).flatMap(([name, value]) => {
    try {
      requireText(value, name);
      return [];
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      return [issueOf('value_error', error.message, [place, name], null)];
    }
  });
