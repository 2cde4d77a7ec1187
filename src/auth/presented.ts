import { type DomainError, unauthenticated } from '../shared/errors.ts';
import type { Presented } from './session.ts';

/** One answer for none, unknown, expired and revoked: nobody learns which it was. */
export const noCredential = (): DomainError =>
  unauthenticated('A valid credential is required: send it as Authorization: Bearer … or as X-API-Key: ….');

const BEARER = /^Bearer +(\S(?:.*\S)?) *$/i;

/** The secret that was presented. Both headers may carry it, but only the same one. */
export const presentedSecret = ({ authorization, apiKey }: Presented): string => {
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  if (authorization !== undefined && bearer === undefined) throw noCredential();
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) throw noCredential();
  const secret = bearer ?? apiKey;
  if (secret === undefined || secret === '') throw noCredential();
  return secret;
};
