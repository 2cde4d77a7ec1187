import type { IncomingHttpHeaders } from 'node:http';
import type { Presented } from '../auth/session.ts';
import { badInput } from '../shared/errors.ts';

const one = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

/** The credential of an HTTP request stands in its headers and nowhere else. */
export const presentedIn = (headers: IncomingHttpHeaders): Presented => ({
  authorization: headers.authorization,
  apiKey: one(headers['x-api-key']),
  actAs: one(headers['x-act-as']),
});

const FIELDS = new Set(['authorization', 'x-api-key', 'x-act-as']);

/**
 * `connection_init` fields go by the headers' names, in any letter case. Nothing else in it is believed. One of them
 * that is no text, or is given twice and differs, is never passed over, which would let somebody in as more than they
 * asked for. Throws `BAD_USER_INPUT`.
 */
export const presentedInFields = (fields: Readonly<Record<string, unknown>> | undefined): Presented => {
  const texts = new Map<string, string>();
  for (const [field, value] of Object.entries(fields ?? {})) {
    const name = field.toLowerCase();
    if (!FIELDS.has(name)) continue;
    if (typeof value !== 'string')
      throw badInput(`connection_init: ${name} must be a text.`, { field: name });
    if ((texts.get(name) ?? value) !== value)
      throw badInput(`connection_init: ${name} is given twice, with different values.`, { field: name });
    texts.set(name, value);
  }
  return {
    authorization: texts.get('authorization'),
    apiKey: texts.get('x-api-key'),
    actAs: texts.get('x-act-as'),
  };
};

export const isPresented = ({ authorization, apiKey }: Presented): boolean =>
  authorization !== undefined || apiKey !== undefined;

const KEY_NAMES = new Set([
  'access_token',
  'api_key',
  'apikey',
  'authorization',
  'key',
  'token',
  'x-api-key',
]);

/** The name of a URL parameter that looks like a key: URLs end up in logs and histories. */
export const keyInUrl = (query: URLSearchParams): string | undefined =>
  [...query.keys()].find((name) => KEY_NAMES.has(name.toLowerCase()));
