import { EventEmitter } from 'node:events';
import { pino } from 'pino';
import { createDoors, type DoorLimits, type DoorsOptions } from '../../src/graphql/doors.ts';
import { WEBSOCKET_LIMITS, type WebSocketLimits } from '../../src/graphql/websocket.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { createTestCredentials } from './testCredentials.ts';
import { createTestLog, createTestSchema, type TestContext } from './testSchema.ts';

export interface TestOptions extends Partial<Omit<DoorsOptions, 'limits'>> {
  readonly limits?: Partial<Omit<DoorLimits, 'webSocket'>> & {
    readonly webSocket?: Partial<WebSocketLimits>;
  };
}

/** The doors on a port of their own, over a small schema. */
export const openTestDoors = async ({ limits, ...options }: TestOptions = {}) => {
  const credentials = createTestCredentials();
  const numbers = createTestLog();
  const gates = new EventEmitter().setMaxListeners(0);
  const lines: string[] = [];
  const metrics = createMetrics();
  let contexts = 0;
  const all: DoorsOptions = {
    schema: createTestSchema(numbers, gates),
    createContext: (caller): TestContext => {
      contexts += 1;
      return { caller, number: contexts };
    },
    authentication: credentials.authentication,
    readiness: async () => ({ database: 'ready', redis: 'ready' }),
    metrics,
    log: pino({ level: 'info' }, { write: (line: string) => lines.push(line) }),
    allowedOrigins: ['https://app.example'],
    isSchemaOpen: true,
    suggestions: true,
    trustedProxies: 0,
    page: null,
    ...options,
    limits: { ...limits, webSocket: { ...WEBSOCKET_LIMITS, ...limits?.webSocket } },
  };
  const doors = createDoors(all);
  const port = await doors.listen(0, '127.0.0.1');
  const origin = `http://127.0.0.1:${port}`;
  return {
    doors,
    options: all,
    credentials,
    numbers,
    gates,
    lines,
    metrics,
    port,
    origin,
    url: `${origin}/graphql`,
    wsUrl: `ws://127.0.0.1:${port}/graphql`,
    gauge: async (name: string) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(await metrics.text())?.[1]),
    close: () => doors.close(),
  };
};

export type TestDoors = Awaited<ReturnType<typeof openTestDoors>>;

export const KEY = { authorization: 'Bearer key-1' } as const;

export interface GraphQLAnswer {
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly path?: unknown;
    readonly extensions: Record<string, unknown>;
  }[];
  readonly extensions?: { readonly cursor?: string };
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: GraphQLAnswer;
}

type Fields = Readonly<Record<string, string>>;

const answerOf = async (response: Response): Promise<HttpAnswer> => {
  const { status, headers } = response;
  return { status, headers, body: (await response.json()) as GraphQLAnswer };
};

/** Posts a body: text as it is, all else as JSON. */
export const post = async (url: string, body: unknown, headers: Fields = KEY): Promise<HttpAnswer> =>
  answerOf(
    await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
  );

export const get = async (url: string, params: Fields, headers: Fields = KEY): Promise<HttpAnswer> =>
  answerOf(await fetch(`${url}?${new URLSearchParams(params)}`, { headers }));

export const codesOf = ({ errors }: GraphQLAnswer): unknown[] =>
  (errors ?? []).map(({ extensions }) => extensions.code);
