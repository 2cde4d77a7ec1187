import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

const READABLE = {
  API_KEY: 'tp_key_',
  PARTICIPANT_TOKEN: 'tp_part_',
  RUN_TOKEN: 'tp_run_',
  TICKET: 'tp_ticket_',
} as const;

export interface Secret {
  /** Shown once, stored nowhere. */
  readonly secret: string;
  /** What a person recognises it by later. */
  readonly prefix: string;
  readonly hash: string;
}

/** 256 random bits behind a readable prefix. */
export const newSecret = (kind: keyof typeof READABLE): Secret => {
  const secret = `${READABLE[kind]}${randomBytes(32).toString('base64url')}`;
  return { secret, prefix: secret.slice(0, READABLE[kind].length + 6), hash: hashSecret(secret) };
};

export const hashSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex');

const CREDENTIAL = /^tp_(?:key|part|run)_[A-Za-z0-9_-]{43}$/;
const TICKET = /^tp_ticket_[A-Za-z0-9_-]{43}$/;

/** By shape alone, so that no garbage reaches the database. */
export const looksLikeCredential = (text: string): boolean => CREDENTIAL.test(text);
export const looksLikeTicket = (text: string): boolean => TICKET.test(text);

/** In a time that does not depend on where the two differ. */
export const sameHash = (one: string, other: string): boolean =>
  timingSafeEqual(Buffer.from(one), Buffer.from(other));
