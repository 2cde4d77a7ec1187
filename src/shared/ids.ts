import { typeidUnboxed } from 'typeid-js';

/**
 * Ids are TypeIDs: a prefix and a UUIDv7 (48 bits of milliseconds, 74 random bits) in Crockford's base32, so
 * that new rows land together in their indexes. The prefixed id is the Relay global id.
 * Source: TypeID specification 0.3, RFC 9562 §5.7.
 */
export const ID_PREFIX = {
  User: 'user',
  Participant: 'part',
  Credential: 'cred',
  Thread: 'thread',
  Event: 'event',
  Engagement: 'eng',
  Scratchpad: 'sp',
  MemoryEntry: 'mem',
  Run: 'run',
  Audit: 'audit',
} as const;

export type IdKind = keyof typeof ID_PREFIX;

export const newId = (kind: IdKind): string => typeidUnboxed(ID_PREFIX[kind]);

const KIND_OF_PREFIX = new Map<string, IdKind>(
  Object.entries(ID_PREFIX).map(([kind, prefix]) => [prefix, kind as IdKind]),
);
const SHAPE = /^([a-z]{2,8})_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** Which kind of thing an id names, by its shape alone; undefined for what cannot be an id of ours. */
export const kindOfId = (id: string): IdKind | undefined => {
  const prefix = SHAPE.exec(id)?.[1];
  return prefix === undefined ? undefined : KIND_OF_PREFIX.get(prefix);
};

export const isId = (kind: IdKind, id: string): boolean => kindOfId(id) === kind;

/** The part of an id behind its prefix. */
export const idSuffix = (id: string): string => id.slice(id.lastIndexOf('_') + 1);
