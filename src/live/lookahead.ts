type Step<Item> = { readonly result: IteratorResult<Item, undefined> } | { readonly error: unknown };

/** One step of a reader, asked for before it is taken: so that one can wait for whichever of several readers has one. */
export class Lookahead<Item> {
  readonly #source: AsyncIterator<Item, undefined>;
  #step: Step<Item> | undefined;
  #isAsked = false;
  #wake: () => void = () => {};

  constructor(source: AsyncIterator<Item, undefined>) {
    this.#source = source;
  }

  get isReady(): boolean {
    return this.#step !== undefined;
  }

  /** Asks for the next step, once; `wake` is called when it is there. */
  ask(wake: () => void): void {
    this.#wake = wake;
    if (this.#isAsked) return;
    this.#isAsked = true;
    const come = (step: Step<Item>): void => {
      this.#step = step;
      this.#wake();
    };
    this.#source.next().then(
      (result) => come({ result }),
      (error: unknown) => come({ error }),
    );
  }

  /** The step that is ready. Throws what its reader threw. */
  take(): IteratorResult<Item, undefined> {
    const step = this.#step;
    if (step === undefined) throw new Error('No step is ready.');
    this.#step = undefined;
    this.#isAsked = false;
    if ('error' in step) throw step.error;
    return step.result;
  }

  /** Resolves once the step that was asked for is there. */
  async next(): Promise<IteratorResult<Item, undefined>> {
    await anyReady([this]);
    return this.take();
  }
}

/** Resolves once one of them has a step. Nothing stays behind in those that have none. */
export const anyReady = (readers: readonly Lookahead<unknown>[]): Promise<void> =>
  new Promise((resolve) => {
    for (const reader of readers) reader.ask(resolve);
    if (readers.some(({ isReady }) => isReady)) resolve();
  });
