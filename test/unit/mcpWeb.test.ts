import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import type { Session } from '../../src/auth/session.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { createOutgoing } from '../../src/http/outgoing.ts';
import { sendWebResponse } from '../../src/tools/mcp/web.ts';

const EVENTS = ['close', 'drain', 'error', 'finish', 'timeout'];
const CHUNKS = 60;
/** More than waits for a client before a writer is told to. */
const CHUNK = new Uint8Array(512 * 1024);

test('a stream whose client is slow again and again listens for it no more often than once', async () => {
  const listening: number[][] = [];
  let waits = 0;
  let sent = Promise.resolve();
  const serve = (response: ServerResponse, request: Exchange['request']): Promise<void> => {
    const write = response.write.bind(response);
    response.write = (chunk: unknown) => {
      const isTaken = write(chunk);
      if (!isTaken) waits += 1;
      return isTaken;
    };
    let left = CHUNKS;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        listening.push(EVENTS.map((event) => response.listenerCount(event)));
        left -= 1;
        if (left < 0) controller.close();
        else controller.enqueue(CHUNK);
      },
    });
    const answer = new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    const exchange = { request, response, outgoing: createOutgoing() } as unknown as Exchange;
    const session = { cleared: async () => undefined } as unknown as Session;
    return sendWebResponse(exchange, answer, session, new AbortController().signal);
  };
  const server = createServer((request, response) => {
    sent = serve(response, request);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect((await answer.arrayBuffer()).byteLength).toBe(CHUNKS * CHUNK.byteLength);
    await sent;
    expect(waits).toBeGreaterThan(10);
    // Before the first wait, and whatever it needs for one.
    for (const counts of listening)
      for (const [index, count] of counts.entries())
        expect(count).toBeLessThanOrEqual((listening[0]?.[index] ?? 0) + 1);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
