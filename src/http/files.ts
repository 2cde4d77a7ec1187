import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { giveUpAfter, OUTGOING_LIMITS } from './outgoing.ts';

export interface ServedFile {
  readonly plain: Buffer;
  /** Null where it would not be smaller. */
  readonly zipped: Buffer | null;
}

export const servedFile = async (plain: Buffer): Promise<ServedFile> => {
  const zipped = await promisify(gzip)(plain);
  return { plain, zipped: zipped.length < plain.length ? zipped : null };
};

/** Files by name, each read once, when it is first asked for. */
export const createFileCache = (pathOf: (name: string) => string) => {
  const files = new Map<string, Promise<ServedFile>>();
  return (name: string): Promise<ServedFile> => {
    const known = files.get(name);
    if (known !== undefined) return known;
    const read = readFile(pathOf(name)).then(servedFile);
    files.set(name, read);
    read.catch(() => files.delete(name));
    return read;
  };
};

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.ttf': 'font/ttf',
};

/** Answers with a file of a page, which shall do nothing but what `policy` allows. */
export const sendFile = (
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  name: string,
  { plain, zipped }: ServedFile,
  headers: { readonly vary: string; readonly 'cache-control': string; readonly policy: string },
): void => {
  const takesGzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
  const body = takesGzip && zipped !== null ? zipped : plain;
  // The files are held once, for all: what waits to be read costs a connection and little else.
  giveUpAfter(response, OUTGOING_LIMITS.patience);
  response.writeHead(200, {
    'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
    'content-length': body.length,
    ...(body === zipped ? { 'content-encoding': 'gzip' } : {}),
    vary: headers.vary,
    'cache-control': headers['cache-control'],
    'content-security-policy': headers.policy,
    'cross-origin-opener-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  });
  response.end(request.method === 'HEAD' ? undefined : body);
};
