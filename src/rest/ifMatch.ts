import { InvalidRequest, issueOf } from './issues.ts';

const ETAG = /^(?:W\/)?"([\x21\x23-\x7e]*)"$/;

/**
 * The one etag that `If-Match` names, null for none: `*` is no condition, as there is always a content, be it empty.
 * Proxies weaken etags of what they compress, and clients leave the quotes out; both are taken for what they mean.
 * An empty header names none and is refused: it is a condition that somebody forgot to fill in.
 * Source: RFC 9110 §13.1.1.
 */
export const expectedEtag = (header: string | undefined): string | null => {
  const value = header?.trim();
  if (value === undefined || value === '*') return null;
  const [, etag] = ETAG.exec(value) ?? [];
  if (etag !== undefined) return etag;
  if (/^[\w.-]+$/.test(value)) return value;
  throw new InvalidRequest([
    issueOf(
      'value_error',
      'Value error, one etag is expected, as ETag had it',
      ['header', 'If-Match'],
      header,
    ),
  ]);
};
