import type { Payload, PayloadStream } from './stream.ts';

const OVER = { value: undefined, done: true } as const;

/**
 * A stream whose payloads go to the client past graphql-ws, each as the text that was made once for all who get the
 * same. Graphql-ws sees nothing of it but its end, of which it tells the client, and ends it where the client does.
 */
export class Pumped implements AsyncGenerator<never, undefined> {
  readonly #stream: PayloadStream;
  readonly #send: (payload: Payload) => Promise<void>;

  constructor(stream: PayloadStream, send: (payload: Payload) => Promise<void>) {
    this.#stream = stream;
    this.#send = send;
  }

  async next(): Promise<IteratorResult<never, undefined>> {
    for (;;) {
      const step = await this.#stream.next();
      if (step.done === true) return OVER;
      await this.#send(step.value);
    }
  }

  async return(): Promise<IteratorResult<never, undefined>> {
    await this.#stream.return();
    return OVER;
  }

  async throw(error: unknown): Promise<IteratorResult<never, undefined>> {
    await this.#stream.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
