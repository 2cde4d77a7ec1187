/** `2026-11-30 12:04:45.626+00`, as a session in UTC writes it, to RFC 3339; no digit is lost. */
export const rfc3339 = (timestamp: string): string => timestamp.replace(' ', 'T').replace(/\+00(:00)?$/, 'Z');
