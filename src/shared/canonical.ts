import { createHash } from 'node:crypto';

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

/** JSON with sorted keys and no white space; members that are undefined are left out. Source: RFC 8785's ordering. */
export const canonicalJson = (value: Json | undefined): string => {
  if (value === undefined) return 'null';
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(canonicalJson).join(',')}]`;
  const object = value as { readonly [key: string]: Json | undefined };
  const members = Object.keys(object)
    .filter((key) => object[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key])}`);
  return `{${members.join(',')}}`;
};

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** What "the same input" means for an idempotency key. */
export const inputHash = (input: Json): string => sha256(canonicalJson(input));
