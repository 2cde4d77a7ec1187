import type { Exchange, Headers } from '../http/exchange.ts';
import { drained } from '../http/outgoing.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Sends `{"object":"list","data":[…]}` as its items come, no faster than the client takes them. What fails before the
 * first page is thrown while an ordinary answer can still be given; what fails later is thrown too, and the answer must
 * not be ended as if it were whole.
 */
export const sendStreamed = async (
  { request, response, method, outgoing }: Exchange,
  pages: AsyncIterable<readonly unknown[]>,
  headers: Headers,
): Promise<void> => {
  const iterator = pages[Symbol.asyncIterator]();
  try {
    let page = await iterator.next();
    if (response.destroyed) return;
    outgoing.begin(request, response, AHEAD);
    response.writeHead(200, { 'content-type': JSON_TYPE, ...headers });
    if (method === 'HEAD') {
      response.end();
      return;
    }
    let text = '{"object":"list","data":[';
    let comma = '';
    while (page.done !== true) {
      for (const item of page.value) {
        text += comma + JSON.stringify(item);
        comma = ',';
      }
      if (text !== '' && !response.write(text)) await drained(response);
      if (response.destroyed) return;
      text = '';
      page = await iterator.next();
    }
    response.end(`${text}]}`);
  } finally {
    await iterator.return?.();
  }
};

/** Bytes that wait for the client at a time, about: of what it has not taken no more is fetched. */
const AHEAD = 2 * 1024 * 1024;
