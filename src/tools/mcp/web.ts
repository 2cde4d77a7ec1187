import type { Session } from '../../auth/session.ts';
import type { Exchange } from '../../http/exchange.ts';
import { drained, giveUpAfter } from '../../http/outgoing.ts';

/** The request as the SDK takes it, without its body: that is read and parsed already. */
export const webRequest = ({ request, method, path }: Exchange, signal: AbortSignal): Request => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (typeof value === 'string') headers.set(name, value);
  // Whom it reached is settled: the SDK only needs an address of some kind.
  return new Request(new URL(path, 'http://localhost'), { method, headers, signal });
};

/** How long a client that takes nothing of what waits for it is kept, in milliseconds. */
const PATIENCE_MS = 10_000;

/**
 * Sends the SDK's answer, as it comes. Nothing of a stream goes out once the credential has ended, and a client that does
 * not read is let go. Resolves when it is over.
 */
export const sendWebResponse = async (
  { response, outgoing, request }: Exchange,
  answer: Response,
  session: Session,
  over: AbortSignal,
  /** Of a stream, before all else. */
  first = '',
): Promise<void> => {
  const headers = Object.fromEntries(answer.headers);
  // Whether the connection stays is between the client and Node.
  delete headers.connection;
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
  if (!isStream) {
    const body = Buffer.from(await answer.arrayBuffer());
    await session.cleared();
    if (response.headersSent || response.destroyed) return;
    outgoing.begin(request, response, body.length);
    response.writeHead(answer.status, { ...headers, ...NO_STORE, 'content-length': String(body.length) });
    response.end(body);
    return;
  }
  const reader = answer.body?.getReader();
  if (reader === undefined || response.destroyed) return;
  const stop = (): void => void reader.cancel().catch(() => undefined);
  over.addEventListener('abort', stop, { once: true });
  if (over.aborted) stop();
  giveUpAfter(response, PATIENCE_MS);
  // A stream on which nothing waits to be taken is not given up.
  response.setTimeout(0);
  response.writeHead(answer.status, { ...headers, ...NO_STORE });
  response.flushHeaders();
  if (first !== '') response.write(first);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || response.destroyed) break;
      await session.cleared();
      if (over.aborted) break;
      if (response.write(value)) continue;
      response.setTimeout(PATIENCE_MS);
      await drained(response);
      response.setTimeout(0);
    }
  } finally {
    over.removeEventListener('abort', stop);
    stop();
    response.end();
  }
};

const NO_STORE = { 'cache-control': 'no-store, no-transform' } as const;
