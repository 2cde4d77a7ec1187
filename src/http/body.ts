import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { tooLarge } from '../shared/errors.ts';

/** The request went away while its body was read: there is nobody to answer. */
export class RequestGone extends Error {
  override readonly name = 'RequestGone';
}

/** Reads a body of at most `limit` bytes. Throws `PAYLOAD_TOO_LARGE` as soon as it is known to be longer. */
export const readBody = (request: IncomingMessage, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > limit) {
      reject(tooLarge('body', limit));
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limit) {
        stop();
        request.pause();
        reject(tooLarge('body', limit));
        return;
      }
      chunks.push(chunk);
    };
    const onEnd = (): void => {
      stop();
      const [only] = chunks;
      resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, size));
    };
    const onGone = (): void => {
      stop();
      reject(new RequestGone('The request ended before its body did.'));
    };
    const stop = (): void => {
      request.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
      // An error after this point has nobody to tell.
      request.on('error', () => {});
    };
    request.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
  });

/** Milliseconds for which an unwanted body is waited for. */
const DISCARD_TIME = 2_000;

/** Reads what is left of an unwanted body away, up to `limit` bytes, so that its sender comes to read the answer. */
export const discardBody = (request: IncomingMessage, limit: number): Promise<void> =>
  new Promise((resolve) => {
    if (request.complete || request.destroyed) {
      resolve();
      return;
    }
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limit) stop();
    };
    const stop = (): void => {
      clearTimeout(timer);
      request.off('data', onData).off('end', stop).off('close', stop);
      resolve();
    };
    const timer = setTimeout(stop, DISCARD_TIME);
    request.on('data', onData).on('end', stop).on('close', stop);
    request.resume();
  });

/** The body's text; null where it is no UTF-8. */
export const utf8 = (body: Buffer): string | null => (isUtf8(body) ? body.toString('utf8') : null);

/** Whether the content type is JSON in UTF-8, uncompressed. */
export const isJson = ({ headers }: IncomingMessage): boolean => {
  if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined)
    return true;
  const [type, ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase());
  const encoding = headers['content-encoding'];
  if (type !== 'application/json' || (encoding !== undefined && encoding !== 'identity')) return false;
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  return charset === undefined || /^charset="?utf-?8"?$/.test(charset);
};
