/** A server of ours sends something every 12 s, so a stream that is silent for longer is not alive any more. */
const SILENCE_MS = 30_000;

/**
 * `fetch` for event streams, for graphql-sse: a stream that falls silent or just stops without a `complete` is a
 * failed one. (By itself that client waits for ever on a connection that was lost without a word, and on one that
 * was closed politely right behind an event.)
 */
const steadyFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (!isStream || response.body === null) return response;
  const { status, statusText, headers } = response;
  return new Response(failingAtItsEnd(response.body), { status, statusText, headers });
};

const failingAtItsEnd = (body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> => {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      let silent = false;
      const timer = setTimeout(() => {
        silent = true;
        void reader.cancel();
      }, SILENCE_MS);
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        controller.error(
          new Error(silent ? `The stream was silent for ${SILENCE_MS} ms.` : 'The stream stopped.'),
        );
      } catch (problem) {
        controller.error(problem);
      } finally {
        clearTimeout(timer);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
};

/**
 * What the client that is made resumable should be made with: `createClient({ url, ...steady })`, for graphql-ws
 * and graphql-sse alike. Its own five attempts are off, since `resumable` decides when to try again, and a
 * connection that died without a word is noticed. Without it everything still resumes, only later: graphql-ws
 * doubles its waits without a limit.
 */
export const steady = { retryAttempts: 0, keepAlive: 12_000, fetchFn: steadyFetch } as const;
