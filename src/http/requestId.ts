import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const ACCEPTED = /^[A-Za-z0-9._-]{1,64}$/;

const process = randomBytes(6).toString('base64url');
let count = 0;

/** Unique among all processes: what joins an answer with its lines in the log. */
export const newRequestId = (): string => {
  count += 1;
  return `${process}-${count.toString(36)}`;
};

/** The id a proxy gave the request, where it is one, else a new one. */
export const requestIdOf = ({ headers }: IncomingMessage): string => {
  const given = headers['x-request-id'];
  return typeof given === 'string' && ACCEPTED.test(given) ? given : newRequestId();
};
