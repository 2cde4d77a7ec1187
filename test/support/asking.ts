import type { Server } from './app.ts';
import type { RootField, Variables } from './operations.ts';

/** A credential as it is presented, or none. */
export interface Caller {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
}

export const bearerOf = (name: string, token: string, actAs?: string): Caller => ({
  name,
  headers: { authorization: `Bearer ${token}`, ...(actAs === undefined ? {} : { 'x-act-as': actAs }) },
});
export const NOBODY: Caller = { name: 'nobody', headers: {} };

/** What came back, byte for byte but for the request's id. */
export interface Reply {
  readonly status: number;
  readonly text: string;
  /** Of the first error; `OK` for none. */
  readonly code: string;
}

/** One operation over HTTP; of a subscription the first payload, over SSE. */
export const ask = async (
  server: Server,
  { headers }: Caller,
  { root, document }: Pick<RootField, 'root' | 'document'>,
  variables: Variables,
): Promise<Reply> => {
  const isStream = root === 'subscription';
  const gone = new AbortController();
  const response = await fetch(server.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: isStream ? 'text/event-stream' : 'application/json',
      ...headers,
    },
    body: JSON.stringify({ query: document, variables }),
    signal: gone.signal,
  });
  const text = (isStream && response.ok ? await firstPayload(response) : await response.text()).replaceAll(
    response.headers.get('x-request-id') ?? 'none',
    '<request>',
  );
  gone.abort();
  const code = /"code":"(\w+)"/.exec(text)?.[1];
  return { status: response.status, text, code: code ?? (/"errors":/.test(text) ? 'UNKNOWN' : 'OK') };
};

const firstPayload = async (response: Response): Promise<string> => {
  let text = '';
  if (response.body === null) return text;
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const payload = /event: next\n(?:id: .*\n)?data: (.*)\n\n/.exec(text)?.[1];
    if (payload !== undefined) return payload;
  }
  return text;
};
