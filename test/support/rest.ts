import { pathsOf, type RestRoute } from '../../src/rest/route.ts';
import { ROUTES } from '../../src/rest/routes.ts';
import type { Server } from './app.ts';

export interface RestReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** What was sent, as JSON; undefined for nothing. */
  readonly body: unknown;
  /** Of `X-Error-Code`. */
  readonly code: string | null;
}

export interface RestRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** A text goes out as it is, all else as JSON. */
  readonly body?: unknown;
}

/** Every path that a route answers at, as a pattern. */
const PATHS = ROUTES.flatMap((route) =>
  pathsOf(route).map((path) => ({
    route,
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  })),
);

const routeAt = (method: string, path: string): RestRoute | undefined =>
  PATHS.find(({ route, pattern }) => route.method === method && pattern.test(path))?.route;

/** Routes that have answered 200 in this file. */
export const answered = new Set<string>();

/** Throws where an answer is not what the routes table, and so the OpenAPI document, says. */
const requireAsDocumented = (route: RestRoute, reply: RestReply): void => {
  const where = `${route.method} ${route.path} answered ${reply.status} ${reply.text.slice(0, 500)}`;
  if (reply.status !== 200) {
    if (reply.code === null) throw new Error(`${where}, and no X-Error-Code.`);
    return;
  }
  answered.add(route.operationId);
  const { error } = route.answer.safeParse(reply.body);
  if (error !== undefined) throw new Error(`${where}, which its schema does not fit: ${error.message}`);
  const allowed = new Set((route.answerHeaders ?? []).map((name) => name.toLowerCase()));
  for (const name of ['etag', 'link', 'x-cursor', 'x-entry-seq', 'x-expires-at'])
    if (reply.headers.has(name) && !allowed.has(name)) throw new Error(`${where}, with ${name}.`);
};

export const restAt = (origin: string) => {
  const request = async (
    credential: Readonly<Record<string, string>>,
    method: string,
    path: string,
    { headers = {}, body }: RestRequest = {},
  ): Promise<RestReply> => {
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: {
        ...credential,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const reply: RestReply = {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' ? undefined : JSON.parse(text),
      code: response.headers.get('x-error-code'),
    };
    const route = routeAt(method, path.split('?')[0] ?? '');
    if (route !== undefined) requireAsDocumented(route, reply);
    return reply;
  };
  return request;
};

/** Somebody's hands: `X-API-Key`, as existing clients send it. */
export const createRestClient = (server: Pick<Server, 'url'>, apiKey: string, actAs?: string) => {
  const request = restAt(new URL(server.url).origin);
  const credential = { 'x-api-key': apiKey, ...(actAs === undefined ? {} : { 'x-act-as': actAs }) };
  const bound =
    (method: string) =>
    (path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<RestReply> =>
      request(credential, method, path, { body, headers });
  return {
    get: (path: string, headers?: Readonly<Record<string, string>>) => bound('GET')(path, undefined, headers),
    post: bound('POST'),
    put: bound('PUT'),
    patch: bound('PATCH'),
    delete: bound('DELETE'),
  };
};

export type RestClient = ReturnType<typeof createRestClient>;

/**
 * What existing clients know of each body, by hand and not from the server's schemas. Those marked strict refuse
 * anything else.
 */
const KNOWN = {
  ScratchpadRead: ['id', 'owner_id', 'thread_id', 'created_at', 'updated_at', 'meta_data'],
  ScratchpadDeleted: ['id', 'object', 'deleted'],
  ContentRead: ['scratchpad_id', 'content', 'updated_at'],
  EntryRead: ['scratchpad_id', 'content', 'created_at'],
  List: ['object', 'data'],
  StateCleared: ['id', 'object', 'scope', 'cleared'],
  Thread: ['id', 'object', 'created_at', 'meta_data', 'owner_id', 'participants'],
  ToolRead: ['content'],
  ToolDone: ['status', 'message'],
} as const;

type Shape = keyof typeof KNOWN;
const STRICT = new Set<Shape>(['ContentRead', 'EntryRead', 'List', 'StateCleared']);

/** The body as a client parses it: throws for a field that is missing, or that a strict client would refuse. */
export const parsedAs = (
  shape: Shape,
  { status, text, body }: Pick<RestReply, 'status' | 'text' | 'body'>,
) => {
  if (status !== 200) throw new Error(`${status} ${text}`);
  return objectAs(shape, body);
};

export const objectAs = <Name extends Shape>(
  shape: Name,
  value: unknown,
): Record<(typeof KNOWN)[Name][number], unknown> => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${JSON.stringify(value)} is no ${shape}.`);
  const known: readonly string[] = KNOWN[shape];
  const missing = known.filter((name) => !Object.hasOwn(value, name));
  const unknown = Object.keys(value).filter((name) => !known.includes(name));
  if (missing.length > 0) throw new Error(`${shape} lacks ${missing.join(', ')}: ${JSON.stringify(value)}`);
  if (unknown.length > 0 && STRICT.has(shape))
    throw new Error(`${shape} has ${unknown.join(', ')}, which its clients refuse.`);
  return value as Record<string, unknown>;
};
