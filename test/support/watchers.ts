import { WebSocket } from 'ws';
import type { Server } from './app.ts';
import { openEventStream } from './eventStream.ts';
import { openRawSocket } from './rawSocket.ts';

export const TIMELINE = `subscription($id: ID!, $after: Cursor) {
  timeline(threadId: $id, after: $after) { cursor ended event { seq at ... on Message { content } } }
}`;

interface Payload {
  readonly timeline: {
    readonly cursor: string;
    readonly ended: string | null;
    readonly event: { readonly seq: number; readonly at: string; readonly content?: string } | null;
  };
}

/** A subscriber to one timeline that writes down what it gets and how it ends. */
export interface Watcher {
  readonly name: string;
  readonly events: { readonly seq: number; readonly at: string }[];
  /** `ended` of the last payload. */
  readonly reason: () => string | null;
  readonly lastCursor: () => string | null;
  /** Resolves when the connection is over: the close code of a socket, 0 for a stream; and when that was. */
  readonly over: Promise<{ readonly code: number; readonly at: number }>;
  /** Resolves once an event with this number, or a later one, was received. */
  reached(seq: number): Promise<void>;
  stop(): void;
}

const record = () => {
  const events: { seq: number; at: string }[] = [];
  const waiting = new Map<() => void, number>();
  let ended: string | null = null;
  let cursor: string | null = null;
  return {
    events,
    reason: () => ended,
    lastCursor: () => cursor,
    take({ timeline }: Payload) {
      cursor = timeline.cursor;
      ended = timeline.ended ?? ended;
      if (timeline.event === null) return;
      events.push(timeline.event);
      for (const [resolve, seq] of waiting) if (timeline.event.seq >= seq) resolve();
    },
    reached: (seq: number) =>
      new Promise<void>((resolve) => {
        if ((events.at(-1)?.seq ?? 0) >= seq) resolve();
        else waiting.set(resolve, seq);
      }),
  };
};

/** On a socket of its own; resolves when it is known to follow. */
export const watchSocket = async (
  server: Server,
  token: string,
  threadId: string,
  after: string | null = null,
): Promise<Watcher & { readonly socket: Awaited<ReturnType<typeof openRawSocket>> }> => {
  const socket = await openRawSocket(server.socketUrl);
  await socket.init({ authorization: `Bearer ${token}` });
  socket.subscribe('watch', TIMELINE, { id: threadId, after });
  const { take, ...recorded } = record();
  const first = await socket.nextOf('watch');
  if (first.type !== 'next') throw new Error(JSON.stringify(first));
  take((first.payload as { data: Payload }).data);
  socket.ws.on('message', (data) => {
    const message = JSON.parse(String(data)) as { id?: string; type: string; payload?: { data?: Payload } };
    if (message.id === 'watch' && message.type === 'next' && message.payload?.data)
      take(message.payload.data);
  });
  const over = socket.closed.then(({ code }) => ({ code, at: performance.now() }));
  return {
    name: 'a subscription on a socket',
    ...recorded,
    over,
    socket,
    stop: () => socket.ws.terminate(),
  };
};

/** As an event stream; `ticket` in the place of a token goes into the URL. */
export const watchStream = async (
  server: Server,
  credential: { readonly token: string } | { readonly ticket: string },
  threadId: string,
  lastEventId: string | null = null,
): Promise<Watcher> => {
  const operation = { query: TIMELINE, variables: { id: threadId } };
  const headers = lastEventId === null ? {} : { 'last-event-id': lastEventId };
  const stream =
    'token' in credential
      ? await openEventStream(server.url, {
          method: 'POST',
          headers: {
            ...headers,
            authorization: `Bearer ${credential.token}`,
            'content-type': 'application/json',
          },
          body: JSON.stringify(operation),
        })
      : await openEventStream(
          `${server.url}?${new URLSearchParams({
            ticket: credential.ticket,
            query: operation.query,
            variables: JSON.stringify(operation.variables),
          })}`,
          { headers },
        );
  if (!stream.response.ok) throw new Error(`${stream.response.status}`);
  const { take, ...recorded } = record();
  const first = await stream.next();
  if (!first?.data?.data) throw new Error(JSON.stringify(first));
  take(first.data.data as unknown as Payload);
  const read = async (): Promise<{ code: number; at: number }> => {
    for (let event = await stream.next(); event !== null; event = await stream.next())
      if (event.event === 'next' && event.data?.data) take(event.data.data as unknown as Payload);
    return { code: 0, at: performance.now() };
  };
  return {
    name: 'token' in credential ? 'an event stream' : 'an event stream by ticket',
    ...recorded,
    over: read().catch(() => ({ code: -1, at: performance.now() })),
    stop: stream.abort,
  };
};

/** A socket that has said who it is, and follows nothing. */
export const idleSocket = async (server: Server, token: string) => {
  const socket = await openRawSocket(server.socketUrl);
  await socket.init({ authorization: `Bearer ${token}` });
  const over = socket.closed.then(({ code }) => ({ code, at: performance.now() }));
  return { over, isOpen: () => socket.ws.readyState === WebSocket.OPEN, stop: () => socket.ws.terminate() };
};
