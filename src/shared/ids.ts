import { randomFillSync } from 'node:crypto';

/**
 * Ids are TypeIDs: a prefix and a UUIDv7 (48 bits of milliseconds, 74 random bits, all fresh for each id) in
 * Crockford's base32, so that new rows land together in their indexes. The prefixed id is the Relay global id.
 * The libraries at hand spend part of the random bits on a counter, so the twenty lines stand here.
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

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

export const newId = (kind: IdKind): string => `${ID_PREFIX[kind]}_${base32(uuidV7())}`;

const uuidV7 = (): Uint8Array => {
  const bytes = randomFillSync(new Uint8Array(16));
  const now = Date.now();
  const view = new DataView(bytes.buffer);
  view.setUint32(0, Math.floor(now / 0x10000));
  view.setUint16(4, now % 0x10000);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes;
};

/** 128 bits as 26 digits of 5: two zero bits stand in front. */
const base32 = (bytes: Uint8Array): string => {
  let text = '';
  let buffer = 0;
  let bits = 2;
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += ALPHABET[(buffer >> bits) & 31];
    }
    buffer &= (1 << bits) - 1;
  }
  return text;
};

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
