import { setTimeout as delay } from 'node:timers/promises';
import { isJSONRPCResponse, type JSONRPCMessage } from '@modelcontextprotocol/server';
import { type EventLog, idOf, isPriming, type LocatedEvent } from './eventLog.ts';

/** No call takes longer: whoever worked on it so long ago is gone. */
export const LONGEST_CALL_MS = 60_000;
const LOOK_EVERY_MS = 100;
const KEEP_ALIVE_MS = 12_000;

/**
 * The stream on which requests are answered, once more from where its client lost it: begun at once, and over when all are
 * answered, wherever they are worked on. What nobody can be working on any more is answered with an error.
 */
export const resumeAnswers = (
  log: EventLog,
  place: LocatedEvent,
  over: AbortSignal,
  longestMs = LONGEST_CALL_MS,
): Response => {
  const stop = new AbortController();
  const signal = AbortSignal.any([over, stop.signal]);
  const encoder = new TextEncoder();
  const events = follow(log, place, signal, longestMs);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await events.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: () => stop.abort(),
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' } });
};

async function* follow(
  log: EventLog,
  { streamId, position: from, ageMs }: LocatedEvent,
  over: AbortSignal,
  longestMs: number,
): AsyncGenerator<string> {
  const open = new Map<string, unknown>();
  const until = performance.now() + longestMs - ageMs;
  let position = '0-0';
  let isKnown = false;
  let isAnswered = false;
  let spokeAt = performance.now();
  while (!over.aborted) {
    const events = await log.after(position).catch(() => []);
    if (events === null) return;
    for (const event of events) {
      position = event.position;
      if (event.streamId !== streamId) continue;
      isKnown ||= event.asks.length > 0;
      for (const id of event.asks) open.set(JSON.stringify(id), id);
      if (isJSONRPCResponse(event.message)) {
        open.delete(JSON.stringify(event.message.id));
        isAnswered = true;
      }
      if (isPriming(event.message) || !isAfter(event.position, from)) continue;
      yield `event: message\nid: ${idOf(event)}\ndata: ${JSON.stringify(event.message)}\n\n`;
      spokeAt = performance.now();
    }
    // Of a stream whose beginning fell out nobody knows how many answers it has.
    if (isKnown ? open.size === 0 : isAnswered) return;
    if (performance.now() > until) {
      for (const id of open.values()) yield `event: message\ndata: ${JSON.stringify(goneWith(id))}\n\n`;
      return;
    }
    if (performance.now() - spokeAt > KEEP_ALIVE_MS) {
      yield ': keepalive\n\n';
      spokeAt = performance.now();
    }
    await delay(LOOK_EVERY_MS, undefined, { signal: over }).catch(() => undefined);
  }
}

const goneWith = (id: unknown): JSONRPCMessage =>
  ({
    jsonrpc: '2.0',
    id,
    error: {
      code: -32000,
      message:
        'The server that worked on this is gone, and with it the answer. Call again; with the same threadpad/toolCallId it acts once.',
      data: { code: 'UNAVAILABLE' },
    },
  }) as JSONRPCMessage;

/** Positions are `ms-n`. */
const isAfter = (position: string, other: string): boolean => {
  const [ms = 0, n = 0] = position.split('-').map(Number);
  const [otherMs = 0, otherN = 0] = other.split('-').map(Number);
  return ms > otherMs || (ms === otherMs && n > otherN);
};
