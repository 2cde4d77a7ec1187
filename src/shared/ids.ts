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
  ScratchpadEntry: 'entry',
  MemoryEntry: 'mem',
  Run: 'run',
  Delivery: 'dlv',
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
const ENTRY_SHAPE = /^entry_([0-7][0-9a-hjkmnp-tv-z]{25})([0-9a-hjkmnp-tv-z]{12})([0-9a-hjkmnp-tv-z]{7})$/;

/** Which kind of thing an id names, by its shape alone; undefined for what cannot be an id of ours. */
export const kindOfId = (id: string): IdKind | undefined => {
  const prefix = SHAPE.exec(id)?.[1];
  if (prefix === undefined) return ENTRY_SHAPE.test(id) ? 'ScratchpadEntry' : undefined;
  const kind = KIND_OF_PREFIX.get(prefix);
  return kind === 'ScratchpadEntry' ? undefined : kind;
};

export const isId = (kind: IdKind, id: string): boolean => kindOfId(id) === kind;

/** The part of an id behind its prefix. */
export const idSuffix = (id: string): string => id.slice(id.lastIndexOf('_') + 1);

/** Where an entry stands: its id says so, since no table knows it. */
export interface EntryPlace {
  readonly scratchpadId: string;
  readonly epoch: string;
  readonly seq: number;
}

export const entryId = ({ scratchpadId, epoch, seq }: EntryPlace): string =>
  `${ID_PREFIX.ScratchpadEntry}_${idSuffix(scratchpadId)}${epoch}${digits(seq)}`;

/** undefined for anything that is no entry's id. */
export const readEntryId = (id: string): EntryPlace | undefined => {
  const [, pad, epoch, seq] = ENTRY_SHAPE.exec(id) ?? [];
  if (pad === undefined || epoch === undefined || seq === undefined) return undefined;
  return { scratchpadId: `${ID_PREFIX.Scratchpad}_${pad}`, epoch, seq: number(seq) };
};

/** A pad's epoch: 60 random bits. */
export const newEpoch = (): string =>
  Array.from(randomFillSync(new Uint8Array(12)), (byte) => ALPHABET[byte & 31]).join('');

const digits = (value: number): string => {
  let text = '';
  for (let rest = value, place = 0; place < 7; place += 1, rest = Math.floor(rest / 32))
    text = ALPHABET.charAt(rest % 32) + text;
  return text;
};

const number = (text: string): number =>
  [...text].reduce((value, digit) => value * 32 + ALPHABET.indexOf(digit), 0);
