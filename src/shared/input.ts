import { canonicalJson, type Json } from './canonical.ts';
import { badInput, tooLarge, tooLong } from './errors.ts';

/** Sizes are UTF-8 bytes of the decoded text, or of a JSON value's canonical form. */
export const LIMITS = {
  messageContent: 256 * 1024,
  messageData: 256 * 1024,
  messageContext: 2 * 1024,
  memoryPayload: 256 * 1024,
  signalText: 16 * 1024,
  signalData: 16 * 1024,
  /** Of a search. */
  query: 4 * 1024,
  match: 16 * 1024,
  metaData: 16 * 1024,
  tools: 256 * 1024,
  /** A run's input, and its result. */
  runData: 256 * 1024,
  runError: 16 * 1024,
  reason: 2 * 1024,
  /** Characters. */
  handle: 128,
  label: 128,
  task: 128,
  kind: 128,
  displayName: 256,
  name: 256,
  idempotencyKey: 128,
  expiresInSeconds: 315_360_000,
  ttlSeconds: 315_360_000,
  ticketOperation: 256 * 1024,
  maxToolCalls: 1_000_000,
  sources: 50,
  mentions: 256,
  jsonDepth: 32,
  minParticipants: 2,
  maxParticipants: 256,
  pageSize: 200,
  defaultPageSize: 50,
  nodes: 200,
} as const;

const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

/** Postgres stores no NUL, and a lone surrogate is no text: both are refused at the edge. */
export const requireText = (text: string, field: string): string => {
  if (text.includes('\u0000')) throw badInput(`${field} contains a NUL character.`, { field });
  if (!text.isWellFormed()) throw badInput(`${field} contains a lone surrogate.`, { field });
  return text;
};

export const requireBytes = (text: string, field: string, limit: number): string => {
  requireText(text, field);
  if (Buffer.byteLength(text) > limit) throw tooLarge(field, limit);
  return text;
};

/** `limit` in characters (Unicode code points); at least one unless `empty` is allowed. */
export const requireCharacters = (
  text: string,
  field: string,
  limit: number,
  { empty = false } = {},
): string => {
  requireText(text, field);
  if (!empty && text.trim() === '') throw badInput(`${field} must not be empty.`, { field });
  if (text.length > limit && [...text].length > limit) throw tooLong(field, limit);
  return text;
};

/** A JSON value: bounded depth, no NUL or lone surrogate anywhere, no key that could reach a prototype. */
export const requireJson = <T extends Json>(value: T, field: string, limit: number): T => {
  walk(value, field, 1);
  if (Buffer.byteLength(canonicalJson(value)) > limit) throw tooLarge(field, limit);
  return value;
};

/** The same for a whole body, whose own object does not count for the depth: of its size nothing is said. */
export const requireSafeJson = (body: Json, field: string): void => walk(body, field, 0);

/** As `requireJson`, and an object at the top. */
export const requireObject = (
  value: Json,
  field: string,
  limit: number,
): { readonly [key: string]: Json | undefined } => {
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw badInput(`${field} must be a JSON object.`, { field });
  return requireJson(value as { readonly [key: string]: Json | undefined }, field, limit);
};

const walk = (value: Json | undefined, field: string, depth: number): void => {
  if (typeof value === 'string') requireText(value, field);
  // JSON has no infinity: it would be stored as null.
  if (typeof value === 'number' && !Number.isFinite(value))
    throw badInput(`${field} has a number beyond what can be held.`, { field });
  if (value === null || typeof value !== 'object') return;
  if (depth > LIMITS.jsonDepth)
    throw badInput(`${field} is nested deeper than ${LIMITS.jsonDepth}.`, { field });
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) walk(item, field, depth + 1);
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    if (FORBIDDEN_KEYS.has(key))
      throw badInput(`${field} has the key "${key}", which is refused.`, { field });
    requireText(key, field);
    walk(item, field, depth + 1);
  }
};

/** Null for an absent one: it never expires. */
export const requireExpiry = (seconds: number | null | undefined): number | null => {
  if (seconds === null || seconds === undefined) return null;
  const limit = LIMITS.expiresInSeconds;
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > limit)
    throw badInput(`expiresInSeconds must be 1 to ${limit} (ten years).`, {
      field: 'expiresInSeconds',
      limit,
    });
  return seconds;
};

const HANDLE = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** A handle in the one way it is stored: folded to lower case. */
export const requireHandle = (handle: string): string => {
  const field = 'handle';
  requireCharacters(handle, field, LIMITS.handle);
  if (!HANDLE.test(handle))
    throw badInput('A handle has letters a-z, digits, ".", "_" and "-", and begins with a letter or digit.', {
      field,
    });
  return handle.toLowerCase();
};

/** Each id once. */
export const requireIds = (
  ids: readonly string[] | null | undefined,
  field: string,
  limit: number,
): string[] => {
  const distinct = [...new Set(ids ?? [])];
  if (distinct.length > limit) throw badInput(`${field} names more than ${limit}.`, { field, limit });
  for (const id of distinct) requireCharacters(id, field, 128);
  return distinct;
};

/** Capabilities: JSON objects, each with a `type`. */
export const requireTools = (tools: readonly Json[], field = 'tools'): readonly Json[] => {
  requireJson(tools, field, LIMITS.tools);
  for (const tool of tools) {
    if (!hasType(tool)) throw badInput('Each tool is a JSON object with a `type`, a text.', { field });
  }
  return tools;
};

const hasType = (tool: Json): boolean => {
  if (tool === null || typeof tool !== 'object' || Array.isArray(tool)) return false;
  const { type } = tool as { readonly [key: string]: Json | undefined };
  return typeof type === 'string' && type !== '';
};

export const requireIdempotencyKey = (
  key: string | null | undefined,
  field = 'idempotencyKey',
): string | null => {
  if (key === null || key === undefined) return null;
  requireText(key, field);
  const length = [...key].length;
  if (length < 1 || length > LIMITS.idempotencyKey)
    throw badInput(`${field} must have 1 to ${LIMITS.idempotencyKey} characters.`, {
      field,
      limit: LIMITS.idempotencyKey,
    });
  return key;
};
