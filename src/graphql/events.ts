import type { ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import { Flow, type FlowLimits } from './flow.ts';
import { textOf } from './sharing.ts';

export interface EventLimits {
  /** Milliseconds between comments that keep proxies from closing an idle stream. */
  readonly heartbeat: number;
  readonly flow: FlowLimits;
}

/** Writes the events of one operation, at its client's pace. */
export interface EventWriter {
  readonly flow: Flow;
  next(result: ExecutionResult): Promise<void>;
  /** `complete`, and the end of the response. */
  end(): void;
  /** The connection is gone. */
  close(): void;
  onClose(listener: () => void): void;
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
} as const;

/** What may stand on an `id:` line. */
const EVENT_ID = /^[\x21-\x7e]+$/;

export const openEvents = (response: ServerResponse, limits: EventLimits): EventWriter => {
  let onClose = (): void => {};
  let isOver = false;
  // Counted here: a response does not count what it has corked.
  let unsent = 0;
  const flow = new Flow(
    {
      get unsent() {
        return unsent;
      },
      onSlow: () => response.destroy(),
    },
    limits.flow,
  );
  const write = (text: string): Promise<void> => {
    const bytes = Buffer.byteLength(text);
    return flow.send(bytes, (flushed) => {
      unsent += bytes;
      response.write(text, (error) => {
        unsent -= bytes;
        flushed(error);
      });
    });
  };
  const stop = (): void => {
    isOver = true;
    clearInterval(heartbeat);
    flow.close();
    onClose();
  };
  const heartbeat = setInterval(() => {
    if (!flow.isStalled) response.write(':\n\n');
  }, limits.heartbeat).unref();
  response.socket?.setNoDelay(true);
  response.writeHead(200, HEADERS);
  // Some browsers tell of the open stream only after its first bytes.
  response.write(':\n\n');

  return {
    flow,
    next(result) {
      const { cursor } = result.extensions ?? {};
      const id = typeof cursor === 'string' && EVENT_ID.test(cursor) ? `id: ${cursor}\n` : '';
      return write(`event: next\n${id}data: ${textOf(result)}\n\n`);
    },
    end() {
      if (isOver) return;
      stop();
      response.end('event: complete\ndata:\n\n');
    },
    close() {
      if (!isOver) stop();
    },
    onClose(listener) {
      onClose = listener;
      if (isOver) listener();
    },
  };
};
