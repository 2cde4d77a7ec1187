import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Server } from './app.ts';

export interface Called {
  readonly text: string;
  readonly isError: boolean;
}

/** What both clients, and the plain one, are asked in the tests. */
export interface McpHands extends AsyncDisposable {
  toolNames(): Promise<string[]>;
  call(name: string, given?: Readonly<Record<string, unknown>>): Promise<Called>;
}

export const mcpUrl = ({ url }: Pick<Server, 'url'>, threadId?: string): URL =>
  new URL(threadId === undefined ? '/mcp' : `/mcp/threads/${threadId}`, url);

const textOf = (result: unknown): Called => {
  const { content, isError } = result as { content: { type: string; text: string }[]; isError?: boolean };
  return { text: content.map(({ text }) => text).join('\n'), isError: isError === true };
};

/** The SDK of the protocol’s sessions (up to 2025-11-25). */
export const connectSdk = async (
  server: Pick<Server, 'url'>,
  token: string,
  threadId?: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<McpHands & { readonly client: Client; readonly transport: StreamableHTTPClientTransport }> => {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(mcpUrl(server, threadId), {
    requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } },
    reconnectionOptions: {
      initialReconnectionDelay: 20,
      maxReconnectionDelay: 200,
      reconnectionDelayGrowFactor: 1.2,
      maxRetries: 50,
    },
  });
  await client.connect(transport);
  return {
    client,
    transport,
    toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, given = {}) => textOf(await client.callTool({ name, arguments: given })),
    [Symbol.asyncDispose]: () => client.close(),
  };
};

export interface Rpc {
  readonly status: number;
  readonly headers: Headers;
  /** Of the answer; null where there is none. */
  readonly result: Readonly<Record<string, unknown>> | null;
  readonly error: { readonly code: number; readonly message: string } | null;
  readonly lastEventId: string | null;
  /** Of the whole answer, as it came. */
  readonly bytes: number;
}

/** A client by hand, which knows nothing of resources: JSON-RPC over fetch, and the answer’s events. */
export const plainMcp = (
  server: Pick<Server, 'url'>,
  token: string | null,
  threadId?: string,
  extra: Readonly<Record<string, string>> = {},
) => {
  let sessionId: string | null = null;
  let count = 0;

  const send = async (
    body: unknown,
    { method = 'POST', headers = {} }: { method?: string; headers?: Readonly<Record<string, string>> } = {},
  ): Promise<Rpc> => {
    const response = await fetch(mcpUrl(server, threadId), {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
        accept: 'application/json, text/event-stream',
        ...(sessionId === null ? {} : { 'mcp-session-id': sessionId }),
        ...extra,
        ...headers,
      },
      ...(method === 'POST' ? { body: typeof body === 'string' ? body : JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    const { message, lastEventId } = messageIn(text);
    return {
      status: response.status,
      headers: response.headers,
      result: (message?.result as Rpc['result'] | undefined) ?? null,
      error: (message?.error as Rpc['error'] | undefined) ?? null,
      lastEventId,
      bytes: Buffer.byteLength(text),
    };
  };

  const request = (method: string, params: object = {}): Promise<Rpc> => {
    count += 1;
    return send({ jsonrpc: '2.0', id: count, method, params });
  };

  return {
    get sessionId() {
      return sessionId;
    },
    set sessionId(id: string | null) {
      sessionId = id;
    },
    send,
    request,
    async open(): Promise<Rpc> {
      const answer = await request('initialize', {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'by hand', version: '1' },
      });
      sessionId = answer.headers.get('mcp-session-id');
      if (sessionId !== null) await send({ jsonrpc: '2.0', method: 'notifications/initialized' });
      return answer;
    },
    async call(name: string, given: Readonly<Record<string, unknown>> = {}): Promise<Called> {
      const { result, error, status } = await request('tools/call', { name, arguments: given });
      if (result === null) throw new Error(`${status} ${JSON.stringify(error)}`);
      return textOf(result);
    },
  };
};

/** The last message of an answer, be it JSON or events. */
const messageIn = (
  text: string,
): { message: Readonly<Record<string, unknown>> | null; lastEventId: string | null } => {
  if (text === '') return { message: null, lastEventId: null };
  if (text.startsWith('{')) return { message: JSON.parse(text), lastEventId: null };
  const events = text.split('\n\n').map((event) => {
    const lines = event.split('\n');
    const field = (name: string) =>
      lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    return { id: field('id'), data: field('data') };
  });
  return {
    message: JSON.parse(events.findLast(({ data }) => data?.startsWith('{'))?.data ?? 'null'),
    lastEventId: events.findLast(({ id }) => id !== undefined)?.id ?? null,
  };
};

export interface Listening {
  readonly events: { readonly id: string | undefined; readonly data: string }[];
  readonly over: Promise<void>;
  readonly status: number;
  readonly code: string | null;
  stop(): void;
}

/** A session’s stream, as it comes. */
export const listen = async (
  server: { readonly url: string },
  token: string,
  sessionId: string | null,
  threadId: string | undefined,
  init: { method?: string; body?: string; lastEventId?: string | undefined } = {},
): Promise<Listening> => {
  const stop = new AbortController();
  const response = await fetch(mcpUrl(server, threadId), {
    method: init.method ?? 'GET',
    signal: stop.signal,
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      'mcp-session-id': sessionId ?? '',
      ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(init.lastEventId === undefined ? {} : { 'last-event-id': init.lastEventId }),
    },
    ...(init.body === undefined ? {} : { body: init.body }),
  });
  const events: Listening['events'] = [];
  const read = async (): Promise<void> => {
    let rest = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      rest += decoder.decode(chunk as Uint8Array, { stream: true });
      const parts = rest.split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const lines = part.split('\n');
        const field = (name: string) =>
          lines
            .find((line) => line.startsWith(`${name}:`))
            ?.slice(name.length + 1)
            .trim();
        if (field('id') !== undefined || field('data'))
          events.push({ id: field('id'), data: field('data') ?? '' });
      }
    }
  };
  const over = read().catch(() => undefined);
  return {
    events,
    over,
    status: response.status,
    code: response.headers.get('x-error-code'),
    stop: () => stop.abort(),
  };
};

export const heard = ({ events }: Listening, what: string): boolean =>
  events.some(({ data }) => data.includes(what));
