import type { GraphQLAnswer } from './doors.ts';

export interface StreamEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: GraphQLAnswer | null;
}

/** Reads an event stream: its events one by one, and how many comments came between. */
export const openEventStream = async (
  url: string,
  init: RequestInit & { readonly headers: Readonly<Record<string, string>> },
) => {
  const controller = new AbortController();
  const response = await fetch(url, {
    ...init,
    headers: { accept: 'text/event-stream', ...init.headers },
    signal: controller.signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  const stream = {
    response,
    comments: 0,
    /** The next event; null when the stream has ended. */
    async next(): Promise<StreamEvent | null> {
      for (;;) {
        const at = rest.indexOf('\n\n');
        if (at === -1) {
          const step = await reader?.read();
          if (step === undefined || step.done) return null;
          rest += step.value;
          continue;
        }
        const lines = rest.slice(0, at).split('\n');
        rest = rest.slice(at + 2);
        if (lines.every((line) => line.startsWith(':'))) {
          stream.comments += 1;
          continue;
        }
        const field = (name: string): string | undefined =>
          lines
            .find((line) => line.startsWith(`${name}:`))
            ?.slice(name.length + 1)
            .trim();
        const data = field('data');
        return {
          event: field('event') ?? 'message',
          id: field('id'),
          data: data === undefined || data === '' ? null : (JSON.parse(data) as GraphQLAnswer),
        };
      }
    },
    async rest(): Promise<StreamEvent[]> {
      const events: StreamEvent[] = [];
      for (let event = await stream.next(); event !== null; event = await stream.next()) events.push(event);
      return events;
    },
    abort: () => controller.abort(),
  };
  return stream;
};
